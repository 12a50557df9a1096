"""What has changed since an evaluation was made, in one sentence."""

import pytest

from semiprune_core.dynamics.scoring import score_runs, with_settings
from semiprune_core.labeling import open_store
from semiprune_core.labeling.review import correct_label
from semiprune_core.refresh.freshness import evaluated_before, studied_before
from tests.support.scored_projects import add_pseudo, add_trajectory, make_scored
from tests.support.trial_tables import fake_evaluation, fake_trials


@pytest.fixture
def project(workspace, tmp_path):
    return make_scored(workspace, tmp_path, n=40)


def evaluate(project, *methods, **options):
    """An evaluation that pins all that a real one pins."""
    pins = {kind: project.latest(kind).hash for kind in ("pseudo", "scores")}
    pins["labels"] = open_store(project).snapshot().hash
    trials = fake_trials(methods or ("random", "semi_aum_cutoff"), n_seeds=1)
    return fake_evaluation(project, trials, inputs=pins, **options).artifact


def correct(project):
    correct_label(project, int(project.pool().ids[3]), project.pool().class_names[1], annotator="Ada")


def test_a_fresh_evaluation_says_nothing(project):
    made = evaluate(project)
    assert evaluated_before(project, made) == ""
    with_settings(project, gamma=0.5)  # a variant of the same scores replaces nothing
    assert evaluated_before(project, made) == ""


def test_newer_scores_are_named(project, tmp_path):
    made = evaluate(project)
    score_runs(project, [add_trajectory(project, tmp_path, seed=1)])
    assert evaluated_before(project, made) == (
        "evaluation-0001 was made before scores-0002 were made: evaluate again to compare with the present scores."
    )


def test_changed_labels_are_named(project):
    made = evaluate(project)
    correct(project)
    assert "was made before people's labels changed: evaluate again" in evaluated_before(project, made)
    assert evaluated_before(project, evaluate(project)) == ""  # made after the change


def test_scores_that_are_old_themselves_come_first(project):
    made = evaluate(project)
    add_pseudo(project, seed=1)
    assert evaluated_before(project, made) == (
        "evaluation-0001 was made before pseudo-0002 was made: bring the scores up to date and evaluate again to "
        "compare with the present scores."
    )


def test_a_changed_pool_counts_for_every_method(project):
    made = evaluate(project, "random")
    changed = type("Changed", (), {"hash": "0" * 64})()
    assert evaluated_before(project, made, changed) == (
        "evaluation-0001 was made before the pool changed: evaluate again to compare with the present images and "
        "labels."
    )


def test_what_no_method_looks_at_may_change(project, tmp_path):
    made, by_people = evaluate(project, "random", "zcore"), evaluate(project, "random", truth="human")
    score_runs(project, [add_trajectory(project, tmp_path, seed=1)])
    correct(project)
    assert evaluated_before(project, made) == ""
    assert "people's labels changed" in evaluated_before(project, by_people)


def test_an_evaluation_that_names_its_pool_alone_is_taken_as_it_is(project, tmp_path):
    made = fake_evaluation(project).artifact
    score_runs(project, [add_trajectory(project, tmp_path, seed=1)])
    assert evaluated_before(project, made) == ""


def study(project, truth, **inputs):
    inputs = {"pool": project.pool().hash, "labels": open_store(project).snapshot().hash, **inputs}
    with project.draft("study", settings={}, inputs=inputs) as draft:
        draft.facts.update(truth=truth, budgets=[], n_test=10)
    return project.latest("study")


def test_a_study_is_made_before_what_its_numbers_stand_on_changed(project, tmp_path):
    by_reference, by_people = study(project, "reference"), study(project, "human")
    score_runs(project, [add_trajectory(project, tmp_path, seed=1)])  # it makes scores of its own
    assert studied_before(project, by_reference) == "" == studied_before(project, by_people)
    correct(project)
    assert studied_before(project, by_reference) == ""
    assert studied_before(project, by_people) == (
        "study-0002 was made before people's labels changed: start it again to study these."
    )
    assert "before the pool changed" in studied_before(project, study(project, "reference", pool="0" * 64))
