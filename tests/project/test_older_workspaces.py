"""A workspace made before the core moved into rooms: it opens, it verifies, and it exports the same values."""

import zipfile
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from semiprune_core import steps
from semiprune_core.exporting import export_coreset
from semiprune_core.exporting.verify import first_difference, verify
from semiprune_core.labeling import open_store
from semiprune_core.labeling.progress_report import progress
from semiprune_core.maps.embedding_map import maps_of
from semiprune_core.progress import Collected
from semiprune_core.project import Workspace
from semiprune_core.results import latest_pseudo, latest_scores, open_coreset
from semiprune_core.training import list_runs

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "workspace_before_rooms.zip"


@pytest.fixture
def project(tmp_path):
    with zipfile.ZipFile(ARCHIVE) as archive:
        for name in archive.namelist():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(name))
    return Workspace.open(tmp_path).project("old")


def text_table(path):
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def with_letters(table):
    """Exported ids begin with a letter since, so that no spreadsheet takes one for a number: the only change."""
    return table.assign(image_id="i" + table["image_id"])


def test_it_opens_and_every_record_can_be_read(project):
    assert len(project.pool()) == 48
    assert progress(open_store(project)).complete
    assert latest_pseudo(project).labels().labels.shape == (48,)
    assert len(latest_scores(project).table()["aum"]) == 48
    assert [open_coreset(project, name).artifact.id for name in ("coreset-0001", "coreset-0003")]
    assert maps_of(project)[0].points().shape == (48, 2)
    assert [run.artifact.id for run in list_runs(project)] == ["pseudo-0001"]
    assert steps.next_step(project).key == "evaluate"


def test_it_verifies_with_all_its_exports(project):
    found = verify(project.folder, Collected())
    assert first_difference(found) is None
    assert len([name for name in found if name.endswith("selection")]) == 5


@pytest.mark.parametrize("number", [1, 2, 3])
def test_its_csv_exports_hold_the_same_rows_and_values(project, number):
    coreset = f"coreset-000{number}"
    before = {
        kind: text_table(next(project.exports_folder.glob(f"{coreset}-{kind}-*.csv"))) for kind in ("kept", "all")
    }
    export = export_coreset(project, open_coreset(project, coreset), "csv")
    for kind, table in before.items():
        now = text_table(export.files[kind])
        assert list(now.columns[: len(table.columns)]) == list(table.columns)
        pd.testing.assert_frame_equal(now[table.columns], with_letters(table))


def test_its_parquet_export_holds_the_same_rows_and_values(project):
    before = pq.read_table(next(project.exports_folder.glob("coreset-0003-kept-*.parquet")))
    export = export_coreset(project, open_coreset(project, "coreset-0003"), "parquet")
    now = pq.read_table(export.files["kept"])
    assert now.select(before.column_names).to_pandas().equals(with_letters(before.to_pandas()))
