"""From a drawn subset to pseudo-labels without a browser."""

import json
import os
import signal
import subprocess
import sys

import pytest

from semiprune_core import cli, training
from semiprune_core.labeling import open_store
from tests.cli.test_cli import ROOT, run
from tests.support.training_projects import small_project
from tests.support.waiting import wait_until

SHORT = [
    word
    for pair in ("epochs=2", "steps_per_epoch=4", "batch_size=8", "unlabeled_ratio=2", "precision=fp32", "shift=0")
    for word in ("--set", pair)
]


def answer(capsys, *words):
    code, out, err = run(capsys, *words, "--json")
    assert code == 0, err
    return json.loads(out)


def test_sample_reference_train_and_jobs(capsys, workspace, tmp_path):
    project = small_project(workspace, tmp_path, reference=False)
    drawn = answer(capsys, "sample", "bars", "--fraction", "0.5", "--seed", "3")
    assert (drawn["images"], drawn["of"], drawn["seed"]) == (30, 60, 3)
    assert answer(capsys, "labels", "reference", "bars")["saved"] == 30
    found = answer(
        capsys,
        "train",
        "bars",
        "--device",
        "cpu",
        "--seed",
        "5",
        "--set",
        "threshold=0.5",
        *SHORT,
        "--start",
        "scratch",
    )
    assert found["artifact"] == "pseudo-0001" and found["n_labels"] == 30 and found["reference"]["n"] == 30
    (made,) = training.list_runs(project)
    assert made.settings.seed == 5 and made.settings.training.options["threshold"] == 0.5
    (job,) = answer(capsys, "jobs", "list")
    assert (job["id"], job["state"]) == (found["job"], "done")
    assert "30 labels" in run(capsys, "jobs", "log", job["id"])[1]
    assert run(capsys, "jobs", "resume", job["id"])[0] == 1
    assert answer(capsys, "projects")[0]["done"] == ["pool", "label", "train"]


def test_labels_go_out_and_come_back(capsys, workspace, tmp_path):
    project = small_project(workspace, tmp_path)
    before = open_store(project).snapshot()
    for name in ("labels.csv", "labels.json"):
        assert answer(capsys, "labels", "export", "bars", str(tmp_path / name))["rows"] == 30
        other = small_project(workspace, tmp_path, reference=False, title=f"Other {name[-4:]}")
        words = ("labels", "import", other.name, str(tmp_path / name), "--create-classes", "--annotator", "ann")
        assert answer(capsys, *words)["saved"] == 30
        assert sorted(open_store(other).snapshot().class_names) == sorted(before.class_names)
    (tmp_path / "wrong.csv").write_text("image_id,label\nffffffffffffffff,a\n")
    code, out, _ = run(capsys, "labels", "import", "bars", str(tmp_path / "wrong.csv"))
    assert code == 1 and "row 2" in out


@pytest.mark.parametrize(
    "words, said",
    [
        (["train", "nobody"], "There is no project 'nobody'"),
        (["train", "bars", "--algorithm", "fixmtach"], "Did you mean 'fixmatch'?"),
        (["train", "bars", "--preset", "quik"], "Did you mean 'quick'?"),
        (["train", "bars", "--set", "lrr=1"], "Did you mean 'lr'?"),
        (["train", "bars", "--set", "lr"], "--set takes KEY=VALUE"),
        (["train", "bars", "--set", "epochs=0"], "epochs must be at least 1"),
        (["train", "bars", "--resume"], "no interrupted run"),
        (["train", "bars", "--device", "cpu"], "Training needs at least two classes"),
        (["labels", "reference", "bars"], "Draw the subset to label first"),
        (["labels", "import", "bars"], "needs a file"),
        (["labels", "import", "bars", "nowhere.csv"], "cannot be read"),
        (["sample", "bars", "--fraction", "2"], "fraction must be"),
        (["jobs", "stop"], "Which job?"),
        (["jobs", "log", "nothing"], "There is no job"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(capsys, workspace, tmp_path, words, said):
    if "bars" in words:
        small_project(workspace, tmp_path, n=12, reference=False)
    code, _, err = run(capsys, *words)
    assert code == 1 and said in err and err.count("\n") == 1


@pytest.mark.usefixtures("jobs_run_here")
def test_an_estimate_starts_no_run(capsys, workspace, tmp_path):
    project = small_project(workspace, tmp_path)
    found = answer(capsys, "train", "bars", "--device", "cpu", "--estimate", *SHORT)
    assert found["seconds"] > 0 and found["n_steps"] == 8
    assert training.list_runs(project) == []


@pytest.mark.fault
def test_ctrl_c_stops_with_a_checkpoint_and_resume_goes_on(capsys, workspace, tmp_path):
    project = small_project(workspace, tmp_path)
    long = [word.replace("epochs=2", "epochs=30") for word in SHORT]
    child = subprocess.Popen(
        [sys.executable, "-m", "semiprune_core", "train", "bars", "--device", "cpu", "--start", "scratch", *long],
        cwd=ROOT,
        env={**os.environ, "SEMIPRUNE_HOME": str(workspace.root)},
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: any(made.job.status().done >= 3 for made in training.list_runs(project)), seconds=120)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 130 and "--resume" in said
    (made,) = training.list_runs(project)
    assert made.status.state == "stopped" and list(made.job.work_folder.glob("round-0/checkpoint-*.json"))
    assert answer(capsys, "train", "bars", "--resume")["artifact"] == "pseudo-0001"
    assert made.job.status().attempt == 2
    assert cli.main(["train", "bars", "--resume"]) == 1
