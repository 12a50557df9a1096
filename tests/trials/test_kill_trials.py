"""kill -9 at random points of a job of many trials: the same table, at most the trial in progress lost."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from semiprune_core.evaluation import EvaluationSettings, submit_evaluation
from semiprune_core.project.workspace import Workspace
from semiprune_core.search import submit_search
from tests.support.effort import FULL
from tests.support.scored_projects import make_scored

ROOT = Path(__file__).parents[2]
KILLS = 10 if FULL else 3
SEEDS = tuple(range(6 if FULL else 2))  # enough trials that every kill finds one
TRAINING = {"epochs": 3, "batch_size": 16, "precision": "fp32"}


def search(project):
    submit_search(project, method="semi_dual_beta", ratios=(0.8,), seeds=SEEDS[1:], device="cpu", training=TRAINING)


def evaluation(project):
    settings = EvaluationSettings(
        methods=("full", "semi_aum_cutoff", "random"), ratios=(0.5, 0.8), seeds=SEEDS, epochs=1
    )
    submit_evaluation(project, settings, device="cpu")


@pytest.mark.fault
@pytest.mark.parametrize("submit", [search, evaluation], ids=lambda submit: submit.__name__)
def test_killed_trials_end_in_the_same_table(tmp_path, submit):
    project = make_scored(Workspace.open(tmp_path / "whole"), tmp_path, n=48, n_classes=3)
    submit(project)
    shutil.copytree(tmp_path / "whole", tmp_path / "killed")
    done = subprocess.run(
        [sys.executable, "-m", "tests.trials.killed_trials", str(tmp_path), str(KILLS), "0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["same"] and found["kept"] and found["n_artifacts"] == 1, found
    n_killed = sum(found["killed"].values())
    assert n_killed == KILLS, found
    assert found["n_trained"] <= found["n_trained_killed"] <= found["n_trained"] + n_killed, found
