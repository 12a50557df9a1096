"""What an evaluation stands on: true labels, images held out, and nothing that came after its start."""

import json

import numpy as np
import pandas as pd
import pytest

from semiprune_core import files, jobs
from semiprune_core.coresets import CoresetRequest, own_evidence
from semiprune_core.dynamics.scoring import with_settings
from semiprune_core.errors import ConflictError, InvalidSettingError, MissingStepError
from semiprune_core.evaluation import (
    EvaluationSettings,
    evaluation_data,
    partial_trials,
    submit_evaluation,
)
from semiprune_core.evaluation import job as evaluate_job
from semiprune_core.evaluation.runs import finished
from semiprune_core.jobs.context import JobContext
from semiprune_core.labeling import open_store
from semiprune_core.learning.settings import SupervisedSettings
from semiprune_core.results import latest_scores
from semiprune_core.results.search import SearchRun
from semiprune_core.search import submit_search
from semiprune_core.selection import default_knobs
from semiprune_core.trials.apart import hold_out, ids_hash
from tests.search.test_search import GOOD, keep, of_elfs, table
from tests.support.evaluations import BRIEFLY, done, evaluate, stopped_in_its_second_trial
from tests.support.pseudo_runs import label_share
from tests.support.scored_projects import add_pseudo, make_pool, make_scored
from tests.support.training_projects import label


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
