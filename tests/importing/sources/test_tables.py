"""Manifests and arrays: encodings, columns, rows, splits."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semiprune_core.importing.sources import SourceSpec, clipart, open_source
from semiprune_core.importing.sources.manifest import preview
from semiprune_core.importing.sources.reading import read_entry
from semiprune_core.paths import PathGuard
from tests.hostile_inputs.cases import GOOD, picture


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    for name in ("a.png", "é.png", "sub/b.png", "two\nlines.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(GOOD)
    return tmp_path.resolve()


def manifest(folder: Path, data: bytes | str, **options):
    (folder / "m.csv").write_bytes(data if isinstance(data, bytes) else data.encode())
    return source(folder, SourceSpec("manifest", str(folder / "m.csv"), options))


def source(root: Path, spec: SourceSpec):
    return open_source(spec, guard=PathGuard((root,)), scratch=root / "scratch")


def rows(opened) -> list[tuple[str, str | None, str]]:
    return [(entry.path, entry.label, entry.split) for entry in opened.entries()]


TEXT = 'path;label\n"é.png";Größe\na.png;cat\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252"])
def test_encodings_are_found_out(root, encoding):
    assert rows(manifest(root, TEXT.encode(encoding))) == [("é.png", "Größe", "pool"), ("a.png", "cat", "pool")]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_separators_and_line_ends_are_found_out(root, separator, end):
    text = end.join(
        [f"path{separator}label", f"a.png{separator}x, y; z" if separator == "\t" else f"a.png{separator}x", ""]
    )
    opened = manifest(root, text)
    assert opened.count() == 1 and rows(opened)[0][0] == "a.png"


def test_quoted_newlines_and_the_numbers_of_later_rows(root):
    opened = manifest(root, 'path,label\n"two\nlines.png",cat\nnothing.png,dog\n')
    assert rows(opened) == [("two\nlines.png", "cat", "pool")]
    assert opened.problems[0].code == "FILE_MISSING" and "Row 4 " in opened.problems[0].message


def test_columns_are_guessed_chosen_or_refused(root):
    text = "Image,Category,Subset,extra\na.png,cat,val,1\nsub\\b.png,,train\n"
    assert rows(manifest(root, text)) == [("a.png", "cat", "test"), ("sub/b.png", None, "pool")]
    chosen = {"path_column": "Image", "label_column": "extra", "split_column": None}
    assert rows(manifest(root, text, **chosen)) == [("a.png", "1", "pool"), ("sub/b.png", None, "pool")]
    assert rows(manifest(root, text, label_column=None))[0] == ("a.png", None, "test")


def test_paths_have_one_spelling_and_absolute_ones_inside_are_taken(root):
    opened = manifest(root, f"path\n./sub//b.png\n{root}/a.png\nsub/../é.png\n")
    assert [path for path, _, _ in rows(opened)] == ["sub/b.png", "a.png", "é.png"]
    assert opened.count() == 3 and opened.problems == []


def test_paths_start_at_the_root_that_was_chosen(root):
    assert rows(manifest(root, "path\nb.png\n", root=str(root / "sub"))) == [("b.png", None, "pool")]


def test_of_rows_with_the_same_path_the_first_counts(root):
    opened = manifest(root, "path,label\na.png,cat\na.png,dog\nsub/b.png,x\n./a.png,cat\n")
    assert opened.count() == 2
    assert rows(opened) == rows(opened) == [("a.png", "cat", "pool"), ("sub/b.png", "x", "pool")]
    assert [problem.code for problem in opened.problems] == ["DUPLICATE_ROW", "DUPLICATE_ROW"]


def test_parquet_is_read_like_csv(root):
    table = {"file_name": ["a.png", "sub/b.png"], "label": [3, None], "split": ["train", "test"]}
    pq.write_table(pa.table(table), root / "m.parquet")
    opened = source(root, SourceSpec("manifest", str(root / "m.parquet")))
    assert rows(opened) == [("a.png", "3", "pool"), ("sub/b.png", None, "test")]


def test_the_preview_shows_columns_rows_and_guesses(root):
    (root / "m.csv").write_text("filename,class,when\n" + "".join(f"{n}.png,c,{n}\n" for n in range(50)))
    seen = preview(root / "m.csv", PathGuard((root,)))
    assert seen.columns == ("filename", "class", "when") and len(seen.rows) == 20
    assert (seen.path_column, seen.label_column, seen.split_column) == ("filename", "class", None)
    assert seen.rows[3] == {"filename": "3.png", "class": "c", "when": "3"}


def npz(root: Path, **columns):
    np.savez_compressed(root / "a.npz", **columns)
    return source(root, SourceSpec("npz", str(root / "a.npz")))


STACK = np.stack([picture(n, (8, 10)) for n in range(12)])


def test_arrays_have_numbered_paths_and_named_labels(root):
    opened = npz(root, images=STACK, labels=np.arange(12) % 3 - 1, class_names=["no", "yes"])
    assert rows(opened)[:4] == [
        ("00.png", None, "pool"),
        ("01.png", "no", "pool"),
        ("02.png", "yes", "pool"),
        ("03.png", None, "pool"),
    ]
    assert opened.class_names == ("no", "yes") and opened.count() == 12
    decoded, original = read_entry(list(opened.entries())[5])
    assert np.array_equal(decoded.pixels, STACK[5]) and original.startswith(b"\x89PNG") and decoded.format == "array"


def test_labels_may_be_text_or_bare_numbers(root):
    assert rows(npz(root, images=STACK[:3], labels=["b", "", "a"]))[1:] == [
        ("1.png", None, "pool"),
        ("2.png", "a", "pool"),
    ]
    bare = npz(root, images=STACK[:2], labels=[2, 0])
    assert bare.class_names == ("0", "1", "2") and rows(bare)[0] == ("0.png", "2", "pool")


@pytest.mark.parametrize("shape", [(3, 8, 8), (3, 8, 8, 1), (3, 8, 8, 3), (3, 8, 8, 4)])
def test_all_forms_of_images_are_read(root, shape):
    stack = picture(1, shape)
    entries = list(npz(root, images=stack, split=["train", "test", "val"]).entries())
    assert [entry.split for entry in entries] == ["pool", "test", "test"]
    pixels = read_entry(entries[2])[0].pixels
    assert pixels.shape == ((8, 8) if shape[-1] in (8, 1) else (8, 8, 3))


def test_the_demo_pool_opens(root):
    opened = source(root, SourceSpec("demo"))
    assert opened.count() == 8000 and len(opened.class_names) == 10 and opened.origin == "packed"
    splits = [entry.split for entry in opened.entries()]
    assert (splits.count("pool"), splits.count("test")) == (6000, 2000)


def test_the_clip_art_opens_with_a_credit_for_each_drawing(root):
    opened = source(root, SourceSpec("clipart"))
    entries = list(opened.entries())
    labels = Counter(entry.label for entry in entries)
    assert opened.count() == len(entries) == 1949 and not opened.problems and opened.origin == "packed"
    assert len(labels) == 15 and labels["food"] == 318 and min(labels.values()) == 42
    lines = clipart.CLIPART.with_suffix(".CREDITS.txt").read_text(encoding="utf-8").splitlines()
    assert {entry.path for entry in entries} == {line.split(" | ")[0] for line in lines if line.count(" | ") >= 2}
    assert max(read_entry(entries[0])[0].image.size) == 144


def test_rows_of_a_manifest_do_not_pile_up_in_memory(root):
    """Kept as objects, these rows would take 9 MB and more."""
    with open(root / "m.csv", "w") as file:
        file.write("path,label\n")
        file.writelines(f"folder/image_{n:07d}.png,class {n % 100}\n" for n in range(30_000))
    opened = source(root, SourceSpec("manifest", str(root / "m.csv")))
    tracemalloc.start()
    try:
        assert opened.count() == 30_000
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


def test_json_of_a_preview_is_plain(root):
    (root / "m.csv").write_bytes(b"path\na.png\n")
    assert json.dumps(preview(root / "m.csv").rows) == '[{"path": "a.png"}]'
