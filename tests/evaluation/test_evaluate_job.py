"""The evaluation job: every cell once, pairs comparable, nothing lost by a stop, and honest about what it stands on."""

import dataclasses
import json
import shutil

import numpy as np
import pandas as pd
import pytest

from semiprune_core import jobs
from semiprune_core.coresets import CoresetRequest, build_coreset, own_evidence
from semiprune_core.errors import InvalidSettingError, MissingStepError, UnknownNameError
from semiprune_core.evaluation import (
    COLUMNS,
    EvaluationRun,
    EvaluationSettings,
    keep_partial,
    partial_trials,
    planned_trials,
    submit_evaluation,
)
from semiprune_core.evaluation import job as evaluate_job
from semiprune_core.evaluation.files import table_caption, trials_csv
from semiprune_core.evaluation.plot import svg_plot
from semiprune_core.evaluation.runs import Evaluation, finished
from semiprune_core.evaluation.view import summary
from semiprune_core.jobs.context import JobContext
from semiprune_core.jobs.job import Job
from semiprune_core.project.artifacts import differences
from semiprune_core.results import latest_scores
from semiprune_core.selection import Basis, default_knobs, defaults
from semiprune_core.trials import run as trial_run
from tests.support.encoders import tiny_encoder
from tests.support.evaluations import BRIEFLY, SHORT, done, evaluate
from tests.support.features import add_features
from tests.support.scored_projects import add_pseudo, make_pool, make_scored


def test_the_table_has_every_cell_and_the_agreed_columns(project, quick):
    job = evaluate(project)
    run = done(job)
    trials = run.trials()
    assert tuple(trials.columns) == COLUMNS and len(trials) == 2 * (2 * 2 + 1)
    full = trials[trials["method"] == "full"]
    assert set(full["pruning_ratio"]) == {0.0} and set(full["n_train"]) == {60} and set(trials["n_test"]) == {20}
    assert set(trials.loc[trials["pruning_ratio"] == 0.8, "n_train"]) == {12}
    assert (trials["test_accuracy"] == trials["n_correct"] / trials["n_test"]).all() and (
        trials["minutes"] == 0.01
    ).all()
    known = default_knobs("semi_aum_cutoff", 0.8, latest_scores(project).basis()).selector
    assert json.loads(trials.loc[trials["method"] == "semi_aum_cutoff", "knobs"].iloc[0]) == known
    facts = run.artifact.facts
    assert facts["truth"] == "reference" and facts["test"] == "split" and not facts["stopped"]
    assert (facts["n_pool"], facts["n_test"], facts["class_names"]) == (60, 20, ["0", "1", "2"])
    assert facts["methods"]["full"] == "Full data" and set(facts["evidence_minutes"]) == {"semi_aum_cutoff", "random"}
    assert set(run.artifact.inputs) == {"pool", "labels", "pseudo", "scores"} and differences(run.artifact.folder) == []
    pd.testing.assert_frame_equal(partial_trials(job), trials)
    assert job.status().done == job.status().total and job.status().facts["trials_done"] == len(trials)


def test_small_coresets_come_first_and_every_method_has_a_first_seed_before_a_second(project):
    trials = planned_trials(EvaluationSettings(**SHORT), Basis(60, 12))
    assert [(t.method, t.pruning_ratio, t.seed) for t in trials[:5]] == [
        ("semi_aum_cutoff", 0.8, 0),
        ("random", 0.8, 0),
        ("semi_aum_cutoff", 0.5, 0),
        ("random", 0.5, 0),
        ("full", 0.0, 0),
    ]
    assert [t.seed for t in trials] == [0] * 5 + [1] * 5
    given = planned_trials(EvaluationSettings(**SHORT, order="as_given"), Basis(60, 12))
    assert [t.method for t in given[:4]] == ["full", "full", "semi_aum_cutoff", "semi_aum_cutoff"]


def test_it_trains_on_the_coreset_of_the_select_page_with_true_labels(project, quick):
    hardest = {"semi_aum_cutoff": {"0.5": {"cutoff": 0.0}}}
    done(evaluate(project, methods=("semi_aum_cutoff",), ratios=(0.5,), seeds=(3,), knobs=hardest))
    request = CoresetRequest(method="semi_aum_cutoff", pruning_ratio=0.5, seed=3, given={"cutoff": 0.0})
    saved = build_coreset(project, request).coreset()
    pool, idx = project.pool(), np.sort(saved.indices)
    np.testing.assert_array_equal(quick[0]["images"], pool.images()[idx])
    np.testing.assert_array_equal(quick[0]["labels"], pool.reference_labels[idx])
    assert (quick[0]["labels"] != np.load(project.latest("pseudo").path("labels.npy"))[idx]).any()
    np.testing.assert_array_equal(quick[0]["tests"], project.test_set().images())


@pytest.mark.parametrize("given, large", [({}, 50), ({"n_epochs": 2}, 50), ({}, 100)], ids=["large", "T", "small"])
@pytest.mark.parametrize("method, knob", [("fully_supervised", "c_d"), ("elfs", "cutoff")])
def test_a_baseline_is_trained_on_the_coreset_of_the_select_page(
    project, quick, monkeypatch, method, knob, given, large
):
    """On a large pool the length of its own run decides on the knobs, on a small one how well that run learned."""
    monkeypatch.setattr(defaults, "PAPER_MIN_IMAGES", large)
    monkeypatch.setattr(defaults, "PAPER_MIN_EPOCHS", 3)
    knobs = {method: {"0.7": given}}
    asked = {"methods": (method,), "ratios": (0.7,), "seeds": (3,), "evidence": BRIEFLY, "knobs": knobs}
    trials = done(evaluate(project, **asked)).trials()
    request = CoresetRequest(method=method, pruning_ratio=0.7, seed=3, given=given)
    kept = own_evidence(project, request, settings=BRIEFLY)
    saved = build_coreset(project, request, own=kept).coreset()
    np.testing.assert_array_equal(quick[0]["images"], project.pool().images()[np.sort(saved.indices)])
    assert json.loads(trials["knobs"].iloc[0])[knob] == saved.settings["knobs"][knob]


def test_a_stop_keeps_what_is_done_and_a_resume_trains_only_the_rest(project, quick, monkeypatch):
    first = evaluate(project)
    whole = done(first).trials()
    with pytest.raises(InvalidSettingError, match="no partial result"):
        keep_partial(first)
    shutil.rmtree(first.folder)  # so that nothing is taken over from it
    quick.clear()
    asked = []

    def stop_once(self):
        asked.append(1)
        return len(asked) == 5

    with monkeypatch.context() as patch:
        patch.setattr(JobContext, "should_stop", stop_once)
        job = evaluate(project)
    assert job.status().state == jobs.STOPPED and len(project.artifacts("evaluation")) == 1
    before = partial_trials(job)
    assert 0 < len(before) < len(whole)
    kept = keep_partial(job)
    assert kept.artifact.facts["stopped"] and kept.artifact.facts["evidence_minutes"]
    pd.testing.assert_frame_equal(kept.trials(), before)
    assert keep_partial(job).artifact.id == kept.artifact.id
    evaluate_job.run(JobContext(Job.open(job.folder)))
    assert len(quick) == len(whole) + 1, "only the trial in progress was trained twice"
    last = EvaluationRun(project.latest("evaluation"))
    pd.testing.assert_frame_equal(last.trials(), whole)
    assert not last.artifact.facts["stopped"]


def test_one_seed_and_ratio_starts_all_methods_alike_and_the_batch_is_halved(project, quick):
    done(evaluate(project))
    by_size = {}
    for one in quick:
        by_size.setdefault(len(one["images"]), []).append((one["seed"], one["batch"]))
    assert by_size[12] == [(0, 64), (0, 64), (1, 64), (1, 64)] and by_size[30] == [
        (0, 128),
        (0, 128),
        (1, 128),
        (1, 128),
    ]


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"methods": ("semi_aum",)}, UnknownNameError, "semi_aum_cutoff"),
        ({"methods": ()}, InvalidSettingError, "methods"),
        ({"seeds": (1, 1)}, InvalidSettingError, "seeds"),
        ({"ratios": ()}, InvalidSettingError, "at least one pruning ratio"),
        ({"ratios": (0.5, 1.0)}, InvalidSettingError, "ratio must be"),
        ({"ratios": (-0.1,)}, InvalidSettingError, "ratio must be above 0"),
        ({"ratios": (0.0, 0.5)}, InvalidSettingError, "0 keeps every image.* method full.*Train on all images too"),
        ({"truth": "guess"}, InvalidSettingError, "truth must be one of"),
        ({"order": "dear_first"}, InvalidSettingError, "order"),
        ({"ratios": (0.99,)}, InvalidSettingError, "leaves 1 images for 3 classes"),
        ({"knobs": {"random": {"0.5": {"cutof": 1}}}, "methods": ("random",)}, InvalidSettingError, "cutoff"),
        ({"knobs": {"random": {"0.5": {"class_balanced": True}}}}, InvalidSettingError, "cannot set class_balanced"),
        ({"knobs": {"random": {"0.5": {"min_per_class": 2}}}}, InvalidSettingError, "cannot set min_per_class"),
        ({"knobs": {"random": {"0.5": {"seed": 2}}}}, InvalidSettingError, "cannot set seed for random at ratio 0.5"),
    ],
)
def test_what_cannot_be_is_refused_before_it_is_queued(project, changes, error, message):
    with pytest.raises(error, match=message):
        settings = EvaluationSettings(**{**SHORT, **changes})
        submit_evaluation(project, settings, device="cpu")
    assert not list(project.runs_folder.iterdir())


def test_methods_whose_scores_are_missing_are_refused_and_others_are_not(workspace, tmp_path):
    project = make_pool(workspace, tmp_path, n=24, n_classes=3, name="Bare")
    add_pseudo(project)
    with pytest.raises(MissingStepError, match="no scores yet"):
        submit_evaluation(project, EvaluationSettings(**SHORT), device="cpu")
    submit_evaluation(project, EvaluationSettings(**{**SHORT, "methods": ("random",), "ratios": (0.5,)}), device="cpu")


def test_a_real_evaluation_learns_something(project):
    run = done(evaluate(project, methods=("full",), seeds=(0,), epochs=5))
    assert run.trials().set_index("method").loc["full", "test_accuracy"] > 0.5


def test_an_evaluation_says_how_long_it_trained_and_what_came_before(project, quick):
    done(evaluate(project, epochs=None))
    (one,) = finished(project)
    assert one.schedule == "60 to 90 epochs for the coresets, 90 for the full data"
    assert dataclasses.replace(one, asked={**one.asked, "preset": "gone"}).schedule == ""
    before = one.minutes_before(project)
    assert (
        before["semi_aum_cutoff"] == pytest.approx(1.5, abs=0.1) and before["random"] < 0.1
    )  # pseudo-labels took 90 s


@pytest.mark.parametrize("n_test, test", [(24, "split"), (0, "held out")])
def test_a_probe_tests_coresets_without_training_a_net(workspace, tmp_path, monkeypatch, n_test, test):
    project = make_scored(workspace, tmp_path, n_test=n_test)
    features = add_features(project)
    monkeypatch.setattr(trial_run, "train_trial", lambda *_, **__: pytest.fail("a net was trained"))
    settings = EvaluationSettings(methods=("full", "random", "semi_aum_cutoff"), ratios=(0.5,), test="probe")
    job = submit_evaluation(project, settings, device="cpu", immediate=True)
    assert job.status().state == jobs.DONE, job.log_tail()
    (evaluation,) = finished(project)
    facts = evaluation.artifact.facts
    assert facts["tested_by"] == "probe" and facts["test"] == test and "linear probe" in facts["test_words"]
    assert evaluation.artifact.inputs["features"] == features.artifact.hash
    view = evaluation.view()
    assert view.tested_by == "Probe on features" and view.full.mean > 0.8
    assert set(summary(view)["tested_by"]) == {"Probe on features"} and "probe on features" in table_caption(view)
    assert "probe on features" in svg_plot(view) and trials_csv(evaluation.trials(), view.tested_by).count("Probe") == 9


def test_probes_without_features_are_refused_in_a_sentence(workspace, tmp_path):
    project = make_scored(workspace, tmp_path)
    with pytest.raises(MissingStepError, match="semiprune embed"):
        submit_evaluation(project, EvaluationSettings(test="probe", ratios=(0.5,)))


def test_a_fine_tuned_net_begins_with_the_encoders_weights(workspace, tmp_path, monkeypatch):
    project = make_scored(workspace, tmp_path, n=60)
    monkeypatch.setattr("semiprune_core.dynamics.finetuned.open_pretrained", lambda *_, **__: tiny_encoder())
    settings = EvaluationSettings(methods=("random",), ratios=(0.5,), seeds=(0,), epochs=1, test="finetune")
    job = submit_evaluation(project, settings, device="cpu", immediate=True)
    assert job.status().state == jobs.DONE, job.log_tail()
    (evaluation,) = finished(project)
    assert evaluation.tested_by == "Fine-tuned" and evaluation.training.lr == 0.003
    assert "2 epochs for the coresets" in evaluation.schedule and "encoder's weights" in evaluation.facts["test_words"]


@pytest.mark.parametrize("test", ["scratch", "finetune"])
def test_the_full_data_is_trained_on_as_long_as_the_longest_coreset(project, quick, monkeypatch, test):
    if test == "finetune":
        monkeypatch.setattr(evaluate_job, "finetuned_start", lambda project, pool: None)
    run = done(evaluate(project, test=test, seeds=(0, 1)))
    by_size = {len(given["images"]): given["epochs"] for given in quick}
    assert by_size == {12: 9, 30: 6, 60: 9} and run.artifact.facts["full_epochs"] == 9
    (evaluation,) = finished(project)
    assert evaluation.full_is_upper and "of full accuracy" in evaluation.view().sentence()
    before = {name: value for name, value in run.artifact.facts.items() if name != "full_epochs"}
    monkeypatch.setattr(Evaluation, "facts", before)  # as earlier versions kept it
    assert not evaluation.full_is_upper and "of full accuracy" not in evaluation.view().sentence()
    assert evaluation.view().full is not None and evaluation.schedule.endswith("3 for the full data")
