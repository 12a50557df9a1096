"""pandas, Polars, DuckDB, datasets, torchvision and cleanlab open what we write, odd names and all: 0 labels wrong."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from semiprune_core.exporting import ExportOptions, export_coreset, export_csv
from tests.exporting.conftest import select_in
from tests.exporting.label_studio import CLASSES, make_project
from tests.tools import needs

ODD = {"+1", "NA", "a/b", "C, D", "=x", 'say "hi"', "two  words"}


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """(project, coreset): all 24 pictures, whose classes and files have odd names."""
    project = make_project(tmp_path_factory.mktemp("odd"))
    return project, select_in(project, 0.0)


@pytest.fixture(scope="module")
def truth(odd):
    """Of every image of the coreset, by its id: what every reader must say. From the arrays, not from an export."""
    project, run = odd
    indices = export_coreset(project, run, "indices")
    names, pool = indices.manifest["class_names"], project.pool()
    positions, labels = (np.load(indices.files[role]) for role in ("indices", "labels"))
    ids = {int(at): f"i{int(pool.ids[at]):016x}" for at in positions}
    rows = {ids[int(at)]: (pool.column("path")[int(at)].as_py(), names[label]) for at, label in zip(positions, labels)}
    assert len(rows) == 24 and {label for _, label in rows.values()} == set(CLASSES) >= ODD
    return rows


def by_id(rows):
    return {row["image_id"]: (row["path"], row["label"]) for row in rows}


def test_pandas_reads_every_table(odd, truth):
    project, run = odd
    exact = pd.read_csv(export_csv(project, run, exact=True).kept, keep_default_na=False)
    parquet = pd.read_parquet(export_coreset(project, run, "parquet").files["kept"])
    lines = pd.read_json(export_coreset(project, run, "jsonl").files["kept"], lines=True, dtype=False)
    for frame in (exact, parquet, lines):
        assert by_id(frame.to_dict("records")) == truth


@pytest.mark.slow
def test_polars_reads_every_table(odd, truth):
    needs("polars")
    import polars

    project, run = odd
    frames = (
        polars.read_csv(export_csv(project, run, exact=True).kept),
        polars.read_parquet(export_coreset(project, run, "parquet").files["kept"]),
        polars.read_ndjson(export_coreset(project, run, "jsonl").files["kept"]),
    )
    for frame in frames:
        assert by_id(frame.to_dicts()) == truth


@pytest.mark.slow
def test_duckdb_reads_every_table(odd, truth):
    needs("duckdb")
    import duckdb

    project, run = odd
    paths = {
        "read_csv": export_csv(project, run, exact=True).kept,
        "read_parquet": export_coreset(project, run, "parquet").files["kept"],
        "read_json": export_coreset(project, run, "jsonl").files["kept"],
    }
    for reader, path in paths.items():
        rows = duckdb.execute(f"SELECT image_id, path, label FROM {reader}(?)", [str(path)]).fetchall()
        assert {image: (name, label) for image, name, label in rows} == truth


def test_datasets_reads_the_hugging_face_folder_with_odd_names(odd, truth, tmp_path):
    project, run = odd
    folder = export_coreset(project, run, "huggingface", ExportOptions(images="copy")).files["folder"]
    code = (
        "import json, sys; from datasets import load_dataset\n"
        "data = load_dataset('imagefolder', data_dir=sys.argv[1], split='train')\n"
        "print(json.dumps([[r['image_id'], r['path'], r['label'], r['image'].size] for r in data]))"
    )
    quiet = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf"), "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, folder], env={**os.environ, **quiet}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])
    assert {image: (path, label) for image, path, label, _ in rows} == truth
    assert {tuple(size) for *_, size in rows} == {(32, 24)}


@pytest.mark.slow  # imports torch
def test_torchvision_reads_image_folders_of_odd_classes(odd, truth):
    from torchvision.datasets import ImageFolder

    project, run = odd
    export = export_coreset(project, run, "imagefolder", ExportOptions(images="copy", exact=True))
    root = export.files["folder"]
    data = ImageFolder(root)
    assert data.classes == (root / "classes.txt").read_text("utf-8").splitlines()
    folders = {folder: name for name, folder in export.manifest["class_folders"].items()}
    assert len(folders) == len(CLASSES)
    table = pd.read_csv(root / "labels.csv", keep_default_na=False).set_index("file_name")
    seen = {}
    for path, number in data.samples:
        row = table.loc[os.path.relpath(path, root)]
        assert row["label"] == folders[data.classes[number]]
        seen[row["image_id"]] = row["label"]
    assert seen == {image: label for image, (_, label) in truth.items()}


@pytest.mark.slow
def test_cleanlab_takes_the_probabilities(odd, truth):
    needs("cleanlab")
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    project, run = odd
    export = export_coreset(project, run, "probabilities")
    probs, labels, ids, human = (np.load(export.files[role]) for role in ("probs", "labels", "ids", "human"))
    names = export.manifest["class_names"]
    assert {image: names[label] for image, label in zip(ids.tolist(), labels)} == {
        image: label for image, (_, label) in truth.items()
    }
    scores = get_label_quality_scores(labels, probs)
    assert scores.shape == (24,) and np.allclose(scores, probs[np.arange(24), labels], atol=1e-6)
    issues = find_label_issues(labels, probs, return_indices_ranked_by="self_confidence", n_jobs=1)
    assert set(issues.tolist()) <= set(np.flatnonzero(human).tolist())  # only a person's label can differ
