"""The demo walks the whole line, says where its files are, and gives the same bytes for the same seed."""

import json
import re

import numpy as np
import pytest

from semiprune_core import cli
from semiprune_core.demo import DemoSettings, claim_folder, run_demo
from semiprune_core.demo import run as demo
from semiprune_core.errors import WorkspaceError
from semiprune_core.exporting.verify import first_difference, verify
from semiprune_core.importing.sources import demo as bundled
from semiprune_core.progress import Collected, Stopped
from tests.support.effort import FULL

TINY = DemoSettings(
    ssl={"epochs": 1, "steps_per_epoch": 3, "batch_size": 8, "unlabeled_ratio": 1},
    dynamics={"epochs": 2, "batch_size": 512},
    map_method="pca",
    evaluation={"methods": ["random", "semi_aum_cutoff"], "ratios": [0.9], "seeds": [0], "epochs": 1},
)

N_POOL, N_TEST, N_LABELED = (6000, 2000, 600) if FULL else (600, 200, 60)


@pytest.fixture(scope="module")
def tenth(tmp_path_factory):
    """Every tenth picture of the bundled pool, as a file of the same kind."""
    path = tmp_path_factory.mktemp("demo") / bundled.DEMO.name
    with np.load(bundled.DEMO) as columns:
        n = len(columns["labels"])
        np.savez(path, **{name: column[::10] if len(column) == n else column for name, column in columns.items()})
    return path


@pytest.fixture(autouse=True)
def bundled_pool(tenth, monkeypatch):
    if not FULL:
        monkeypatch.setattr(bundled, "DEMO", tenth)


def walk(folder, settings=TINY, progress=None):
    told = []

    def begin(stage, number, total):
        told.append((stage.key, number, total))
        return progress or Collected()

    return run_demo(claim_folder(folder, settings), settings, begin, immediate=True), told


def csv_files(result):
    return {path.name: path.read_bytes() for path in result.project.exports_folder.glob("*.csv")}


@pytest.mark.slow
def test_twice_the_same_seed_gives_the_same_csv_files(tmp_path):
    first, told = walk(tmp_path / "one")
    line = ["pool", "label", "train", "scores", "map", "select", "evaluate", "export", "verify", "report"]
    assert [key for key, _, _ in told] == line
    assert [number for _, number, _ in told] == list(range(1, 11)) and {total for _, _, total in told} == {10}
    kept = {(export.manifest["method"], export.manifest["pruning_ratio"]) for export in first.exports}
    ratios = (0.3, 0.5, 0.7, 0.8, 0.9)
    assert kept == {(method, ratio) for method in ("semi_aum_cutoff", "semi_dual_beta") for ratio in ratios}
    for export in first.exports:
        rows = export.files["kept"].read_text("utf-8").splitlines()
        assert len(rows) == 1 + round(N_POOL * (1 - export.manifest["pruning_ratio"]))
        assert first_difference(verify(export.path, Collected())) is None
    report = first.report.read_text("utf-8")
    assert report.startswith("<!doctype html>") and re.search(r"At \d+% pruning Semi-\S+ (keeps|reaches)", report)

    second, _ = walk(tmp_path / "two")
    assert csv_files(second) == csv_files(first) and len(csv_files(first)) == 20
    assert [export.path.name for export in second.exports] == [export.path.name for export in first.exports]

    again, _ = walk(tmp_path / "one")  # a second call finds everything again
    assert [len(again.project.artifacts(kind)) for kind in ("pool", "pseudo", "trajectory", "coreset")] == [1, 1, 1, 10]
    assert csv_files(again) == csv_files(first)


def test_a_stop_keeps_what_is_done_and_the_next_call_goes_on(tmp_path, monkeypatch):
    with pytest.raises(Stopped):
        walk(tmp_path / "out", progress=Collected(stop_after=100))  # in the middle of the import
    folder = tmp_path / "out" / demo.NAME
    assert not list((folder / "artifacts").iterdir())
    stages = tuple(stage for stage in demo.STAGES if stage.key in ("pool", "label"))
    monkeypatch.setattr(demo, "STAGES", stages)
    result, _ = walk(tmp_path / "out")
    assert [done.words for done in result.stages] == [
        f"{N_POOL:,} images to prune, {N_TEST:,} for testing",
        f"{N_LABELED} images drawn at random and labeled from the reference labels",
    ]


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(WorkspaceError, match="nothing in it was touched") as caught:
        claim_folder(tmp_path, TINY)
    assert caught.value.code == "FOLDER_TAKEN"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_another_demo_in_the_same_folder_is_refused(tmp_path):
    claim_folder(tmp_path / "out", TINY)
    claim_folder(tmp_path / "out", TINY)
    with pytest.raises(WorkspaceError, match=r"another seed \(0\)"):
        claim_folder(tmp_path / "out", TINY.replace(seed=1))


def test_the_command_says_where_everything_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "STAGES", tuple(stage for stage in demo.STAGES if stage.key == "pool"))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", "--home", "usual", "--out", "out", "--json"]) == 0
    said = capsys.readouterr()
    value = json.loads(said.out)
    assert value["folder"] == str(tmp_path / "out") and value["report"] == str(tmp_path / "out" / "report.html")
    assert value["stages"][0]["stage"] == "pool" and value["coresets"] == []
    assert "[1/1] Import the bundled pool" in said.err
    assert not (tmp_path / "usual").exists()  # the usual workspace is not even made
    assert cli.main(["demo", "--out", "out", "--seed", "3"]) == 1
    assert "another seed (0)" in capsys.readouterr().err
