"""Data sets as other tools leave them: COCO, YOLO, FiftyOne, Label Studio, Hugging Face."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semiprune_core import cli
from semiprune_core.errors import SourceError
from semiprune_core.exporting import ExportOptions, export_coreset
from semiprune_core.importing.sources import SourceSpec, open_source, parse_source
from semiprune_core.importing.sources.reading import read_entry
from semiprune_core.labeling import open_store
from semiprune_core.paths import PathGuard
from semiprune_core.project.workspace import Workspace
from tests.exporting.conftest import add_scores, imported, select_in
from tests.hostile_inputs.cases import GOOD

ODD = ("+1", "NA", "a/b", "C, D")


@pytest.fixture
def root(tmp_path) -> Path:
    folder = (tmp_path / "set").resolve()
    (tmp_path / "scratch").mkdir()
    folder.mkdir()
    return folder


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(GOOD)


def opened(spec: SourceSpec, root: Path):
    return open_source(spec, guard=PathGuard((root.parent,)), scratch=root.parent / "scratch")


def rows(source) -> list[tuple[str, str | None, str]]:
    return [(entry.path, entry.label, entry.split) for entry in source.entries()]


def given(root: Path, value, /, **options):
    (root / "given.json").write_text(json.dumps(value))
    return opened(SourceSpec("annotations", str(root / "given.json"), options), root)


def test_coco_gives_the_one_class_of_an_image(root):
    put(root, "images/é 1.png", "images/2.png", "images/3.png")
    value = {
        "images": [{"id": 1, "file_name": "é 1.png"}, {"id": 2, "file_name": "2.png"}, {"id": 3, "file_name": "3.png"}],
        "categories": [{"id": 7, "name": "+1"}, {"id": 9, "name": "NA"}],
        "annotations": [{"image_id": 1, "category_id": 7, "bbox": [0, 0, 1, 1]}] * 2
        + [{"image_id": 2, "category_id": number} for number in (7, 9)],
    }
    source = given(root, value)
    assert rows(source) == [("é 1.png", "+1", "pool"), ("2.png", None, "pool"), ("3.png", None, "pool")]
    assert [(problem.path, problem.code) for problem in source.problems] == [("2.png", "SEVERAL_CLASSES")]


def test_fiftyone_names_images_in_data_or_by_full_path(root):
    put(root, "data/one.png", "data/sub/two.png", "far/three.png")
    labels = {"one": 0, "sub/two": {"label": "NA", "confidence": 0.5}, str(root / "data" / "missing.png"): None}
    source = given(root, {"classes": ["+1", "NA"], "labels": labels})
    assert rows(source) == [("one.png", "+1", "pool"), ("sub/two.png", "NA", "pool")]
    far = given(root, {"classes": ["+1"], "labels": {str(root / "far" / "three.png"): 0}}, root=str(root))
    assert rows(far) == [("far/three.png", "+1", "pool")]


def test_label_studio_gives_images_and_their_one_answer(root):
    put(root, "pics/a ü.png", "pics/b.png", "pics/c.png")
    answer = lambda *names: {"result": [{"type": "choices", "value": {"choices": list(names)}}]}  # noqa: E731
    tasks = [
        {"data": {"image": "/data/local-files/?d=pics/a%20%C3%BC.png"}, "annotations": [answer("C, D")]},
        {"data": {"image": "/data/local-files/?d=pics/b.png"}, "annotations": [answer("x"), answer("y")]},
        {"image": "/data/local-files/?d=pics/c.png", "choice": "NA", "id": 1},
        {"data": {"image": "https://example.org/d.png"}, "annotations": [answer("x")]},
    ]
    source = given(root, tasks)
    assert rows(source) == [
        ("pics/a ü.png", "C, D", "pool"),
        ("pics/b.png", None, "pool"),
        ("pics/c.png", "NA", "pool"),
    ]
    assert {problem.code for problem in source.problems} == {"SEVERAL_CLASSES", "URL_NOT_SUPPORTED"}


@pytest.mark.parametrize("text", ["{", "{}", "[]", "3", '{"images": [], "categories": []}', "[" * 100_000])
def test_json_that_speaks_of_no_image_is_refused_in_words(root, text):
    (root / "given.json").write_text(text)
    with pytest.raises(SourceError, match=r"given\.json"):
        opened(SourceSpec("annotations", str(root / "given.json")), root)


def test_no_file_leads_out_of_its_folder(root):
    put(root.parent, "secret.png")
    put(root, "in.png")
    (root / "images").symlink_to(root.parent)
    source = given(
        root,
        {
            "images": [
                {"id": n, "file_name": name} for n, name in enumerate(("secret.png", "../secret.png", "in.png"))
            ],
            "categories": [],
        },
    )
    assert [path for path, _, _ in rows(source)] == ["in.png"] and len(source.problems) == 2


def test_a_yolo_classification_folder_is_a_folder_with_splits(root):
    put(root, "train/cat/1.png", "train/dog/2.png", "val/cat/3.png")
    assert sorted(rows(opened(parse_source(str(root)), root))) == [
        ("train/cat/1.png", "cat", "pool"),
        ("train/dog/2.png", "dog", "pool"),
        ("val/cat/3.png", "cat", "test"),
    ]


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_a_hugging_face_folder_with_metadata(root, form):
    put(root, "train/images/1.png", "train/images/2.png", "test/3.png")
    for split, table in (
        ("train", {"file_name": ["images/1.png", "images/2.png"], "label": ["NA", "+1"]}),
        ("test", {"file_name": ["3.png"], "label": ["NA"]}),
    ):
        path = root / split / f"metadata.{form}"
        if form == "jsonl":
            lines = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        elif form == "csv":
            path.write_text("\n".join(",".join(row) for row in [list(table), *zip(*table.values(), strict=True)]))
        else:
            pq.write_table(pa.table(table), path)
    source = opened(parse_source(f"hf:{root}"), root)
    assert sorted(rows(source)) == [
        ("test/3.png", "NA", "test"),
        ("train/images/1.png", "NA", "pool"),
        ("train/images/2.png", "+1", "pool"),
    ]


def test_hugging_face_parquet_files_hold_the_images(root):
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    told = {"info": {"features": {"label": {"names": ["+1", "NA"], "_type": "ClassLabel"}}}}
    for split, labels in (("train", [1, 0, 1]), ("test", [0])):
        images = pa.array([{"bytes": GOOD, "path": "x.png"}] * len(labels), kind)
        table = pa.table({"image": images, "label": labels})
        (root / "data").mkdir(exist_ok=True)
        path = root / "data" / f"{split}-00000-of-00001.parquet"
        pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps(told)}), path)
    source = opened(parse_source(f"hf:{root}"), root)
    assert source.count() == 4 and source.origin == "packed"
    assert sorted(rows(source)) == [
        ("test/0-0000000.png", "+1", "test"),
        ("train/1-0000000.png", "NA", "pool"),
        ("train/1-0000001.png", "+1", "pool"),
        ("train/1-0000002.png", "NA", "pool"),
    ]
    assert read_entry(next(source.entries()))[1] == GOOD


def test_a_name_on_the_hub_says_how_to_get_it(root):
    with pytest.raises(SourceError, match="hf download org/name --repo-type dataset"):
        opened(parse_source("hf:org/name"), root)


@pytest.mark.parametrize("form", ["huggingface", "fiftyone", "labelstudio"])
def test_our_own_export_is_a_source_again_with_every_label(form, tmp_path):
    """Odd class names and all, by way of three tools' forms."""
    project = add_scores(imported(tmp_path / "in", "folder", _pictures(tmp_path / "in" / "p")), ODD)
    run = select_in(project, 0.25)
    folder = export_coreset(project, run, form, ExportOptions(images="copy")).files["folder"]
    wanted = sorted(export_labels(project, run))
    spec = {
        "huggingface": SourceSpec("hf", str(folder)),
        "fiftyone": SourceSpec("annotations", str(folder / "labels.json")),
        "labelstudio": SourceSpec("annotations", str(folder / "labelstudio.json")),
    }[form]
    (tmp_path / "scratch").mkdir()
    source = open_source(spec, guard=PathGuard((tmp_path,)), scratch=tmp_path / "scratch")
    labels = [entry.label for entry in source.entries()]
    if form == "labelstudio":  # only what people said is a label there
        human = [row["label"] for row in export_rows(project, run) if row["label_source"] == "human"]
        assert sorted(label for label in labels if label) == sorted(human) and len(labels) == len(wanted)
    else:
        assert sorted(labels) == wanted
    assert source.problems == []


def _pictures(folder: Path) -> Path:
    put(folder, *(f"{number}.png" for number in range(12)))
    return folder


def export_rows(project, run):
    path = export_coreset(project, run, "jsonl").files["kept"]
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def export_labels(project, run):
    return [row["label"] for row in export_rows(project, run)]


@pytest.mark.parametrize("labels", ["reference", "human"])
def test_labels_of_a_source_are_a_reference_or_a_persons(labels, root, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SEMIPRUNE_ROOTS", str(tmp_path))
    put(root, "cat/1.png", "dog/2.png", "loose.png")
    home = ["--home", str(tmp_path / "home"), "--json", "--no-features", "--workers", "1"]
    words = ["new", "Given", "--from", str(root), "--labels", labels, "--annotator", "ada"]
    assert cli.main([*words, *home]) == 0
    said = json.loads(capsys.readouterr().out)
    project = Workspace.open(tmp_path / "home").project("given")
    held = open_store(project).held() if labels == "human" else []
    assert said["human_labels"] == len(held) == (2 if labels == "human" else 0)
    assert {one.annotator for one in held} <= {"ada"} and project.pool().class_names == ("cat", "dog")
