"""The evaluation job: every cell once, pairs comparable, nothing lost by a stop, and honest about what it stands on."""

import dataclasses
import json
import shutil

import numpy as np
import pandas as pd
import pytest

from semiprune_core import files, jobs
from semiprune_core.coresets import CoresetRequest, build_coreset, own_evidence
from semiprune_core.dynamics.scoring import with_settings
from semiprune_core.errors import ConflictError, InvalidSettingError, MissingStepError, UnknownNameError
from semiprune_core.evaluation import (
    COLUMNS,
    EvaluationRun,
    EvaluationSettings,
    evaluation_data,
    keep_partial,
    partial_trials,
    planned_trials,
    submit_evaluation,
)
from semiprune_core.evaluation import job as evaluate_job
from semiprune_core.evaluation.files import table_caption, trials_csv
from semiprune_core.evaluation.plot import svg_plot
from semiprune_core.evaluation.runs import Evaluation, delete_result, finished
from semiprune_core.evaluation.view import summary
from semiprune_core.jobs.context import JobContext
from semiprune_core.jobs.job import Job
from semiprune_core.labeling import open_store
from semiprune_core.learning.settings import SupervisedSettings
from semiprune_core.methods import METHODS as registered
from semiprune_core.progress import Stopped
from semiprune_core.project.artifacts import differences
from semiprune_core.results import latest_scores
from semiprune_core.results.search import SearchRun
from semiprune_core.search import submit_search
from semiprune_core.selection import Basis, default_knobs, defaults
from semiprune_core.trials import run as trial_run
from semiprune_core.trials.apart import hold_out, ids_hash
from tests.search.test_search import GOOD, keep, of_elfs, table
from tests.support.encoders import tiny_encoder
from tests.support.features import add_features
from tests.support.pseudo_runs import label_share
from tests.support.scored_projects import add_pseudo, make_pool, make_scored
from tests.support.training_projects import label

METHODS = ("full", "semi_aum_cutoff", "random")
SHORT = {"methods": METHODS, "ratios": (0.5, 0.8), "seeds": (0, 1), "epochs": 3}
BRIEFLY = {
    "encoder": "pixels",
    "training": {"epochs": 3, "batch_size": 32},
    "heads": {"n_heads": 2, "epochs": 3, "hidden": 8, "bottleneck": 4, "n_components": 8, "batch_size": 64},
    "window": 2,
}
"""Evidence of a baseline in a second."""


@pytest.fixture
def project(workspace, tmp_path):
    return make_scored(workspace, tmp_path, n=60, n_classes=3, n_test=20)


@pytest.fixture
def quick(monkeypatch):
    """Trials that remember what they were given instead of training."""
    seen = []

    def train(images, labels, tests, truth, *, n_classes, settings, seed, progress, device):
        given = {"images": images, "labels": labels, "tests": tests, "truth": truth}
        seen.append({**given, "seed": seed, "batch": settings.batch_size, "epochs": settings.epochs})
        progress.report(1, 2, loss=1.0)
        if progress.should_stop():
            raise Stopped
        right = int(images.astype(int).sum() + 7 * seed) % (len(truth) + 1)
        return trial_run.TrialResult(right, len(truth), len(images), 0.6)

    monkeypatch.setattr(trial_run, "train_trial", train)
    return seen


def evaluate(project, **changes):
    return submit_evaluation(project, EvaluationSettings(**{**SHORT, **changes}), device="cpu", immediate=True)


def done(job):
    assert job.status().state == jobs.DONE, job.status().message + job.log_tail()
    return EvaluationRun(job.project.artifact(job.result()["artifact"]))


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


def test_a_longer_evaluation_goes_on_from_a_shorter_one(project, quick):
    short = done(evaluate(project, ratios=(0.8,), seeds=(0,))).trials()
    quick.clear()
    long = done(evaluate(project)).trials()
    assert len(quick) == len(long) - len(short)  # what the first had trained is not trained again
    told = ["method", "pruning_ratio", "seed"]
    both = short.merge(long, on=told, suffixes=("", "_again"))
    assert len(both) == len(short) and (both["n_correct"] == both["n_correct_again"]).all()
    assert (both["minutes"] == both["minutes_again"]).all()
    quick.clear()
    done(evaluate(project, epochs=4))
    assert len(quick) == len(long)  # another training is another result


def test_a_training_that_served_two_trials_is_taken_over_with_its_minutes(project, quick, monkeypatch):
    monkeypatch.setitem(registered._things, "own", registered["random"])  # another method with the same coresets
    monkeypatch.setitem(registered._facts, "own", {"title": "Own", "package": None})
    asked = {"methods": ("random", "own"), "ratios": (0.5,), "seeds": (0,)}
    first = done(evaluate(project, **asked)).trials()
    assert len(quick) == 1 and first["minutes"].tolist() == [0.01, 0.0]
    again = done(evaluate(project, **{**asked, "methods": ("own",)})).trials()
    assert len(quick) == 1 and again["minutes"].tolist() == [0.01]


def test_a_deleted_evaluation_leaves_nothing_to_take_over(project, quick):
    done(evaluate(project))
    run = done(evaluate(project, epochs=4))
    delete_result(project, run.artifact)
    assert len(project.artifacts("evaluation")) == len(jobs.list_jobs(project)) == 1
    quick.clear()
    assert len(done(evaluate(project, epochs=4)).trials()) == len(quick), "deleted numbers do not come back"
    quick.clear()
    done(evaluate(project))
    assert not quick, "those of the other evaluation still count"


def test_what_was_kept_of_a_stopped_evaluation_is_deleted_alone(project, quick, monkeypatch):
    job = stopped_in_its_second_trial(project, quick, monkeypatch)
    job.stop()
    delete_result(project, keep_partial(job).artifact)
    assert not project.artifacts("evaluation") and [one.id for one in jobs.list_jobs(project)] == [job.id]
    quick.clear()
    job.resume()
    evaluate_job.run(JobContext(job))
    assert len(quick) == len(partial_trials(job)) - 1, "it is resumed as if nothing had been kept"


def test_a_longer_evaluation_knows_what_the_evidence_has_cost(project, quick):
    short = evaluate(project, ratios=(0.8,), seeds=(0,))
    done(short)
    files.write_json(short.work_folder / "evidence.json", {"semi_aum_cutoff": 7.5, "random": 0.0})
    minutes = done(evaluate(project)).artifact.facts["evidence_minutes"]
    assert minutes["semi_aum_cutoff"] == 7.5 and minutes["random"] < 1
    other = done(evaluate(project, evidence={"semi_aum_cutoff": {"window": 2}})).artifact.facts["evidence_minutes"]
    assert other["semi_aum_cutoff"] < 1, "other evidence has a cost of its own"


def test_an_evaluation_of_a_method_that_is_gone_does_not_stop_later_ones(project, quick, monkeypatch):
    monkeypatch.setitem(registered._things, "own", registered["random"])
    monkeypatch.setitem(registered._facts, "own", {"title": "Own", "package": None})
    done(evaluate(project, methods=("own", "random"), ratios=(0.8,), seeds=(0,)))
    monkeypatch.delitem(registered._things, "own")
    quick.clear()
    trials = done(evaluate(project)).trials()
    assert len(quick) == len(trials) - 1, "what it trained for Random still counts"


def test_another_truth_shares_nothing_with_an_earlier_evaluation(project, quick):
    done(evaluate(project))
    quick.clear()
    trials = done(evaluate(project, truth="pseudo")).trials()
    assert len(quick) == len(trials)


def other_tests(project, monkeypatch):
    """Another picture of the same class in one place."""
    tests = project.test_set()
    first, second = np.flatnonzero(tests.reference_labels == 0)[:2]
    places = np.arange(len(tests))
    places[second] = first
    monkeypatch.setattr(type(project), "test_set", lambda self: tests.take(places))


def other_device(project, monkeypatch):
    monkeypatch.setattr(evaluate_job, "choose_device", lambda wanted: "cuda")


def other_version(name):
    def change(project, monkeypatch):
        known = evaluate_job.versions()
        monkeypatch.setattr(evaluate_job, "versions", lambda: {**known, name: "99.0"})

    return change


@pytest.mark.parametrize(
    "change",
    [other_tests, other_device, other_version("torch"), other_version("semiprune")],
    ids=["test set", "device", "torch", "semiprune"],
)
def test_another_test_set_device_or_version_shares_nothing(project, quick, monkeypatch, change):
    done(evaluate(project))
    quick.clear()
    change(project, monkeypatch)
    assert len(done(evaluate(project)).trials()) == len(quick)


def test_an_added_class_that_no_image_has_changes_nothing(workspace, tmp_path, quick):
    project = make_pool(workspace, tmp_path, n=24, n_classes=3, labeled=False, name="Bare")
    label(project, {position: "ab"[position % 2] for position in range(24)})
    asked = {"methods": ("full", "random"), "ratios": (0.5,)}
    done(evaluate(project, **asked))
    open_store(project).classes.add(["c"], annotator="ann")
    quick.clear()
    assert len(done(evaluate(project, **asked)).trials()) == 4 and not quick


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
    saved = build_coreset(project, request, kept=kept).coreset()
    np.testing.assert_array_equal(quick[0]["images"], project.pool().images()[np.sort(saved.indices)])
    assert json.loads(trials["knobs"].iloc[0])[knob] == saved.settings["knobs"][knob]


def test_without_a_test_split_a_fifth_is_held_out_of_every_coreset(workspace, tmp_path, quick):
    project = make_scored(workspace, tmp_path, n=60, n_classes=3)
    run = done(evaluate(project))
    held = quick[0]["tests"]
    assert len(held) == 12 and run.artifact.facts["test"] == "held out" and run.artifact.facts["n_chosen_from"] == 48
    assert "no test split" in run.artifact.facts["test_words"]
    forbidden = {image.tobytes() for image in held}
    for one in quick:
        assert not forbidden & {image.tobytes() for image in one["images"]}
        np.testing.assert_array_equal(one["tests"], held)
    assert set(run.trials().loc[lambda rows: rows["method"] == "full", "n_train"]) == {48}


def test_truth_is_reference_then_people_and_pseudo_only_if_asked(workspace, tmp_path, quick):
    project = make_pool(workspace, tmp_path, n=24, n_classes=3, labeled=False, name="Bare")
    with pytest.raises(MissingStepError, match="--truth pseudo"):
        evaluation_data(project)
    with pytest.raises(MissingStepError, match="24 of 24 images have no reference label"):
        evaluation_data(project, "reference")
    with pytest.raises(MissingStepError, match="no pseudo-labels"):
        evaluation_data(project, "pseudo")
    label(project, {position: "ab"[position % 2] for position in range(24)})
    data = evaluation_data(project)
    assert (data.truth, data.class_names, data.test) == ("human", ("a", "b"), "held out")
    assert data.labels.tolist() == [position % 2 for position in range(24)]
    run = done(evaluate(project, methods=("random",), ratios=(0.5,)))
    assert run.artifact.facts["truth"] == "human"


def test_pseudo_labels_are_trained_on_if_asked_but_never_tested_on(project, quick):
    run = done(evaluate(project, truth="pseudo", methods=("full",)))
    labels = np.load(project.latest("pseudo").path("labels.npy"))
    np.testing.assert_array_equal(quick[0]["labels"], labels)
    np.testing.assert_array_equal(quick[0]["truth"], project.test_set().reference_labels)
    assert run.artifact.facts["truth"] == "pseudo"


def test_images_held_out_of_pseudo_labeled_ones_are_tested_by_their_true_labels(workspace, tmp_path, quick):
    project = make_scored(workspace, tmp_path, n=60, n_classes=3, wrong=0.6)
    pool, labels = project.pool(), np.load(project.latest("pseudo").path("labels.npy"))
    true, seen = pool.reference_labels.copy(), int(np.flatnonzero(evaluation_data(project, "pseudo").held_mask)[0])
    true[seen] = (true[seen] + 1) % 3
    label(project, {seen: pool.class_names[true[seen]]})  # a person knows better than the reference
    run = done(evaluate(project, truth="pseudo", methods=("full", "random"), ratios=(0.5,)))
    place = {image.tobytes(): position for position, image in enumerate(pool.images())}
    held = [place[image.tobytes()] for image in quick[0]["tests"]]
    assert run.artifact.facts["test"] == "held out" and len(held) == 12 and (labels[held] != true[held]).any()
    for one in quick:
        np.testing.assert_array_equal(one["truth"], true[held])
        trained = [place[image.tobytes()] for image in one["images"]]
        np.testing.assert_array_equal(one["labels"], labels[trained])
        assert not {*held} & {*trained}


def test_newer_pseudo_labels_do_not_slip_in(project, quick):
    settings = EvaluationSettings(methods=("full",), seeds=(0,), epochs=3, truth="pseudo")
    labels = np.load(project.latest("pseudo").path("labels.npy"))
    job = submit_evaluation(project, settings, device="cpu")
    add_pseudo(project, seed=9)
    assert (np.load(project.latest("pseudo").path("labels.npy")) != labels).any()
    evaluate_job.run(JobContext(job))
    np.testing.assert_array_equal(quick[0]["labels"], labels)


def test_labels_that_people_change_later_do_not_slip_in(workspace, tmp_path, quick):
    project = make_pool(workspace, tmp_path, n=24, n_classes=3, labeled=False, name="Bare")
    label(project, {position: "ab"[position % 2] for position in range(24)})
    settings = EvaluationSettings(methods=("full",), seeds=(0,), epochs=3)
    before = evaluation_data(project)
    job = submit_evaluation(project, settings, device="cpu")
    label(project, dict.fromkeys(range(0, 20, 2), "b"))
    evaluate_job.run(JobContext(job))
    np.testing.assert_array_equal(quick[0]["labels"], before.labels[before.chosen_from])
    assert evaluation_data(project).labels.sum() > before.labels.sum()


def stopped_in_its_second_trial(project, quick, monkeypatch, **changes):
    job = submit_evaluation(project, EvaluationSettings(**{**SHORT, **changes}), device="cpu")
    with monkeypatch.context() as patch:
        patch.setattr(JobContext, "should_stop", lambda self: len(quick) > 1)
        with pytest.raises(Stopped):
            evaluate_job.run(JobContext(job))
    assert len(partial_trials(job)) == 1
    return job


def test_labels_given_after_a_stop_do_not_slip_into_what_a_baseline_looks_at(project, quick, monkeypatch):
    label_share(project, 0.4)
    asked = {"methods": ("extrapolation_knn",), "ratios": (0.5,), "evidence": BRIEFLY}
    job = stopped_in_its_second_trial(project, quick, monkeypatch, **asked)
    label_share(project, 0.2, seed=5)
    evaluate_job.run(JobContext(job))
    first, last = quick[0]["images"], quick[-1]["images"]
    np.testing.assert_array_equal(first, last)  # this method chooses the same coreset with every seed
    done(evaluate(project, **{**asked, "seeds": (2,)}))
    assert not np.array_equal(quick[-1]["images"], first), "a new evaluation looks at the new labels"


def test_a_baseline_that_would_look_at_something_else_after_a_stop_is_refused(project, quick, monkeypatch):
    asked = {"methods": ("fully_supervised",), "ratios": (0.5,), "evidence": BRIEFLY}
    job = stopped_in_its_second_trial(project, quick, monkeypatch, **asked)
    latest = project.latest("trajectory")  # baselines train as the latest dynamics run did
    said = files.read_json(latest.folder / "manifest.json")
    said["settings"] = {"training": SupervisedSettings(lr=0.3).to_json()}
    files.write_json(latest.folder / "manifest.json", said)
    with pytest.raises(ConflictError, match="What Fully supervised chooses by has changed") as refused:
        evaluate_job.run(JobContext(job))
    assert refused.value.code == "PINS_CHANGED" and len(partial_trials(job)) == 1
    done(evaluate(project, **asked))


def test_labels_given_later_are_no_truth_of_an_evaluation_that_was_queued_without_any(workspace, tmp_path):
    project = make_pool(workspace, tmp_path, n=24, n_classes=3)
    add_pseudo(project)
    nobody, truth = open_store(project).snapshot(), project.pool().reference_labels
    label(project, {position: str((truth[position] + 1) % 3) for position in range(6)})
    np.testing.assert_array_equal(evaluation_data(project, "pseudo", snapshot=nobody).held_labels, truth)
    assert (evaluation_data(project, "pseudo").held_labels != truth).sum() == 6


def test_same_annotation_budget_keeps_human_labels_where_a_method_used_them(project, quick):
    human = np.load(project.latest("pseudo").path("human_mask.npy"))
    done(
        evaluate(project, same_annotation_budget=True, methods=("semi_aum_cutoff", "random"), ratios=(0.7,), seeds=(0,))
    )
    images = project.pool().images()
    mine, chance = ({image.tobytes() for image in one["images"]} for one in quick)
    paid = {image.tobytes() for image in images[human]}
    assert paid <= mine and not paid <= chance and len(mine) == len(chance) == 18
    with pytest.raises(InvalidSettingError, match="12 images were labeled by a person"):
        evaluate(project, same_annotation_budget=True, ratios=(0.7, 0.9))


def test_searched_values_are_used_and_stay_those_of_the_start(project, quick):
    keep(project, table(GOOD))
    settings = EvaluationSettings(methods=("semi_aum_cutoff",), ratios=(0.5, 0.7), seeds=(0,), epochs=3)
    job = submit_evaluation(project, settings, device="cpu")
    assert job.settings["knobs"] == {"semi_aum_cutoff": {"0.7": {"cutoff": 0.2}}}
    evaluate_job.run(JobContext(job))
    knobs = {row.pruning_ratio: json.loads(row.knobs) for row in partial_trials(job).itertuples()}
    known = default_knobs("semi_aum_cutoff", 0.5, latest_scores(project).basis()).selector
    assert knobs == {0.7: {"cutoff": 0.2}, 0.5: known}


def test_what_was_searched_for_a_baseline_is_used_and_stays_that_of_the_start(project, quick, monkeypatch):
    asked = {"methods": ("elfs",), "ratios": (0.7,), "evidence": BRIEFLY}
    kept = own_evidence(project, CoresetRequest(method="elfs"), settings=BRIEFLY)
    of_elfs(project, kept, best=0.3)
    job = stopped_in_its_second_trial(project, quick, monkeypatch, **asked)
    of_elfs(project, kept, best=0.5)
    evaluate_job.run(JobContext(job))
    assert set(partial_trials(job)["knobs"]) == {'{"cutoff": 0.3}'}
    assert set(done(evaluate(project, **asked)).trials()["knobs"]) == {'{"cutoff": 0.5}'}
    by_hand = {**asked, "knobs": {"elfs": {"0.7": {"cutoff": 0.1}}}}
    assert set(done(evaluate(project, **by_hand)).trials()["knobs"]) == {'{"cutoff": 0.1}'}


def test_other_scores_of_the_same_run_do_not_slip_in(project, quick):
    settings = EvaluationSettings(methods=("semi_dual_beta",), ratios=(0.5,), seeds=(0,), epochs=3)
    first = done(submit_evaluation(project, settings, device="cpu", immediate=True)).trials()
    job = submit_evaluation(project, settings, device="cpu")
    with_settings(project, dual_epochs=10, gamma=0.3)
    evaluate_job.run(JobContext(job))
    pd.testing.assert_frame_equal(partial_trials(job), first)


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


def searched(project, **settings):
    job = submit_search(project, method="semi_aum_cutoff", ratios=(0.5, 0.8), device="cpu", immediate=True, **settings)
    assert job.status().state == jobs.DONE, job.log_tail()
    return SearchRun(project.artifact(job.result()["artifact"]))


@pytest.mark.parametrize("split_seed", [0, 3])
def test_no_search_compares_on_images_that_an_evaluation_tests_on(workspace, tmp_path, quick, split_seed):
    project = make_scored(workspace, tmp_path, n=60, n_classes=3)
    search = searched(project, split_seed=split_seed, validation=0.3)
    run = done(evaluate(project))
    compared, tested = search.compared_ids(), run.tested_ids()
    assert (len(compared), len(tested), np.isin(compared, tested).sum()) == (18, 12, 0)
    told = {"search": search.artifact.id, "sha256": search.artifact.hash, "n_compared": 18, "n_tested": 0}
    facts = run.artifact.facts
    assert facts["searches"] == [told] and not facts["search_words"]
    assert facts["held_out"]["rule"] == search.artifact.facts["held_out"]["rule"]
    assert facts["held_out"]["ids_sha256"] == ids_hash(tested) != search.artifact.facts["held_out"]["ids_sha256"]


def test_a_search_of_an_earlier_version_that_compared_on_test_images_is_named(workspace, tmp_path, quick):
    project = make_scored(workspace, tmp_path, n=60, n_classes=3)
    old = keep(project, table(GOOD))
    run = done(evaluate(project, ratios=(0.7,)))
    (told,) = run.artifact.facts["searches"]
    every = np.arange(60)
    compared = project.pool().ids[hold_out(every, every, 0.1, seed=0)]
    n_shared = int(np.isin(compared, run.tested_ids()).sum())
    assert told["search"] == old.artifact.id and told["n_compared"] == 6 and told["n_tested"] == n_shared > 0
    assert f"tuned on {n_shared} of the test images" in run.artifact.facts["search_words"]
    assert finished(project)[0].facts["search_words"]


def test_an_evaluation_with_other_test_images_is_not_continued(workspace, tmp_path, quick, monkeypatch):
    project = make_scored(workspace, tmp_path, n=60, n_classes=3)
    job = stopped_in_its_second_trial(project, quick, monkeypatch)
    (job.work_folder / "tested.json").unlink()  # as it was before it was noted
    with pytest.raises(ConflictError, match="Start a new one"):
        evaluate_job.run(JobContext(job))


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
