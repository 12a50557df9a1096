"""Scores are computed once for each setting and found again; seeds are averaged; corrections make things old."""

import numpy as np
import pytest

from semiprune_core.dynamics import why_out_of_date
from semiprune_core.dynamics.scoring import default_score_settings, rescored, trajectories_of, with_settings
from semiprune_core.errors import InvalidSettingError, SemiPruneError
from semiprune_core.labeling import open_store
from semiprune_core.labeling.review import correct_label
from semiprune_core.results import latest_scores, made_from
from semiprune_core.scores import SCORES, ScoreTable, compute_scores
from tests.support.scored_projects import add_pseudo, make_scored


@pytest.fixture
def project(workspace, tmp_path):
    return make_scored(workspace, tmp_path, n=40, seeds=(0, 1))


def test_scores_are_the_mean_over_the_seeds(project):
    scores = latest_scores(project)
    each = [
        compute_scores(run.trajectory(), settings=scores.table().settings) for run in trajectories_of(project, scores)
    ]
    for name in scores.names:
        assert np.allclose(scores.table()[name], (each[0][name] + each[1][name]) / 2)
    assert 0 < scores.artifact.facts["stability"]["aum"] < 1


def test_another_setting_is_another_artifact_and_the_same_one_is_found_again(project):
    first = latest_scores(project)
    other = with_settings(project, first, dual_epochs=11)
    assert other.artifact.id != first.artifact.id
    assert (other.table()["dual"] != first.table()["dual"]).any()
    assert np.array_equal(other.table()["aum"], first.table()["aum"])
    assert with_settings(project, other, dual_epochs=12).artifact.id == first.artifact.id
    assert with_settings(project, first).artifact.id == first.artifact.id
    assert len(project.artifacts("scores")) == 2


@pytest.mark.parametrize(
    "changes, anew",
    [
        ({"dual_epochs": 11}, {"dual", "mean_prob", "variability"}),
        ({"gamma": 0.5}, {"dual"}),
        ({"window": 4}, {"dual", "dynamic_uncertainty"}),
        ({}, set()),
    ],
)
def test_scoring_anew_equals_scoring_from_scratch(project, changes, anew):
    scores = latest_scores(project)
    table, runs = scores.table(), trajectories_of(project, scores)
    settings = table.settings.replace(**changes)
    found = rescored(table, runs, settings)
    wanted = with_settings(project, scores, **changes).table()
    assert {name for name in SCORES if not np.array_equal(found[name], table[name])} == anew
    for name in SCORES:
        np.testing.assert_array_equal(found[name], wanted[name])


def test_scores_of_an_earlier_version_are_scored_anew_as_far_as_they_go(project):
    scores = latest_scores(project)
    table = scores.table()
    few = {name: values for name, values in table.columns.items() if name != "dynamic_uncertainty"}
    old = ScoreTable({**few, "gone": table["aum"]}, table.settings, table.n_images)  # by a file that is no more
    found = rescored(old, trajectories_of(project, scores), table.settings.replace(window=4))
    assert set(found.columns) == {*few, "gone"} and (found["dual"] != table["dual"]).any()


def test_more_epochs_than_there_are_is_refused(project):
    with pytest.raises(InvalidSettingError, match="n_epochs must be at least 1 and at most 12"):
        with_settings(project, dual_epochs=13)


@pytest.mark.parametrize("n_epochs, scored, window", [(2, 2, 2), (10, 10, 10), (30, 30, 10), (200, 30, 10)])
def test_short_runs_have_shorter_windows(n_epochs, scored, window):
    found = default_score_settings(n_epochs)
    assert (found["dual_epochs"], found["window"]) == (scored, window)


def test_a_correction_is_a_review_and_makes_the_scores_old(project):
    store = open_store(project)
    pseudo = project.latest("pseudo")
    with project.draft(
        "pseudo", settings={}, inputs={**pseudo.inputs, "labels": store.snapshot().hash}, seed=0
    ) as draft:
        for name in pseudo.manifest["files"]:
            draft.path(name).write_bytes(pseudo.path(name).read_bytes())
        draft.facts.update(pseudo.facts)
    scores = latest_scores(project).artifact
    assert why_out_of_date(project, scores) == ["there are newer pseudo-labels"]
    image_id, name = int(project.pool().ids[3]), project.pool().class_names[1]
    correct_label(project, image_id, name, annotator="Ada")
    correct_label(project, image_id, project.pool().class_names[2], annotator="Bob")
    (held,) = store.held([image_id])
    assert (held.round, held.source, held.annotator) == ("review", "review", "Bob")
    assert not store.snapshot().uniform_mask.any()
    newest = project.latest("pseudo")
    assert any("changed labels" in said for said in why_out_of_date(project, newest))


def test_a_correction_needs_a_name(project):
    with pytest.raises(SemiPruneError, match="annotator"):
        correct_label(project, int(project.pool().ids[0]), "x", annotator="")


def test_inputs_are_found_by_their_hash(project):
    scores = latest_scores(project).artifact
    first = project.latest("pseudo")
    add_pseudo(project, seed=9)
    assert made_from(project, scores, "pseudo").id == first.id
