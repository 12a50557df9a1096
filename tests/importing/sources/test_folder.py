"""Folders, archives and uploads: what folders mean, and that the same pictures are the same however they come."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from semiprune_core.errors import InvalidSettingError, SourceError, UnknownNameError, UnsafePathError
from semiprune_core.importing.images import content_hash
from semiprune_core.importing.sources import (
    SOURCES,
    SourceSpec,
    class_folders,
    open_source,
    opening,
    parse_source,
)
from semiprune_core.importing.sources.reading import read_entry
from semiprune_core.paths import PathGuard, open_real
from tests.hostile_inputs.cases import GOOD, encoded, picture


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "pics").mkdir()
    return tmp_path.resolve()


def opened(root: Path, spec: SourceSpec | str, scratch: str = "scratch"):
    spec = parse_source(spec) if isinstance(spec, str) else spec
    return open_source(spec, guard=PathGuard((root,)), scratch=root / scratch)


def fill(folder: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(encoded(pixels=picture(number)))
    return folder


def zipped(folder: Path, target: Path, prefix: str = "") -> Path:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, prefix + path.relative_to(folder).as_posix())
    return target


def uploaded(folder: Path, target: Path, prefix: str = "") -> Path:
    (target / "files").mkdir(parents=True)
    lines = []
    for number, path in enumerate(sorted(p for p in folder.rglob("*") if p.is_file())):
        (target / "files" / str(number)).write_bytes(path.read_bytes())
        lines.append(json.dumps({"file": str(number), "name": prefix + path.relative_to(folder).as_posix()}) + "\n")
    (target / "index.jsonl").write_text("".join(lines), "utf-8")
    return target


def every_way(root: Path, prefix: str = "wrapper/"):
    """The tree pics/ as folder, ZIP (wrapped in a folder) and upload."""
    yield opened(root, str(root / "pics"))
    yield opened(root, str(zipped(root / "pics", root / "p.zip", prefix)))
    yield opened(root, SourceSpec("uploads", str(uploaded(root / "pics", root / "up", prefix))))


def placed(source) -> dict[str, tuple[str | None, str]]:
    return {entry.path: (entry.label, entry.split) for entry in source.entries()}


def test_class_folders_become_labels_and_a_flat_folder_has_none(root):
    fill(root / "pics", "cat/1.png", "dog/deep/er/2.png", "loose.png", "_unlabeled/3.png")
    for source in every_way(root):
        assert placed(source) == {
            "cat/1.png": ("cat", "pool"),
            "dog/deep/er/2.png": ("dog", "pool"),
            "loose.png": (None, "pool"),
            "_unlabeled/3.png": (None, "pool"),
        }
        assert source.count() == 4 and source.problems == []


def test_a_flat_folder_has_no_labels(root):
    fill(root / "pics", "b.png", "a.png")
    for source in every_way(root):
        assert placed(source) == {"a.png": (None, "pool"), "b.png": (None, "pool")}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["train/cat/1.png", "test/cat/2.png"], [("cat", "pool"), ("cat", "test")]),
        (["train/cat/1.png", "val/cat/2.png"], [("cat", "pool"), ("cat", "test")]),
        (["train/c/1.png", "val/c/2.png", "test/c/3.png"], [("c", "pool"), ("c", "pool"), ("c", "test")]),
        (["train/c/1.png", "val/c/2.png", "test/3.png"], [("c", "pool"), ("c", "test"), (None, "test")]),
        (["train/c/1.png", "val/c/2.png", "test/images/3.png"], [("c", "pool"), ("c", "test"), ("images", "test")]),
        (["Train/c/1.png", "Test/c/2.png"], [("c", "pool"), ("c", "test")]),
        (["train/1.png", "test/2.png"], [(None, "pool"), (None, "test")]),
        (["train/c/1.png"], [("c", "pool")]),
        (["test/c/1.png", "other/c/2.png"], [("test", "pool"), ("other", "pool")]),
        (["train/1.png", "cat/2.png"], [("train", "pool"), ("cat", "pool")]),
    ],
)
def test_split_folders_are_recognised(root, names, expected):
    fill(root / "pics", *names)
    for source in every_way(root):
        assert placed(source) == dict(zip(names, expected, strict=True))


def test_a_single_folder_around_everything_is_looked_through(root):
    fill(root / "pics", "outer/inner/cat/1.png", "outer/inner/dog/2.png", ".DS_Store", "outer/Thumbs.db")
    for source in every_way(root, prefix=""):
        assert placed(source) == {"cat/1.png": ("cat", "pool"), "dog/2.png": ("dog", "pool")}


def test_hidden_files_are_skipped_and_counted(root):
    fill(root / "pics", "a.png", "b.png", ".hidden.png", "Thumbs.db", ".git/x.png", "__MACOSX/._a.png")
    sources = list(every_way(root))
    for source in sources:
        assert list(placed(source)) == ["a.png", "b.png"]
        assert source.problems == []
    assert sources[0].n_hidden == 4


def test_the_order_is_the_same_each_time_and_problems_start_anew(root):
    fill(root / "pics", *[f"{c}/{n}.png" for c in "ba" for n in range(5)], "note.txt")
    source = opened(root, str(root / "pics"))
    first = [entry.path for entry in source.entries()]
    assert first == sorted(first) == [entry.path for entry in source.entries()]
    assert source.count() == 10 and [problem.path for problem in source.problems] == ["note.txt"]


def test_same_pictures_have_the_same_path_and_content_however_they_come(root):
    names = [f"{c}/{n}.png" for c in ("cat", "dog") for n in range(3)]
    fill(root / "pics", *names)
    (root / "pics" / "m.csv").write_text("path,label\n" + "".join(f"./{name},{name[:3]}\n" for name in names), "utf-8")
    stack = np.stack([picture(n) for n in range(6)])
    np.savez(root / "a.npz", images=stack, paths=names, labels=[n[:3] for n in names])
    manifest = opened(root, str(root / "pics" / "m.csv"))
    (root / "scratch2").mkdir()
    ways = [*every_way(root), manifest, opened(root, str(root / "a.npz"), "scratch2")]
    found = [{(e.path, e.label, content_hash(read_entry(e)[0].pixels)) for e in way.entries()} for way in ways]
    assert len(found[0]) == 6
    assert all(pairs == found[0] for pairs in found)


@pytest.mark.parametrize(
    "name",
    [
        "new\nline.png",
        "\u202egnp.exe.png",
        "\U0001f600.png",
        "x" * 251 + ".png",
        "CON.png",
        "trailing..png",
        " space .png",
        "<img src=x onerror=alert(1)>.png",
        "=HYPERLINK(1).png",
        "'; DROP TABLE x;--.png",
        "%2e%2e%2fetc.png",
        "caf\u00e9.png",
        "tab\t.png",
    ],
)
def test_strange_names_survive(root, name):
    fill(root / "pics", name, "other.png")
    for source in every_way(root):
        entries = {entry.path: entry for entry in source.entries()}
        assert name in entries and source.problems == []
        assert np.array_equal(read_entry(entries[name])[0].pixels, picture(0))


def test_a_decomposed_name_is_spelt_composed_and_still_found(root):
    fill(root / "pics", "cafe\u0301/x.png", "b/y.png")
    for source in every_way(root):
        entries = {entry.path: entry for entry in source.entries()}
        assert entries["caf\u00e9/x.png"].label == "caf\u00e9"
        assert np.array_equal(read_entry(entries["caf\u00e9/x.png"])[0].pixels, picture(0))


def test_unicode_twins_are_left_out_and_case_twins_are_kept(root):
    fill(root / "pics", "caf\u00e9.png", "cafe\u0301.png", "a.png", "A.png")
    source = opened(root, str(root / "pics"))
    assert list(placed(source)) == ["A.png", "a.png"]
    assert [problem.code for problem in source.problems] == ["NAME_TWIN"] * 4


def test_a_link_inside_the_folder_is_read(root):
    fill(root / "pics", "cat/1.png", "dog/2.png")
    (root / "pics/dog/again.png").symlink_to("../cat/1.png")
    entries = {entry.path: entry for entry in opened(root, str(root / "pics")).entries()}
    assert np.array_equal(read_entry(entries["dog/again.png"])[0].pixels, picture(0))


def test_a_file_that_becomes_a_link_outside_is_refused_when_read(root):
    (root / "secret.png").write_bytes(GOOD)
    fill(root / "pics", "a.png", "b.png")
    entry = next(iter(opened(root, str(root / "pics")).entries()))
    (root / "pics/a.png").unlink()
    (root / "pics/a.png").symlink_to(root / "secret.png")
    with pytest.raises(UnsafePathError):
        read_entry(entry)


def test_a_file_that_vanishes_is_named(root):
    fill(root / "pics", "a.png", "b.png")
    entry = next(iter(opened(root, str(root / "pics")).entries()))
    (root / "pics/a.png").unlink()
    with pytest.raises(SourceError) as caught:
        read_entry(entry)
    assert caught.value.code == "FILE_MISSING"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_rights_is_listed(root):
    fill(root / "pics", "cat/1.png", "dog/2.png")
    (root / "pics/cat").chmod(0)
    try:
        source = opened(root, str(root / "pics"))
        assert list(placed(source)) == ["dog/2.png"]
        assert [problem.code for problem in source.problems] == ["FOLDER_UNREADABLE"]
    finally:
        (root / "pics/cat").chmod(0o755)


def test_a_folder_that_cannot_be_listed_is_a_problem(root, monkeypatch):
    fill(root / "pics", "cat/1.png", "dog/2.png")
    source = opened(root, str(root / "pics"))

    def refusing(path):
        if path.name == "cat":
            raise PermissionError(13, "Permission denied")
        return open_real(path)

    monkeypatch.setattr(opening, "open_real", refusing)
    assert list(placed(source)) == ["dog/2.png"]
    assert [(problem.path, problem.code) for problem in source.problems] == [("cat", "FOLDER_UNREADABLE")]


def test_a_folder_many_levels_deep_is_walked(root):
    fill(root / "pics", "/".join(["d"] * 300) + "/x.png", "y.png")
    assert opened(root, str(root / "pics")).count() == 2


def test_tiny_imagenet_is_recognised(root):
    tiny = fill(
        root / "pics/tiny-imagenet-200",
        "train/n01/images/n01_0.JPEG",
        "train/n02/images/n02_0.JPEG",
        "train/n03/images/n03_0.JPEG",
        "val/images/val_0.JPEG",
        "val/images/val_1.JPEG",
        "test/images/test_0.JPEG",
    )
    (tiny / "words.txt").write_text("n01\tgoldfish, Carassius\nn02\tcrane\nn03\tcrane\nn99\tother\n")
    (tiny / "wnids.txt").write_text("n01\nn02\nn03\n")
    (tiny / "train/n01/n01_boxes.txt").write_text("n01_0.JPEG\t0\t0\t1\t1\n")
    (tiny / "val/val_annotations.txt").write_text("val_0.JPEG\tn02\t0\t0\t1\t1\nval_1.JPEG\tn01\t0\t0\t1\t1\n")
    for spec in (str(root / "pics"), f"torchvision:TinyImageNet:{tiny}"):
        source = opened(root, spec)
        assert source.class_names == ("goldfish", "crane n02", "crane n03")
        assert placed(source) == {
            "train/n01/images/n01_0.JPEG": ("goldfish", "pool"),
            "train/n02/images/n02_0.JPEG": ("crane n02", "pool"),
            "train/n03/images/n03_0.JPEG": ("crane n03", "pool"),
            "val/images/val_0.JPEG": ("crane n02", "test"),
            "val/images/val_1.JPEG": ("goldfish", "test"),
        }
        assert source.problems == []


def test_a_zip_member_longer_than_one_piece_is_read_whole(root):
    """Zeros unpack to far more than goes in: the last pieces come without any input left."""
    pixels = np.zeros((1500, 1500, 3), np.uint8)
    pixels[::100] = 7
    data = encoded("BMP", pixels)
    with zipfile.ZipFile(root / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.bmp", data)
        archive.writestr("stored.bmp", data, zipfile.ZIP_STORED)
    for entry in opened(root, str(root / "a.zip")).entries():
        decoded, original = read_entry(entry)
        assert original == data and np.array_equal(decoded.pixels, pixels)


def test_a_zip_written_as_a_stream_with_zip64_is_read(root):
    class Unseekable:
        def __init__(self, file):
            self._file = file

        def write(self, data):
            return self._file.write(data)

        def flush(self):
            self._file.flush()

    with open(root / "a.zip", "wb") as file, zipfile.ZipFile(Unseekable(file), "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("a.png", "w", force_zip64=True) as member:
            member.write(GOOD)
        archive.writestr("b.png", GOOD)
    entries = list(opened(root, str(root / "a.zip")).entries())
    assert [read_entry(entry)[1] for entry in entries] == [GOOD, GOOD]


def test_an_archive_replaced_during_the_import_is_noticed(root):
    zipped(fill(root / "pics", "a.png", "b.png"), root / "a.zip")
    entry = next(iter(opened(root, str(root / "a.zip")).entries()))
    read_entry(entry)
    (root / "a.zip").write_bytes(b"something else entirely, and longer than a header")
    with pytest.raises(SourceError) as caught:
        read_entry(entry)
    assert caught.value.code == "ZIP_CORRUPT"


def test_of_a_file_uploaded_twice_the_last_arrival_counts(root):
    up = uploaded(fill(root / "pics", "a.png", "b.png"), root / "up")
    (up / "files/2").write_bytes(encoded(pixels=picture(7)))
    with open(up / "index.jsonl", "a") as index:
        index.write('{"file": "2", "name": "a.png"}\n')
    entries = list(opened(root, SourceSpec("uploads", str(up))).entries())
    assert [entry.path for entry in entries] == ["a.png", "b.png"]
    assert np.array_equal(read_entry(entries[0])[0].pixels, picture(7))


@pytest.mark.parametrize(
    ("text", "kind", "location", "options"),
    [
        ("demo", "demo", "", {}),
        ("clipart", "clipart", "", {}),
        ("torchvision:CIFAR10", "torchvision", "CIFAR10", {}),
        ("torchvision:CIFAR10:/data/x:y", "torchvision", "CIFAR10", {"root": "/data/x:y"}),
        ("pool.ZIP", "zip", "pool.ZIP", {}),
        ("m.csv", "manifest", "m.csv", {}),
        ("m.parquet", "manifest", "m.parquet", {}),
        ("a.npz", "npz", "a.npz", {}),
        ("some/folder", "folder", "some/folder", {}),
    ],
)
def test_what_a_person_types_is_understood(text, kind, location, options):
    assert parse_source(text) == SourceSpec(kind, location, options)


def test_a_folder_named_like_an_archive_is_a_folder(root):
    fill(root / "pics.zip", "a.png")
    assert parse_source(str(root / "pics.zip")).kind == "folder"


def test_half_a_letter_is_refused_in_words():
    with pytest.raises(UnsafePathError, match="half a character"):
        parse_source("~\ud800")


def test_unknown_kinds_and_options_are_refused(root):
    with pytest.raises(UnknownNameError, match="Did you mean 'folder'"):
        opened(root, SourceSpec("foldr", "x"))
    with pytest.raises(InvalidSettingError, match="no option 'speed'"):
        opened(root, SourceSpec("folder", str(root), {"speed": 1}))
    with pytest.raises(InvalidSettingError, match="no option 'guard'"):
        opened(root, SourceSpec("folder", str(root), {"guard": PathGuard((Path("/"),))}))
    assert {"folder", "zip", "manifest", "npz", "demo", "uploads", "torchvision"} <= set(SOURCES)


def test_specs_go_through_json():
    spec = SourceSpec("folder", "x", {"a": 1}, ({"name": "corrupt", "share": 0.3},))
    assert SourceSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_sources_without_any_picture_are_empty_not_broken(root):
    (root / "pics/.hidden").write_bytes(b"")
    (root / "pics/m.csv").write_text("path\nhttp://x/y.png\n")
    zipped(root / "pics", root / "a.zip")
    with zipfile.ZipFile(root / "empty.zip", "w"):
        pass
    for spec in (str(root / "pics"), str(root / "a.zip"), str(root / "empty.zip"), str(root / "pics/m.csv")):
        source = opened(root, spec)
        assert source.count() == 0 and list(source.entries()) == []


CAMERA = ("DCIM/100CANON/a.png", "2024-05-01/b.png", "cat/c.png", "7/d.png", "_unlabeled/e.png", "f.png")


def test_dates_and_a_cameras_folders_are_no_classes_unless_a_person_says_so(root):
    folder = fill(root / "pics", *CAMERA)
    archive = zipped(folder, root / "pics.zip")
    for kind, location in (("folder", folder), ("zip", archive)):
        wanted = {
            "auto": {"7", "cat", None},
            "yes": {"2024-05-01", "7", "DCIM", "cat", None},
            "no": {None},
        }
        for choice, labels in wanted.items():
            spec = SourceSpec(kind, str(location), {"folder_labels": choice})
            assert {entry.label for entry in opened(root, spec).entries()} == labels
        spec = SourceSpec(kind, str(location))
        names = class_folders(spec, guard=PathGuard((root,)), scratch=root / "scratch")
        assert names == ("2024-05-01", "7", "DCIM", "cat")
    with pytest.raises(InvalidSettingError):
        opened(root, SourceSpec("folder", str(folder), {"folder_labels": "maybe"}))


def test_class_folders_of_splits_are_those_within(root):
    fill(root / "pics", "train/cat/a.png", "test/dog/b.png")
    spec = SourceSpec("folder", str(root / "pics"))
    assert class_folders(spec, guard=PathGuard((root,)), scratch=root / "scratch") == ("cat", "dog")
    assert class_folders(SourceSpec("demo"), guard=PathGuard((root,)), scratch=root / "scratch") == ()
