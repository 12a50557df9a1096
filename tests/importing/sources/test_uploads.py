"""What an upload becomes: one archive under its own name, or images."""

import json

import pytest

from semiprune_core.errors import SourceError
from semiprune_core.importing.sources.uploads import uploaded_source


def upload(folder, *names):
    (folder / "files").mkdir()
    for number in range(len(names)):
        (folder / "files" / str(number)).write_bytes(b"x")
    entries = [{"file": str(number), "name": name, "bytes": 1} for number, name in enumerate(names)]
    (folder / "index.jsonl").write_text("".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries))
    return folder


@pytest.mark.parametrize("name, kind", [("my cats.ZIP", "zip"), ("sub/pool.npz", "npz")])
def test_a_single_archive_goes_by_its_own_name(tmp_path, name, kind):
    spec = uploaded_source(upload(tmp_path, name))
    assert (spec.kind, spec.location) == (kind, str(tmp_path / name.rsplit("/", 1)[-1]))
    assert uploaded_source(tmp_path) == spec  # a page runs many times


@pytest.mark.parametrize("names", [("a.png",), ("a.png", "b.png"), ("zip",), ("a\u2028b\x85c\x0bd\x1ce.png",)])
def test_images_are_an_upload(tmp_path, names):
    assert uploaded_source(upload(tmp_path, *names)).kind == "uploads"


@pytest.mark.parametrize("names", [("a.zip", "b.zip"), ("a.png", "b.zip")])
def test_an_archive_among_others_is_refused(tmp_path, names):
    with pytest.raises(SourceError, match="one ZIP or .npz at a time"):
        uploaded_source(upload(tmp_path, *names))
