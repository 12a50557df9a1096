"""The search job: every trial once, the same table after a stop and after a kill."""

import numpy as np
import pandas as pd
import pytest

from semiprune_core import jobs
from semiprune_core.coresets.starting_values import searched_knobs
from semiprune_core.dynamics import submit_dynamics
from semiprune_core.errors import ConflictError
from semiprune_core.evaluation import EvaluationSettings, planned_trials
from semiprune_core.jobs import launch
from semiprune_core.jobs.context import JobContext
from semiprune_core.jobs.job import Job
from semiprune_core.methods import select_coreset
from semiprune_core.progress import Stopped
from semiprune_core.project.artifacts import differences
from semiprune_core.results import PseudoRun, latest_scores
from semiprune_core.results.evidence import evidence_of
from semiprune_core.results.search import SearchRun
from semiprune_core.search import job as search_job
from semiprune_core.search import partial_search, search_settings, submit_search
from semiprune_core.search.job import Choice
from semiprune_core.trials import Trial
from semiprune_core.trials import run as trial_run
from tests.support.features import add_features
from tests.support.scored_projects import add_clusters, make_scored

SHORT = {"device": "cpu", "ratios": (0.5, 0.8), "training": {"epochs": 3, "batch_size": 16, "precision": "fp32"}}


@pytest.fixture
def project(workspace, tmp_path):
    project = make_scored(workspace, tmp_path, n=60, n_classes=3)
    yield project
    for job in jobs.list_jobs(project):
        job.kill()
    launch.reap()


@pytest.fixture
def quick(monkeypatch):
    """Trials that count instead of training: the accuracy is made up from what was asked."""
    seen = []

    def train(images, labels, tests, truth, *, n_classes, settings, seed, progress, device):
        seen.append((len(images), settings.batch_size, seed))
        progress.report(1, 2, loss=1.0)
        if progress.should_stop():
            raise Stopped
        right = int(images.astype(int).sum() + 7 * seed) % (len(truth) + 1)
        return trial_run.TrialResult(right, len(truth), len(images), 0.1)

    monkeypatch.setattr(trial_run, "train_trial", train)
    return seen


def done(job):
    assert job.status().state == jobs.DONE, job.status().message + job.log_tail()
    return SearchRun(job.project.artifact(job.result()["artifact"]))


def test_it_trains_on_the_90_and_compares_on_the_10(project, quick):
    job = submit_search(project, immediate=True, **SHORT)
    run = done(job)
    table = run.trials()
    assert len(table) == 2 * (1 + 6 + 1 + 9) and set(table["n_test"]) == {6}
    assert set(table.loc[table["pruning_ratio"] == 0.5, "n_train"]) == {27}
    assert {(n, batch) for n, batch, _ in quick} == {(27, 16), (11, 8)}, "the batch is halved at 0.8"
    assert run.artifact.facts["n_compared"] == 6 and run.artifact.facts["n_chosen_from"] == 54
    assert [one.pruning_ratio for one in run.best] == [0.5, 0.8]
    assert differences(run.artifact.folder) == []
    assert run.artifact.inputs["scores"] == latest_scores(project).artifact.hash
    assert searched_knobs(project, "semi_aum_cutoff", 0.5) == run.best[0].knobs
    assert partial_search(job).equals(table)
    facts = job.status().facts
    assert facts["trials_done"] == facts["trials_total"] == len(table)
    assert job.status().done == job.status().total


def test_elfs_is_searched_on_the_clusters_that_are_its_labels(project, monkeypatch):
    seen = []

    def train(images, labels, tests, truth, *, n_classes, **_):
        seen.append((n_classes, {*labels.tolist(), *truth.tolist()}))
        return trial_run.TrialResult(int(images.astype(int).sum()) % (len(truth) + 1), len(truth), len(images), 0.1)

    monkeypatch.setattr(trial_run, "train_trial", train)
    kept = add_clusters(project, n_clusters=5)
    run = done(submit_search(project, method="elfs", immediate=True, **SHORT))
    assert run.artifact.inputs == {"pool": project.pool().hash, "scores": kept.artifact.hash}
    assert set(run.trials()["method"]) == {"random", "elfs"} and len(run.trials()) == 2 * (1 + 6 + 1 + 9)
    assert {n for n, _ in seen} == {5} and set.union(*(labels for _, labels in seen)) == {0, 1, 2, 3, 4}
    assert searched_knobs(project, "elfs", 0.5) == run.best[0].knobs
    assert differences(run.artifact.folder) == []
    (job,) = jobs.list_jobs(project, "search")
    assert "pseudo" not in job.pins


def test_dual_chooses_t_before_c_d(project, quick):
    run = done(submit_search(project, method="semi_dual_beta", immediate=True, **SHORT))
    table, chosen = run.trials(), run.artifact.facts["n_epochs"]
    assert chosen in (10, 12)
    at_first = table[(table["pruning_ratio"] == 0.3)]
    assert set(at_first["n_epochs"]) == {10, 12} and set(at_first["method"]) == {"semi_dual_beta"}
    later = table[(table["pruning_ratio"] != 0.3) & (table["method"] != "random")]
    assert set(later["n_epochs"]) == {chosen}
    assert {one.n_epochs for one in run.best} == {chosen} and 0.3 not in {one.pruning_ratio for one in run.best}


def test_scores_of_several_seeds_are_rescored_together(workspace, tmp_path, quick):
    project = make_scored(workspace, tmp_path, n=60, n_classes=3, seeds=(0, 1))
    run = done(submit_search(project, method="semi_dual_beta", immediate=True, **SHORT))
    assert len(run.artifact.inputs) == 5


def test_a_stop_keeps_what_is_done_and_a_resume_trains_only_the_rest(project, quick, monkeypatch):
    whole = done(submit_search(project, immediate=True, **SHORT)).trials()
    quick.clear()
    asked = []

    def stop_once(self):
        asked.append(1)
        return len(asked) == 9

    with monkeypatch.context() as patch:
        patch.setattr(JobContext, "should_stop", stop_once)
        job = submit_search(project, immediate=True, **SHORT)
    assert job.status().state == jobs.STOPPED and len(project.artifacts("search")) == 1
    before = partial_search(job)
    assert 0 < len(before) < len(whole) and len(quick) == len(before) + 1
    search_job.run(JobContext(Job.open(job.folder)))
    assert len(quick) == len(whole) + 1, "only the trial in progress was trained twice"
    pd.testing.assert_frame_equal(SearchRun(project.latest("search")).trials(), whole)
    assert project.artifacts("search")[0].hash == project.latest("search").hash


def test_a_finished_search_is_found_again(project, quick):
    job = submit_search(project, immediate=True, **SHORT)
    run = done(job)
    quick.clear()
    assert search_job.run(JobContext(Job.open(job.folder)))["artifact"] == run.artifact.id
    assert not quick and len(project.artifacts("search")) == 1


def test_scores_that_changed_since_are_refused(project, quick):
    job = submit_search(project, **SHORT)
    folder = project.artifacts_folder / "scores-0001"
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(text.replace(latest_scores(project).artifact.hash, "0" * 64))
    with pytest.raises(ConflictError, match="has changed since this job was queued"):
        search_job.run(JobContext(job))
    assert not quick


def test_a_real_search_in_this_process(project):
    run = done(submit_search(project, immediate=True, **{**SHORT, "ratios": (0.3,), "seeds": (0,)}))
    again = done(submit_search(project, immediate=True, **{**SHORT, "ratios": (0.3,), "seeds": (0,)}))
    assert run.artifact.hash == again.artifact.hash and len(run.trials()) == 5
    assert run.best[0].verdict == "unknown"


def test_a_search_by_probes_trains_nothing_and_says_so(workspace, tmp_path, monkeypatch):
    project = make_scored(workspace, tmp_path)
    features = add_features(project)
    monkeypatch.setattr(trial_run, "train_trial", lambda *_, **__: pytest.fail("a net was trained"))
    settings = search_settings(project, ratios=(0.3, 0.5), device="cpu")
    assert settings.test == "probe" and settings.seeds == (0, 1, 2, 3, 4)
    job = submit_search(project, settings, device="cpu", immediate=True)
    assert job.status().state == jobs.DONE, job.log_tail()
    run = SearchRun(project.artifact(job.result()["artifact"]))
    assert run.settings.in_words == "a linear probe on pretrained features each"
    assert run.artifact.facts["test"] == "probe" and job.pins["features"] == features.artifact.hash
    assert {best.pruning_ratio for best in run.best} == {0.3, 0.5} and all(best.mean > 0.5 for best in run.best)
    trials = run.trials()
    again = submit_search(project, settings, device="cpu", immediate=True)
    assert trials.equals(SearchRun(project.artifact(again.result()["artifact"])).trials())


def test_on_features_searches_and_evaluations_keep_of_each_class_what_a_coreset_keeps(workspace, tmp_path):
    project = make_scored(workspace, tmp_path, n=80)
    add_features(project)
    done = submit_dynamics(project, start="frozen", encoder="efficientnet_lite0", epochs=12, immediate=True)
    assert done.status().state == "done", done.log_tail()
    pool, scores = project.pool(), latest_scores(project)
    trial = Trial(method="semi_aum_cutoff", pruning_ratio=0.5, seed=0, knobs={"cutoff": 0.3})
    chosen = Choice(project, scores, pool, np.arange(80))(trial)
    evidence = evidence_of(scores.table(), PseudoRun(project.latest("pseudo")), pool)
    kept = {"pruning_ratio": 0.5, "seed": 0, "cutoff": 0.3}
    wanted = select_coreset(evidence, "semi_aum_cutoff", class_share=0.75, **kept).indices
    free = select_coreset(evidence, "semi_aum_cutoff", **kept).indices
    assert {*chosen} == {*wanted} != {*free}
    settings = EvaluationSettings(methods=("random", "semi_aum_cutoff"), ratios=(0.5,), seeds=(0,), test="probe")
    knobs = {trial.method: trial.knobs for trial in planned_trials(settings, scores.basis())}
    assert knobs["semi_aum_cutoff"]["class_share"] == 0.75 and knobs["random"] == {}


def test_a_net_can_be_asked_for_where_there_are_features(workspace, tmp_path):
    project = make_scored(workspace, tmp_path)
    add_features(project)
    settings = search_settings(project, test="scratch", ratios=(0.5,))
    assert settings.test == "scratch" and settings.seeds == (0, 1) and "epochs of compact" in settings.in_words
