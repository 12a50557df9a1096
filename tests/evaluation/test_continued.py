"""What an evaluation takes over from an earlier one, and what it shares nothing with."""

import numpy as np
import pytest

from semiprune_core import files, jobs
from semiprune_core.errors import ConflictError
from semiprune_core.evaluation import job as evaluate_job
from semiprune_core.evaluation import (
    keep_partial,
    partial_trials,
)
from semiprune_core.evaluation.runs import delete_result
from semiprune_core.jobs.context import JobContext
from semiprune_core.labeling import open_store
from semiprune_core.methods import METHODS as registered
from tests.support.evaluations import done, evaluate, stopped_in_its_second_trial
from tests.support.scored_projects import make_pool, make_scored
from tests.support.training_projects import label


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


def test_an_evaluation_with_other_test_images_is_not_continued(workspace, tmp_path, quick, monkeypatch):
    project = make_scored(workspace, tmp_path, n=60, n_classes=3)
    job = stopped_in_its_second_trial(project, quick, monkeypatch)
    (job.work_folder / "tested.json").unlink()  # as it was before it was noted
    with pytest.raises(ConflictError, match="Start a new one"):
        evaluate_job.run(JobContext(job))
