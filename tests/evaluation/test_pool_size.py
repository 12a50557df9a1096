"""The pool-size study: nested parts, a whole small study, a stop on the way, and how the lead over Random changes."""

import numpy as np
import pandas as pd
import pytest

from semiprune_core import jobs
from semiprune_core.errors import InvalidSettingError
from semiprune_core.evaluation.studies import (
    POOL_SIZE,
    SizeSettings,
    copies_among,
    cost_of,
    n_trainings,
    nested_parts,
    submit_study,
)
from semiprune_core.evaluation.study_view import StudyRun, full_by_share, share_view, trend_sentence
from semiprune_core.evaluation.view import COLUMNS
from tests.support.job_runs import run_again
from tests.support.scored_projects import make_pool
from tests.support.trial_tables import trial

SMALL = {
    "methods": ("semi_aum_cutoff",),
    "ratios": (0.5,),
    "seeds": (0, 1),
    "labeled": 0.5,
    "ssl": {"epochs": 1, "steps_per_epoch": 2, "batch_size": 8, "unlabeled_ratio": 1},
    "training": {"epochs": 2, "batch_size": 32},
}


def test_each_part_contains_the_smaller_ones_and_keeps_copies_together():
    duplicate_of = np.arange(100)
    duplicate_of[50:60] = np.arange(10)
    small, middle, whole = nested_parts(duplicate_of, (0.1, 0.5, 1.0), seed=3)
    assert np.isin(small, middle).all() and whole.tolist() == list(range(100))
    for part in (small, middle):
        assert np.isin(duplicate_of[part], part).all()  # the first copy is there
        assert np.isin(np.flatnonzero(np.isin(duplicate_of, duplicate_of[part])), part).all()  # and all others
        own = copies_among(duplicate_of, part)
        assert (part[own] == duplicate_of[part]).all()
    assert len(np.unique(duplicate_of[small])) == 9 and len(np.unique(duplicate_of[middle])) == 45  # of 90 pictures
    again, other = nested_parts(duplicate_of, (0.1,), seed=3), nested_parts(duplicate_of, (0.1,), seed=4)
    assert again[0].tolist() == small.tolist() != other[0].tolist()


@pytest.mark.parametrize(
    "values, words",
    [({"sizes": ()}, "sizes must list one or more"), ({"sizes": (0.0, 1.0)}, "size"), ({"labeled": 0.0}, "labeled")],
)
def test_what_cannot_be_studied_is_refused(values, words):
    with pytest.raises(InvalidSettingError, match=words):
        SizeSettings(**values)


def test_labels_are_drawn_from_each_part():
    labels, duplicate_of = np.arange(200) % 4, np.arange(200)
    quarter, whole = SizeSettings(sizes=(0.25, 1.0), labeled=0.1).parts(labels, duplicate_of)
    assert len(quarter.among) == 50 and (quarter.labels >= 0).sum() == 5 and (whole.labels >= 0).sum() == 20
    shown = quarter.labels >= 0
    assert (quarter.labels[shown] == labels[quarter.among][shown]).all()
    assert quarter.methods == ("random", "full", "semi_aum_cutoff", "semi_dual_beta") == whole.methods


def test_a_small_study_walks_all_stages_on_every_size(workspace, tmp_path):
    project = make_pool(workspace, tmp_path, n=60, n_test=20)
    settings = SizeSettings(sizes=(0.2, 0.5, 1.0), **SMALL)
    job = submit_study(project, settings, device="cpu", immediate=True)
    assert job.status().state == jobs.DONE, job.status().message
    run = StudyRun(project.latest("study"))
    table = run.trials()
    assert run.axis is POOL_SIZE and list(table) == ["size", *COLUMNS]
    stages = {stage["size"]: stage for stage in run.stages()}
    assert [stages[size]["n_images"] for size in (0.2, 0.5, 1.0)] == [12, 30, 60]
    assert [stages[size]["n_labels"] for size in (0.2, 0.5, 1.0)] == [6, 15, 30]
    learned = [size for size, stage in stages.items() if "problem" not in stage]
    assert 1.0 in learned and table.groupby(["size", "method"]).size().to_dict() == {
        (size, method): 2 for size in learned for method in ("full", "random", "semi_aum_cutoff")
    }
    assert set(table.loc[table["method"] == "full", "n_train"]) == {stages[size]["n_images"] for size in learned}
    assert (
        table.loc[table["method"] != "full", "n_train"] * 2 == 60 * table.loc[table["method"] != "full", "size"]
    ).all()
    assert set(table["n_test"]) == {20}
    status = job.status()
    assert status.done <= status.total and status.facts["trials_total"] == n_trainings(settings) == 18
    view = share_view(POOL_SIZE, table, 0.5, methods=settings.methods, shares=settings.sizes)
    assert view.full is None and view.cell("semi_aum_cutoff", 1.0).difference.n == 2
    assert list(full_by_share(POOL_SIZE, table)) == sorted(learned)


def test_a_stopped_study_goes_on_to_the_same_table(workspace, tmp_path, monkeypatch):
    project = make_pool(workspace, tmp_path, n=40, n_test=12)
    settings = SizeSettings(sizes=(0.5, 1.0), **SMALL)
    whole = submit_study(project, settings, device="cpu", immediate=True)
    assert whole.status().state == jobs.DONE, whole.status().message
    wanted = StudyRun(project.latest("study")).trials()
    asked, every = [0], 17
    monkeypatch.setattr(
        jobs.JobContext, "should_stop", lambda self: asked.append(asked.pop() + 1) or asked[0] % every == 0
    )
    job = submit_study(project, settings, device="cpu", immediate=True)
    n_stops = 0
    while job.status().state != jobs.DONE:
        assert job.status().state == jobs.STOPPED, job.status().message
        n_stops += 1
        run_again(job)
    assert n_stops >= 2
    again = StudyRun(project.latest("study")).trials()
    same = [name for name in wanted if name != "minutes"]
    pd.testing.assert_frame_equal(again[same], wanted[same])


def test_the_cost_grows_with_the_part_but_for_the_semi_supervised_run():
    settings = SizeSettings(sizes=(0.25, 1.0))
    quarter, whole = (cost_of(settings, one.n_images, one.methods) for one in settings.plan(1000))
    assert (
        quarter.ssl == whole.ssl and 4 * quarter.dynamics == whole.dynamics and 4 * quarter.trainings == whole.trainings
    )


def table_of(leads):
    """Random at 0.6 and 0.5 by seed; ``leads`` over it by size and seed."""
    rows = []
    for size, by_seed in leads.items():
        for seed, lead in enumerate(by_seed):
            rows.append((size, *trial("random", 0.9, seed, 0.6 - 0.1 * seed)))
            rows.append((size, *trial("semi_aum_cutoff", 0.9, seed, 0.6 - 0.1 * seed + lead)))
    return pd.DataFrame(rows, columns=["size", *COLUMNS])


def trend(leads):
    return trend_sentence(share_view(POOL_SIZE, table_of(leads), 0.9, methods=("semi_aum_cutoff",)))


def test_the_lead_is_followed_from_the_smallest_part_to_the_largest():
    said = trend({0.25: (0.01, 0.01), 0.5: (0.5, 0.5), 1.0: (0.05, 0.05)})
    assert said == (
        "From 25% to 100% the lead of Semi-AUM+Cutoff over random goes from +1.0 to +5.0 points: it grows (change +4.0 "
        "± 0.9, 2 seeds)."  # 12.7 times the step of one of 1,000 test images, over the root of two
    )
    assert "it shrinks (change -4.0" in trend({0.25: (0.05, 0.05), 1.0: (0.01, 0.01)})
    assert "that may be chance (change +2.0" in trend({0.25: (0.00, 0.04), 1.0: (0.04, 0.04)})
    assert "from one seed: this may be chance" in trend({0.25: (0.01,), 1.0: (0.05,)})
    assert trend({1.0: (0.05, 0.05)}) == "" and trend({}) == ""


def test_the_view_speaks_of_the_pool():
    view = share_view(POOL_SIZE, table_of({0.25: (0.01, 0.01), 1.0: (0.05, 0.05)}), 0.9, methods=("semi_aum_cutoff",))
    assert view.axis == "Share of the pool" and view.ratios == (0.25, 1.0)
    assert view.sentence().startswith(
        "With 100% of the pool, at 90% pruning, Semi-AUM+Cutoff reaches 60.0% accuracy, 5.0"
    )
