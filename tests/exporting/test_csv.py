"""The coreset CSV, its twin and its manifest: exact, safe for spreadsheets, the same twice."""

import csv
import dataclasses
import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from semiprune_core import files
from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.errors import MissingStepError
from semiprune_core.exporting import COLUMNS, export_csv, export_ids, safe_texts
from semiprune_core.project.pool import export_id
from semiprune_core.project.spreadsheet import safe_cell
from semiprune_core.results import PseudoRun, latest_scores, open_coreset
from semiprune_core.scores import SCORES
from tests.support.scored_projects import make_scored


@pytest.fixture
def project(workspace, tmp_path):
    return make_scored(workspace, tmp_path, n=60)


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_kept_rows_and_the_twin_with_all(project):
    run = build_coreset(project, CoresetRequest(pruning_ratio=0.8))
    found = export_csv(project, run)
    kept, everything = rows(found.kept), rows(found.everything)
    assert tuple(kept[0]) == (*COLUMNS, "dynamic_uncertainty", "entropy", "variability")
    assert len(kept) == 12 and len(everything) == 60
    assert kept == [row for row in everything if row["kept"] == "1"]
    pool, coreset = project.pool(), run.coreset()
    assert [row["image_id"] for row in everything] == [export_id(one) for one in pool.ids]
    best = min(kept, key=lambda row: int(row["rank"]))
    assert best["image_id"] == export_id(pool.ids[coreset.indices[0]])
    assert {row["rank"] for row in everything if row["kept"] == "0"} == {""}
    pseudo = PseudoRun(project.latest("pseudo"))
    for row, label, human, answer in zip(
        everything, pseudo.labels().labels, pseudo.labels().human_mask, pseudo.predicted(), strict=True
    ):
        assert row["label"] == pseudo.class_names[label] and row["pseudo_label"] == pseudo.class_names[answer]
        assert row["label_source"] == ("human" if human else "pseudo")
    scores = latest_scores(project).table()
    for name in SCORES:
        assert [float(row[name]) for row in everything] == scores[name].tolist()


def test_the_manifest_proves_the_files_and_the_same_coreset_gives_the_same_names(project):
    run = build_coreset(project, CoresetRequest(pruning_ratio=0.5))
    first, second = export_csv(project, run), export_csv(project, run)
    assert first == second
    said = json.loads(first.manifest.read_text())
    assert said["files"]["kept"]["sha256"] == files.sha256_file(first.kept)
    assert said["files"]["all"]["rows"] == 60 and said["counts"]["n_kept"] == 30
    assert said["method"] == "semi_aum_cutoff" and said["inputs"]["scores"] == latest_scores(project).artifact.hash
    assert run.artifact.id in first.kept.name and files.sha256_file(first.kept)[:12] in first.kept.name
    other = export_csv(project, build_coreset(project, CoresetRequest(pruning_ratio=0.6)))
    assert other.kept.name != first.kept.name
    assert not [path for path in project.exports_folder.iterdir() if path.name.startswith(".")]


def test_texts_are_safe_for_spreadsheets_unless_exact(project, monkeypatch):
    run = build_coreset(project, CoresetRequest(pruning_ratio=0.5))
    monkeypatch.setattr(PseudoRun, "class_names", ("=1+1", "@x", "-y", 'plain, "quoted"\nline'))
    safe, exact = export_csv(project, run), export_csv(project, run, exact=True)
    assert {row["label"] for row in rows(safe.everything)} == {"'=1+1", "'@x", "'-y", 'plain, "quoted"\nline'}
    assert {row["label"] for row in rows(exact.everything)} == {"=1+1", "@x", "-y", 'plain, "quoted"\nline'}
    assert safe.kept != exact.kept


def test_a_column_of_texts_is_treated_like_each_of_them():
    texts = ["=a", "+a", "-a", "@a", "\ta", "\ra", "a=", "", "ä", "'=a"]
    assert safe_texts(pa.array(texts)).to_pylist() == [safe_cell(text) for text in texts]


def test_no_spreadsheet_takes_an_id_for_a_number():
    ids = np.array([0, 1, 2**64 - 1, 0xABC, 0x1234567890123456, 0x5E25], dtype=np.uint64)
    written = export_ids(ids).to_pylist()
    assert written == [export_id(one) for one in ids] and written[4] == "i1234567890123456"
    assert pd.read_csv(io.StringIO("image_id\n" + "\n".join(written)))["image_id"].tolist() == written


def test_a_coreset_of_another_pool_is_refused(project):
    run = build_coreset(project, CoresetRequest(pruning_ratio=0.5))
    stale = dataclasses.replace(run.artifact, manifest={**run.artifact.manifest, "inputs": {"pool": "other"}})
    with pytest.raises(MissingStepError, match="pool has changed"):
        export_csv(project, dataclasses.replace(run, artifact=stale))


def test_only_coresets_can_be_opened_as_one(project):
    with pytest.raises(MissingStepError, match="no coreset yet"):
        open_coreset(project)
    with pytest.raises(ValueError, match="not a coreset"):
        open_coreset(project, project.latest("scores").id)
