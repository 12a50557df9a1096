"""Every format is opened by the tool it is for, or read by that tool's documented schema."""

import csv
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from semiprune_core.errors import InvalidSettingError, MissingStepError, UnknownNameError, WorkspaceError
from semiprune_core.exporting import (
    COLUMNS,
    FORMATS,
    ExportOptions,
    estimate_bytes,
    export_coreset,
    export_csv,
    list_exports,
    open_content,
)
from semiprune_core.exporting.trees import folder_names, image_name, safe_name
from semiprune_core.labeling import Event, open_store
from semiprune_core.labeling.exchange.label_studio import read_label_studio_rows
from semiprune_core.labeling.exchange.rows import Problems
from semiprune_core.progress import Collected, Stopped
from semiprune_core.project.pool import export_id
from semiprune_core.project.spreadsheet import TRIGGERS
from semiprune_core.scores import SCORES
from tests.exporting.conftest import select_in


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


@pytest.fixture
def kept(project, select):
    """The rows every format must agree with."""
    return read_csv(export_csv(project, select(), exact=True).kept)


@pytest.mark.parametrize("name", list(FORMATS))
def test_every_format_names_its_coreset_and_content_says_its_labels_and_comes_out_the_same_twice(name, project, select):
    run = select()
    export = export_coreset(project, run, name)
    said = export.manifest
    assert said["counts"] == {"n_pool": 40, "n_kept": 20, "n_human": 3, "n_pseudo": 17}
    assert (said["coreset"], said["coreset_hash"], said["format"]) == (run.artifact.id, run.artifact.hash, name)
    assert (said["method"], said["pruning_ratio"], said["seed"]) == ("semi_aum_cutoff", 0.5, 0)
    assert said["label_snapshot"] == "ab" * 32 and said["inputs"] == run.artifact.inputs
    assert said["versions"]["numpy"] == np.__version__
    assert said["label_source"]
    for role, path in export.files.items():
        entry = said["files"][role]
        assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]
        assert path.name.startswith(run.artifact.id) and entry["sha256"][:12] in path.name
        assert path.stat().st_size == entry["bytes"]
    names = sorted(path.name for path in project.exports_folder.iterdir())
    again = export_coreset(project, run, name)
    assert sorted(path.name for path in project.exports_folder.iterdir()) == names
    assert (again.path, again.manifest) == (export.path, export.manifest)
    facts = FORMATS.facts(name)
    assert facts["explain"].endswith(".") and facts["title"]


@pytest.mark.parametrize("name", list(FORMATS))
def test_the_estimate_before_writing_is_about_what_is_written(name, project, select):
    run = select(0.2)
    written = export_coreset(project, run, name).n_bytes
    assert estimate_bytes(open_content(project, run), name, ExportOptions()) == pytest.approx(written, rel=0.3)
    assert not list(project.exports_folder.glob(".*"))


def test_parquet_holds_the_same_rows_with_types(project, select, kept):
    table = pq.read_table(export_coreset(project, select(), "parquet").files["kept"])
    assert table.column_names[: len(COLUMNS)] == list(COLUMNS)
    assert {*table.column_names} == {*COLUMNS, *SCORES}
    assert table["image_id"].to_pylist() == [row["image_id"] for row in kept]
    assert table["label"].to_pylist() == [row["label"] for row in kept]
    assert (
        str(table.schema.field("dual").type) in ("double", "float") and str(table.schema.field("rank").type) == "int64"
    )
    assert pq.read_metadata(export_coreset(project, select(), "parquet").files["all"]).num_rows == 40


def test_json_lines_hold_the_same_rows(project, select, kept):
    lines = export_coreset(project, select(), "jsonl").files["kept"].read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    for key in ("image_id", "path", "label", "label_source"):
        assert [row[key] for row in rows] == [row[key] for row in kept]


def test_lists_of_paths_labels_and_sources_agree_line_by_line(project, select, kept, tmp_path):
    found = export_coreset(project, select(), "paths").files
    columns = {"paths": "path", "labels": "label", "sources": "label_source"}
    for role, column in columns.items():
        assert found[role].read_text("utf-8").splitlines() == [row[column] for row in kept]
    absolute = export_coreset(project, select(), "paths", ExportOptions(absolute=True)).files["paths"]
    assert [Path(line).is_file() for line in absolute.read_text().splitlines()] == [True] * 20


def test_indices_are_positions_best_first(project, select):
    run = select()
    found = export_coreset(project, run, "indices")
    indices, labels, human = (np.load(found.files[role]) for role in ("indices", "labels", "human"))
    assert indices.tolist() == run.coreset().indices.tolist()
    assert human.tolist() == (indices % 5 == 0).tolist()
    assert set(labels) <= {0, 1, 2} and found.manifest["class_names"] == ["cat", "dog", "owl"]


@pytest.mark.slow  # imports torch
@pytest.mark.parametrize("way", ["copy", "hardlink", "symlink"])
def test_torchvision_reads_the_image_folder(way, project, select, kept):
    from torchvision.datasets import ImageFolder

    export = export_coreset(project, select(), "imagefolder", ExportOptions(images=way))
    root = export.files["folder"]
    data = ImageFolder(root)
    assert data.classes == (root / "classes.txt").read_text().split() == ["cat", "dog", "owl"]
    assert sorted(data.classes[label] for _, label in data.samples) == sorted(row["label"] for row in kept)
    image, _ = data[0]
    assert image.size == (32, 24)
    rows = {row["file_name"]: row for row in read_csv(root / "labels.csv")}
    assert {os.path.relpath(path, root) for path, _ in data.samples} == set(rows)
    assert sorted(row["label_source"] for row in rows.values()) == sorted(row["label_source"] for row in kept)
    original = project.pool().original_file(int(select().coreset().indices.min()))
    one = next(path for path in root.rglob("*.png") if path.name.startswith(original.stem))
    assert (one.is_symlink(), one.samefile(original)) == (way == "symlink", way != "copy")
    done = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=root, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_zip_holds_the_same_tree_as_the_folder_with_its_story_inside(project, select):
    folder = export_coreset(project, select(), "imagefolder", ExportOptions(images="copy")).files["folder"]
    packed = export_coreset(project, select(), "imagefolder", ExportOptions(images="zip")).files["images"]
    with zipfile.ZipFile(packed) as file:
        inside = {name: file.read(name) for name in file.namelist()}
    assert inside == {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")} | {
        "SHA256SUMS": (folder / "SHA256SUMS").read_bytes()
    }
    assert json.loads(inside["coreset.json"])["counts"]["n_human"] == 3


def test_a_class_that_vanished_is_warned_of_and_keeps_its_place_in_the_list(project, select):
    run = select(0.95)
    content = open_content(project, run)
    assert content.vanished()
    export = export_coreset(project, run, "imagefolder", ExportOptions(images="copy"))
    assert len(export.manifest["warnings"]) == len(content.vanished())
    assert f"The class '{content.vanished()[0]}' has no image" in export.manifest["warnings"][0]
    root = export.files["folder"]
    assert (root / "classes.txt").read_text().split() == ["cat", "dog", "owl"]
    assert not (root / content.vanished()[0]).exists()


def test_packed_originals_can_be_copied_but_not_linked(hostile):
    run = select_in(hostile)
    for name, options in (("imagefolder", ExportOptions(images="symlink")), ("lightly", None)):
        with pytest.raises(InvalidSettingError, match="packed"):
            export_coreset(hostile, run, name, options)
    assert list(hostile.exports_folder.iterdir()) == []
    folder = export_coreset(hostile, run, "fiftyone", ExportOptions(images="copy")).files["folder"]
    assert len(list(folder.rglob("*.png"))) == 6


@pytest.mark.slow
def test_datasets_reads_the_hugging_face_folder(project, select, kept, tmp_path):
    folder = export_coreset(project, select(), "huggingface", ExportOptions(images="copy")).files["folder"]
    code = (
        "import json, sys; from datasets import load_dataset\n"
        "data = load_dataset('imagefolder', data_dir=sys.argv[1])\n"
        "rows = [[r['image_id'], r['label'], r['label_source'], r['image'].size] for r in data['train']]\n"
        "print(json.dumps([list(data), rows]))"
    )
    quiet = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf"), "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, folder], env={**os.environ, **quiet}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    splits, rows = json.loads(done.stdout.splitlines()[-1])
    assert splits == ["train"]
    assert sorted(rows) == sorted([row["image_id"], row["label"], row["label_source"], [32, 24]] for row in kept)


def test_hugging_face_metadata_names_files_beside_it(project, select, kept):
    folder = export_coreset(project, select(), "huggingface", ExportOptions(images="copy")).files["folder"] / "train"
    rows = [json.loads(line) for line in (folder / "metadata.jsonl").read_text("utf-8").splitlines()]
    assert all((folder / row["file_name"]).is_file() for row in rows)
    keys = ("image_id", "path", "label", "label_source")
    assert [[row[key] for key in keys] for row in rows] == [[row[key] for key in keys] for row in kept]


@pytest.mark.parametrize("way", ["copy", "reference"])
def test_fiftyone_finds_a_label_and_an_image_for_every_id(way, project, select, kept):
    folder = export_coreset(project, select(), "fiftyone", ExportOptions(images=way)).files["folder"]
    said = json.loads((folder / "labels.json").read_text())
    assert said["classes"] == ["cat", "dog", "owl"]
    if way == "copy":
        images = {path.stem: path for path in (folder / "data").iterdir()}
    else:
        images = {name: Path(name) for name in said["labels"]}
        assert [path.name for path in (folder / "data").iterdir()] == [".keep"]  # FiftyOne asks for the folder
    assert set(images) == set(said["labels"]) and all(path.is_file() for path in images.values())
    answers = {label["attributes"]["image_id"]: label for label in said["labels"].values()}
    for row in kept:
        label = answers[row["image_id"]]
        assert said["classes"][label["label"]] == row["label"]
        assert label["attributes"]["label_source"] == row["label_source"]
        assert 0 <= label["confidence"] <= 1


def test_label_studio_tasks_come_by_doubt_with_predictions_and_human_answers_last(project, select, kept):
    export = export_coreset(project, select(), "labelstudio")
    data = export.files["labelstudio"].read_bytes()
    tasks = json.loads(data)
    by_id = {row["image_id"]: row for row in kept}
    assert len(tasks) == 20
    model = [task for task in tasks if "annotations" not in task]
    assert [task["data"]["label_source"] for task in tasks] == ["pseudo"] * 17 + ["human"] * 3
    scores = [task["predictions"][0]["score"] for task in model]
    assert scores == sorted(scores)
    for task in tasks:
        row = by_id[task["data"]["image_id"]]
        assert unquote(task["data"]["image"].removeprefix("/data/local-files/?d=pictures/")) == row["path"]
        [prediction] = task["predictions"]
        [result] = prediction["result"]
        assert (result["type"], result["from_name"], result["to_name"]) == ("choices", "choice", "image")
        assert result["value"] == {"choices": [row["pseudo_label"]]}
    problems = Problems()
    rows = list(read_label_studio_rows(data, "me", problems))
    assert {(row.image_id, row.label) for row in rows} == {
        (row["image_id"], row["label"]) for row in kept if row["label_source"] == "human"
    }
    config = export.files["labelstudio-config"].read_text()
    assert config.count("<Choice ") == 3 and 'toName="image"' in config


def test_class_probabilities_belong_to_the_kept_rows(project, select, kept):
    found = export_coreset(project, select(), "probabilities")
    probs, ids, labels, human = (np.load(found.files[role]) for role in ("probs", "ids", "labels", "human"))
    names = found.manifest["class_names"]
    assert probs.shape == (20, 3) and probs.dtype == np.float32 and np.allclose(probs.sum(1), 1)
    assert ids.tolist() == [row["image_id"] for row in kept]
    assert [names[label] for label in labels] == [row["label"] for row in kept]
    assert [names[best] for best in probs.argmax(1)] == [row["pseudo_label"] for row in kept]
    assert human.tolist() == [row["label_source"] == "human" for row in kept]


def test_a_class_that_was_merged_brings_its_probability_along(project, select):
    run, store = select(), open_store(project)
    store.classes.add(["cat", "dog", "owl", "yak"], annotator="ada")
    before = open_content(project, run).class_probs(np.arange(4))
    numbers = {one.name: one.class_id for one in store.classes.all()}
    image = int(project.pool().ids[9])
    store.append([Event(event_id="y", annotator="ada", action="label", image_id=image, class_id=numbers["yak"])])
    store.classes.merge(numbers["owl"], into=numbers["cat"], annotator="ada")
    content = open_content(project, run)
    probs = content.class_probs(np.arange(4))
    place = {name: number for number, name in enumerate(content.class_names)}
    assert np.allclose(probs[:, place["cat"]], before[:, 0] + before[:, 2]) and np.allclose(probs.sum(1), 1)
    assert (probs[:, place["yak"]] == 0).all()


def test_a_run_from_before_probabilities_were_kept_says_so(project, select):
    run = select()
    for name in ("probs.npy", "probs_classes.npy"):
        project.latest("pseudo").path(name).unlink()
    with pytest.raises(
        MissingStepError, match=rf"before class probabilities were kept.*semiprune train {project.name}\)"
    ):
        export_coreset(project, run, "probabilities")


def test_lightly_gets_absolute_paths_and_sources(project, select, kept):
    rows = read_csv(export_coreset(project, select(), "lightly").files["lightly"])
    assert list(rows[0]) == ["file_path_abs", "class_name", "confidence", "annotation_source"]
    assert all(Path(row["file_path_abs"]).is_file() for row in rows)
    assert [row["annotation_source"] for row in rows] == [row["label_source"] for row in kept]


def test_no_cell_of_the_safe_csv_is_a_formula_and_the_exact_one_gives_every_text_back(hostile):
    run = select_in(hostile, 0.0)
    content = open_content(hostile, run)
    assert {path[0] for path in content.pool.column("path").to_pylist()} == set(TRIGGERS)
    safe, exact = (export_csv(hostile, run, exact=exact) for exact in (False, True))
    texts = [column for column in COLUMNS if column in ("image_id", "path", "label", "label_source", "pseudo_label")]
    for path in (safe.kept, safe.everything):
        cells = [row[column] for row in read_csv(path) for column in texts]
        assert len(cells) == 60 and not [cell for cell in cells if cell.startswith(TRIGGERS)]
    rows = read_csv(exact.everything)
    assert [row["path"] for row in rows] == content.pool.column("path").to_pylist()
    assert [row["label"] for row in rows] == [content.class_names[label] for label in content.labels.labels]
    assert [row["pseudo_label"] for row in rows] == [content.class_names[label] for label in content.predicted]
    assert {safe.kept, safe.everything}.isdisjoint({exact.kept, exact.everything})
    root = export_coreset(hostile, run, "imagefolder", ExportOptions(images="copy")).files["folder"]
    cells = [cell for row in read_csv(root / "labels.csv") for cell in row.values() if cell.startswith(TRIGGERS)]
    assert not [cell for cell in cells if not is_number(cell)]


def test_what_no_spreadsheet_opens_keeps_every_name(hostile):
    run = select_in(hostile, 0.0)
    content = open_content(hostile, run)
    wanted = [content.class_names[label] for label in content.labels.labels]
    assert any(name.startswith(TRIGGERS) for name in wanted)
    root = export_coreset(hostile, run, "huggingface", ExportOptions(images="copy")).files["folder"]
    lines = (root / "train" / "metadata.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["label"] for row in rows] == wanted
    assert [row["path"] for row in rows] == content.pool.column("path").to_pylist()
    root = export_coreset(hostile, run, "fiftyone", ExportOptions(images="copy")).files["folder"]
    said = json.loads((root / "labels.json").read_text("utf-8"))
    by_id = {one["attributes"]["image_id"]: said["classes"][one["label"]] for one in said["labels"].values()}
    assert [by_id[row["image_id"]] for row in rows] == wanted


def test_numbers_in_the_exact_csv_are_the_stored_ones(project, select):
    run = select()
    content = open_content(project, run)
    table = pyarrow.csv.read_csv(export_csv(project, run, exact=True).everything)
    for name in ("aum", "dual", "el2n", "mean_prob"):
        assert np.array_equal(table[name].to_numpy().astype(content.scores[name].dtype), content.scores[name])


@pytest.mark.parametrize(
    "name", ["../../etc", "/etc/passwd", "a/b", "..", ".", "", "con", "x" * 300, "a\0b", "\u202egnp", "=1+1", "~"]
)
def test_no_class_name_leads_out_of_the_tree(name):
    folder = folder_names([name])[name]
    assert folder and "/" not in folder and "\\" not in folder and folder not in (".", "..") and "\0" not in folder
    assert len(folder.encode()) <= 104 and not folder.startswith((*TRIGGERS, "."))
    assert safe_name(folder, "x") == folder


def test_two_classes_never_share_a_folder():
    names = ["a/b", "a_b", "a:b", "A_B", "a\\b"]
    assert len({folder.casefold() for folder in folder_names(names).values()}) == 5


def test_an_image_gets_the_ending_of_its_content(project):
    pool = project.pool()
    assert image_name(pool, 0, b"\xff\xd8\xff").endswith(f"{export_id(pool.ids[0])}.jpg")


def test_a_changed_original_is_not_exported(own_project):
    run = select_in(own_project)
    path = own_project.pool().original_file(int(run.coreset().indices[0]))
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(WorkspaceError, match="was changed since the import"):
        export_coreset(own_project, run, "imagefolder")
    assert list(own_project.exports_folder.iterdir()) == []


def test_a_stop_leaves_nothing(project, select):
    with pytest.raises(Stopped):
        export_coreset(project, select(), "imagefolder", progress=Collected(stop_after=5))
    assert list(project.exports_folder.iterdir()) == []


def test_unknown_formats_and_ways_are_refused(project, select):
    with pytest.raises(UnknownNameError, match="Did you mean 'parquet'"):
        export_coreset(project, select(), "parket")
    with pytest.raises(InvalidSettingError, match="reference"):
        export_coreset(project, select(), "imagefolder", ExportOptions(images="reference"))


def test_different_coresets_never_share_a_name(project, select):
    names = {export_csv(project, select(0.5, seed=seed, method="random")).kept.name for seed in range(3)}
    assert len(names) == 3
    assert len(list_exports(project)) == 3
