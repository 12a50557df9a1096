"""Learning on pretrained features: the same artifact as from scratch, cross-fitted, and the line goes on from it."""

import json
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from semiprune_core import cli, jobs, training
from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.dynamics import submit_dynamics
from semiprune_core.features import EmbedSettings, submit_features, wait_while_computed
from semiprune_core.features import job as features_job
from semiprune_core.jobs import supervise, wait
from semiprune_core.labeling import open_store
from semiprune_core.progress import Collected, Stopped
from semiprune_core.results import latest_pseudo
from semiprune_core.training import FROZEN, TrainSettings
from semiprune_core.trust import quality_report
from tests.support.pools import NAMES
from tests.support.training_projects import label, label_drawn, small_project
from tests.support.waiting import PATIENCE

FROM_FEATURES = TrainSettings(start=FROZEN)


@pytest.fixture
def project(with_features):
    return label_drawn(with_features)


def train(project, settings=FROM_FEATURES):
    job = training.start_training(project, settings, device="cpu", immediate=True)
    assert job.status().state == "done", (job.status().message, job.log_tail())
    return latest_pseudo(project)


def test_a_run_on_features_labels_the_whole_pool_and_measures_itself_on_every_drawn_label(project):
    run = train(project)
    pool, snapshot = project.pool(), open_store(project).snapshot()
    human, uniform = snapshot.on_pool(pool.ids, pool.duplicate_of)
    labels = run.labels()
    assert (labels.labels[human >= 0] == human[human >= 0]).all() and (labels.labels >= 0).all()
    assert np.array_equal(run.held_out_mask(), uniform & (human >= 0))
    quality = run.quality()
    assert quality["accuracy"]["n"] == int(uniform.sum()) and quality["accuracy"]["value"] > 0.8
    assert "each answered by a model that saw neither it" in quality["measured_on"]
    assert run.artifact.facts["reference"]["value"] > 0.8


def test_the_answers_of_the_folds_are_kept_with_the_run(project):
    run = train(project)
    positions, probs, folds = (
        np.load(run.artifact.path(f"{name}.npy")) for name in ("fold_positions", "fold_probs", "folds")
    )
    assert np.array_equal(np.sort(positions), np.flatnonzero(run.held_out_mask()))
    assert probs.shape == (len(positions), 3) and np.allclose(probs.sum(1), 1, atol=1e-5)
    assert np.array_equal(run.predicted()[positions], probs.argmax(1)) and folds.min() >= 0
    report = quality_report.report(project.pool(), run, store=open_store(project))
    assert report.held_out.accuracy.n == len(positions)


def test_the_same_labels_and_seed_give_the_same_bits(project):
    assert train(project).artifact.hash == train(project).artifact.hash


def test_it_is_listed_with_its_settings_with_and_without_its_job(project):
    train(project)
    (run,) = training.list_runs(project)
    assert run.settings == FROM_FEATURES and run.title == "Combined on efficientnet_lite0 features, seed 0"
    run.job.delete()
    (run,) = training.list_runs(project)
    assert run.settings.flat() == FROM_FEATURES.flat() and training.side_by_side([run])["start"] == ["frozen"]


def test_a_class_without_a_label_is_never_given(with_features):
    project = with_features
    reference = project.pool().reference_labels
    open_store(project).classes.add(["a", "c", "b"], annotator="ann")
    label(project, {int(place): NAMES[c] for c in (0, 1) for place in np.flatnonzero(reference == c)[:8]})
    run = train(project)
    assert set(np.array(run.class_names)[run.predicted()]) == {"a", "b"}
    assert run.artifact.facts["missing_classes"] == ["c"]


def test_a_class_that_was_added_since_equal_labels_were_learned_from_is_named(with_features):
    project = with_features
    reference = project.pool().reference_labels
    label(project, {int(place): NAMES[c] for c in (0, 1) for place in np.flatnonzero(reference == c)[:8]})
    first = train(project)
    open_store(project).classes.add(["c"], annotator="ann")
    second = train(project)
    assert first.artifact.inputs["labels"] == second.artifact.inputs["labels"]  # a class without a label changes none
    assert (first.artifact.facts["missing_classes"], second.artifact.facts["missing_classes"]) == ([], ["c"])


def test_the_line_goes_on_from_it(project):
    train(project)
    job = submit_dynamics(project, epochs=3, device="cpu", immediate=True)
    assert job.status().state == "done", job.log_tail()
    assert len(build_coreset(project, CoresetRequest(pruning_ratio=0.5)).coreset().indices) == 30


def test_the_command_embeds_learns_and_says_how_right_it_is(workspace, tmp_path, capsys):
    project = small_project(workspace, tmp_path)
    home = str(project.workspace.root)
    assert cli.main(["train", project.name, "--start", "frozen", "--home", home, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["artifact"] == "pseudo-0001" and said["accuracy"]["n"] == 30


def test_an_unknown_encoder_is_refused_in_a_sentence(project, capsys):
    home = str(project.workspace.root)
    assert cli.main(["train", project.name, "--start", "frozen", "--encoder", "nonesuch", "--home", home]) == 1
    assert "nonesuch" in capsys.readouterr().err


def test_features_that_a_job_is_computing_are_waited_for_and_not_computed_again(with_features, monkeypatch):
    began, go_on = threading.Event(), threading.Event()
    compute = features_job.embed

    def slow(*args, **kwargs):
        began.set()
        assert go_on.wait(PATIENCE)
        return compute(*args, **kwargs)

    class Watching(Collected):
        def report(self, done, total, /, **facts):
            super().report(done, total, **facts)
            go_on.set()

    monkeypatch.setattr(features_job, "embed", slow)
    job = submit_features(with_features)
    worker = threading.Thread(target=jobs.follow_here, args=(job, Collected()), kwargs={"tell": lambda status: None})
    worker.start()
    assert began.wait(PATIENCE)
    wait_while_computed(with_features, EmbedSettings(size=64), Collected())  # others are none of its business
    with pytest.raises(Stopped):
        wait_while_computed(with_features, EmbedSettings(), Collected(stop_after=0))
    assert job.status().state == jobs.RUNNING
    watching = Watching()
    wait_while_computed(with_features, EmbedSettings(), watching)
    assert job.status().state == jobs.DONE and watching.reports[0]["stage"] == "features"
    worker.join()


KILLED = """
import os, sys
from semiprune_core import training
from semiprune_core.learning.frozen import fit
from semiprune_core.project.workspace import Workspace
from semiprune_core.training import FROZEN, TrainSettings

go_on = fit._Work._go_on

def killing(work, fold):
    if fold == 2:
        os.kill(os.getpid(), 9)
    go_on(work, fold)

if __name__ == "__main__":
    fit._Work._go_on = killing
    project = Workspace.open(sys.argv[1]).project(sys.argv[2])
    training.start_training(project, TrainSettings(start=FROZEN), device="cpu", immediate=True)
"""


@pytest.mark.fault
def test_a_run_that_was_killed_between_folds_leaves_nothing_half_and_comes_to_the_same_bits(project, tmp_path):
    train(project)
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    words = [sys.executable, str(script), str(project.workspace.root), project.name]
    ended = subprocess.run(words, check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    assert len(project.artifacts("pseudo")) == 1
    (job,) = [job for job in jobs.list_jobs(project, "ssl") if job.status().state != "done"]
    job.resume()
    supervise(job.workspace)
    assert wait(job, PATIENCE).state == "done", job.log_tail()
    straight, resumed = project.artifacts("pseudo")
    assert resumed.hash == straight.hash
