"""A project from a script: frames, steps that wait, coresets and files."""

import numpy as np
import pytest

import semiprune_core as sp
from semiprune_core.errors import SemiPruneError
from tests.support.scored_projects import make_scored
from tests.support.training_projects import small_project


@pytest.fixture
def scored(workspace, tmp_path):
    return sp.open(make_scored(workspace, tmp_path, n=60).name, home=workspace.root)


def test_frames_show_what_is_there(scored):
    pool, labels = scored.pool, scored.labels
    assert len(pool) == 60 and {"image_id", "path", "label", "split"} <= {*pool.columns}
    assert (pool["image_id"].iloc[labels["position"]].to_numpy() == labels["image_id"].to_numpy()).all()
    assert {"pool", "pseudo", "trajectory", "scores"} <= {*scored.runs["kind"]}
    assert len(scored.pseudo_labels) == len(scored.scores) == len(scored.images) == 60
    assert "60 images" in repr(scored)


def test_selecting_saves_a_coreset_and_export_writes_it(scored):
    coreset = scored.select(0.5, class_balanced=True)
    assert len(coreset) == 30 and [*scored.coresets] == ["coreset-0001"]
    assert np.array_equal(scored.coresets["coreset-0001"].indices, coreset.indices)
    kept = scored.export(format="csv")["kept"].read_text().splitlines()
    assert len(kept) == 31
    with pytest.raises(SemiPruneError, match="cutof"):
        scored.select(0.5, cutof=0.2)


def test_the_scores_of_a_project_choose_as_the_project_does(scored):
    saved = scored.select(0.7)
    chosen = sp.select(scored.scores, 0.7)
    assert chosen.settings["knobs"] == saved.settings["knobs"]
    assert np.array_equal(chosen.indices, saved.indices)


def test_the_steps_wait_until_they_are_done(workspace, tmp_path):
    project = sp.open(small_project(workspace, tmp_path).name, home=workspace.root)
    labels = project.train(start="frozen", device="cpu")
    assert len(labels) == 60 and labels["human"].sum() == 30
    assert len(project.train_dynamics(epochs=3, device="cpu")) == 60
    made = project.finish(device="cpu")
    assert made and {*made} <= {*project.coresets}


def test_a_project_that_is_not_there_is_named(workspace):
    with pytest.raises(SemiPruneError, match="no project 'nothing'"):
        sp.open("nothing", home=workspace.root)
