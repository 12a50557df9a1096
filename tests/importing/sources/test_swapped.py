"""A folder that is swapped for a link to elsewhere after the check: nothing is read from there."""

from __future__ import annotations

import contextlib
import itertools
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semiprune_core.errors import SemiPruneError, SourceError
from semiprune_core.importing.sources import open_source, parse_source
from semiprune_core.importing.sources.manifest import preview
from semiprune_core.importing.sources.reading import read_entry
from semiprune_core.paths import PathGuard
from tests.hostile_inputs.cases import encoded, picture

SOURCES = ("pool.zip", "pool.npz", "pool.csv", "pool", "tiny")
MOMENTS = ("checked", "opened", "listed")


def pixels(label: str) -> bytes:
    return picture(len(label)).tobytes()


def fill(folder: Path, label: str) -> None:
    """One picture with the label ``label`` in every kind of source."""
    data = encoded(pixels=picture(len(label)))
    for path in (f"pool/{label}/a.png", f"{label}.png", "tiny/train/n01/images/a.png"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    with zipfile.ZipFile(folder / "pool.zip", "w") as archive:
        archive.writestr(f"{label}/a.png", data)
        archive.writestr("notes.txt", label)
    (folder / "pool/notes.txt").write_text(label)
    np.savez(folder / "pool.npz", images=picture(len(label))[None], labels=np.array([label]))
    (folder / "pool.csv").write_text(f"path,label\n{label}.png,{label}\n")
    pq.write_table(pa.table({"path": [f"{label}.png"], "label": [label]}), folder / "pool.parquet")
    (folder / "tiny/words.txt").write_text(f"n01\t{label}\n")
    (folder / "tiny/val").mkdir()
    (folder / "tiny/val/val_annotations.txt").write_text("a.png\tn01\n")


@pytest.fixture
def place(tmp_path):
    for name, label in (("allowed/team", "plain"), ("elsewhere", "secret")):
        (tmp_path / name).mkdir(parents=True)
        fill(tmp_path / name, label)
    (tmp_path / "scratch").mkdir()
    return tmp_path.resolve()


def swap(place: Path) -> None:
    (place / "allowed/team").rename(place / "aside")
    (place / "allowed/team").symlink_to(place / "elsewhere")


class SwappingGuard(PathGuard):
    """A guard whose folder is swapped at the moment after its check."""

    def resolve(self, path, *, base=None):
        real = super().resolve(path, base=base)
        swap(self.roots[0].parent)
        return real


@dataclass
class Seen:
    """What an import would show and take."""

    words: list[str] = field(default_factory=list)
    pictures: list[bytes] = field(default_factory=list)


def read(place: Path, name: str, moment: str) -> Seen:
    """Import from a source that is swapped at some moment, as far as it goes."""
    guard, seen = (SwappingGuard if moment == "checked" else PathGuard)((place / "allowed",)), Seen()
    source = open_source(parse_source(str(place / "allowed/team" / name)), guard=guard, scratch=place / "scratch")
    if moment == "opened":
        swap(place)
    entries = list(source.entries())
    seen.words = [str(source.class_names), *map(str, entries), *map(str, source.problems)]
    if moment == "listed":
        swap(place)
    for entry in entries:
        with contextlib.suppress(SemiPruneError):
            seen.pictures.append(read_entry(entry)[0].pixels.tobytes())
    return seen


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_not_swapped_is_read(place, name):
    seen = read(place, name, "never")
    assert "plain" in "".join(seen.words) and seen.pictures == [pixels("plain")]


@pytest.mark.parametrize("name, moment", [*itertools.product(SOURCES, MOMENTS), ("pool.parquet", "opened")])
def test_nothing_is_read_from_elsewhere(place, name, moment):
    try:
        seen = read(place, name, moment)
    except SemiPruneError as error:
        assert error.code in ("FILE_MISSING", "FOLDER_UNREADABLE") and "secret" not in str(error)
    else:
        assert "secret" not in "".join(seen.words) and pixels("secret") not in seen.pictures


@pytest.mark.parametrize("name", ["pool.csv", "pool.parquet"])
def test_no_row_from_elsewhere_is_shown(place, name):
    with pytest.raises(SourceError, match="is missing"):
        preview(place / "allowed/team" / name, SwappingGuard((place / "allowed",)))
