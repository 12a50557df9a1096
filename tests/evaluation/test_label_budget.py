"""The label-budget study: nested labels, a whole small study, a stop in each stage, and what it says."""

import numpy as np
import pandas as pd
import pytest

from semiprune_core import jobs
from semiprune_core.errors import InvalidSettingError, MissingStepError
from semiprune_core.evaluation import study_job
from semiprune_core.evaluation.studies import (
    LABEL_BUDGET,
    BudgetSettings,
    SizeSettings,
    n_trainings,
    nested_labels,
    submit_study,
)
from semiprune_core.evaluation.study_view import StudyRun, partial_study, share_view, trend_sentence
from semiprune_core.evaluation.view import COLUMNS
from semiprune_core.files import read_json
from tests.support.job_runs import run_again
from tests.support.scored_projects import make_pool
from tests.support.trial_tables import trial

SMALL = {
    "methods": ("semi_aum_cutoff",),
    "ratios": (0.5,),
    "seeds": (0, 1),
    "ssl": {"epochs": 1, "steps_per_epoch": 2, "batch_size": 8, "unlabeled_ratio": 1},
    "training": {"epochs": 2, "batch_size": 32},
}


def test_each_budget_contains_the_smaller_ones_and_copies_count_once():
    labels = np.arange(100) % 4
    duplicate_of = np.arange(100)
    duplicate_of[50:60] = np.arange(10)
    small, middle, large = nested_labels(labels, duplicate_of, (0.1, 0.2, 1.0), seed=3)
    assert [(one >= 0).sum() for one in (small, middle, large)] == [9, 18, 90]
    for inner, outer in ((small, middle), (middle, large)):
        assert (outer[inner >= 0] == labels[inner >= 0]).all()
    assert (large[50:60] == -1).all()
    again, _, _ = nested_labels(labels, duplicate_of, (0.1, 0.2, 1.0), seed=3)
    other, _, _ = nested_labels(labels, duplicate_of, (0.1, 0.2, 1.0), seed=4)
    assert (again == small).all() and (other != small).any()


@pytest.mark.parametrize(
    "values, words",
    [
        ({"budgets": ()}, "budgets must list one or more"),
        ({"budgets": (0.1, 0.1)}, "budgets must list one or more"),
        ({"budgets": (1.5,)}, "budget"),
        ({"methods": ("random",)}, "method"),
        ({"truth": "pseudo"}, "truth"),
    ],
)
def test_what_cannot_be_studied_is_refused(values, words):
    with pytest.raises(InvalidSettingError, match=words):
        BudgetSettings(**values)


def test_without_true_labels_there_is_no_study(workspace, tmp_path):
    project = make_pool(workspace, tmp_path, n=24, labeled=False)
    with pytest.raises(MissingStepError, match="true labels"):
        submit_study(project, BudgetSettings(**SMALL), immediate=True)


def test_a_small_study_walks_all_stages_and_leaves_a_table(workspace, tmp_path):
    project = make_pool(workspace, tmp_path, n=60, n_test=20)
    settings = BudgetSettings(budgets=(0.02, 0.4, 0.6), **SMALL)
    job = submit_study(project, settings, device="cpu", immediate=True)
    assert job.status().state == jobs.DONE, job.status().message
    run = StudyRun(project.latest("study"))
    table = run.trials()
    assert list(table) == ["budget", *COLUMNS]
    counts = table.groupby(["budget", "method"]).size().to_dict()
    assert counts == {
        (0.0, "full"): 2,
        (0.0, "random"): 2,
        (0.4, "semi_aum_cutoff"): 2,
        (0.6, "semi_aum_cutoff"): 2,
    }
    left_out, small, large = run.stages()
    assert "3 of 4 classes have no label in it" in left_out["problem"]  # one label
    assert (small["n_labels"], large["n_labels"]) == (24, 36) and 0 <= large["pseudo_accuracy"] <= 1
    assert run.artifact.facts["test"] == "split" and run.artifact.facts["n_test"] == 20
    status = job.status()
    assert status.done <= status.total and status.facts["trials_total"] == n_trainings(settings) == 10
    view = share_view(LABEL_BUDGET, table, 0.5, methods=settings.methods, shares=settings.budgets)
    assert view.ratios == (0.02, 0.4, 0.6) and view.cell("random", 0.02).n == 2
    assert view.cell("semi_aum_cutoff", 0.02) is None and view.cell("semi_aum_cutoff", 0.6).difference.n == 2


def test_a_study_stopped_anywhere_goes_on_to_the_same_table(workspace, tmp_path, monkeypatch):
    project = make_pool(workspace, tmp_path, n=40, n_test=12)
    settings = BudgetSettings(budgets=(0.5,), **SMALL)
    whole = submit_study(project, settings, device="cpu", immediate=True)
    assert whole.status().state == jobs.DONE, whole.status().message
    wanted = StudyRun(project.latest("study")).trials()
    total = whole.status().total
    limits = iter([0.15, 0.4, 0.6, 0.8, 2.0])
    limit = [next(limits) * total]
    report = jobs.JobContext.report
    reached = []

    def told(self, done, all_, /, **facts):
        reached.append(done)
        return report(self, done, all_, **facts)

    monkeypatch.setattr(jobs.JobContext, "report", told)
    monkeypatch.setattr(jobs.JobContext, "should_stop", lambda self: bool(reached) and reached[-1] >= limit[0])
    job = submit_study(project, settings, device="cpu", immediate=True)
    n_stops = 0
    while job.status().state != jobs.DONE:
        assert job.status().state == jobs.STOPPED, job.status().message
        n_stops += 1
        table, _ = partial_study(job)
        assert len(table) <= len(wanted)
        limit[0] = next(limits) * total
        reached.clear()
        run_again(job)
    assert n_stops >= 2
    clock, (stage,) = job.work_folder / "budget-0.5" / "ssl_seconds.json", StudyRun(project.latest("study")).stages()
    assert stage["ssl_minutes"] == round(read_json(clock)["seconds"] / 60, 3)  # of all attempts together
    again = StudyRun(project.latest("study")).trials()
    same = [name for name in wanted if name != "minutes"]
    pd.testing.assert_frame_equal(again[same], wanted[same])


def test_the_view_by_budget_speaks_of_budgets():
    rows = [
        (0.0, *trial("full", 0.0, 0, 0.9)),
        (0.0, *trial("random", 0.5, 0, 0.6)),
        (0.0, *trial("random", 0.5, 1, 0.6)),
    ]
    rows += [(0.1, *trial("semi_aum_cutoff", 0.5, seed, 0.72)) for seed in (0, 1)]
    rows += [(0.1, *trial("semi_aum_cutoff", 0.9, seed, 0.1)) for seed in (0, 1)]
    rows += [(0.2, *trial("semi_aum_cutoff", 0.5, 0, 0.8))]
    table = pd.DataFrame(rows, columns=["budget", *COLUMNS])
    view = share_view(LABEL_BUDGET, table, 0.5, methods=("semi_aum_cutoff",))
    assert view.sentence() == (
        "With 10% of the pool labeled, at 50% pruning, Semi-AUM+Cutoff keeps 80% of full accuracy, 12.0 ± 0.9 points "
        "above random (2 seeds)."
    )
    assert view.axis == "Label budget" and view.ratios == (0.1, 0.2)
    assert trend_sentence(view) == (
        "From 10% to 20% the lead of Semi-AUM+Cutoff over random goes from +12.0 to +20.0 points, from one seed: this "
        "may be chance."
    )


def test_a_clock_goes_on_where_the_last_attempt_left_it(tmp_path, monkeypatch):
    now = iter([10.0, 13.0, 100.0, 104.0])
    monkeypatch.setattr(study_job.time, "monotonic", lambda: next(now))
    with pytest.raises(RuntimeError), study_job.Clock(tmp_path / "seconds.json"):
        raise RuntimeError("stopped on the way")
    with study_job.Clock(tmp_path / "seconds.json") as clock:
        pass
    assert clock.seconds == 7.0


def test_ratios_that_leave_less_than_an_image_per_class_are_refused(workspace, tmp_path):
    project = make_pool(workspace, tmp_path, n=60, n_test=20)
    with pytest.raises(InvalidSettingError, match="0.95 leaves 3 images for 4 classes. Choose smaller ratios."):
        submit_study(project, BudgetSettings(**{**SMALL, "ratios": (0.95,)}), immediate=True)
    with pytest.raises(InvalidSettingError, match="leaves 3 images for 4 classes.*smallest part has 30 images"):
        submit_study(project, SizeSettings(sizes=(0.5, 1.0), **{**SMALL, "ratios": (0.9,)}), immediate=True)
    assert not jobs.list_jobs(project)
