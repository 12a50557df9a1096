"""The same images and labels give the same coreset from a script, in memory, and from the command line."""

import numpy as np
import pytest

import semiprune_core as sp
from semiprune_core import cli
from semiprune_core.results import latest_pseudo, latest_scores
from tests.support.demo_pool import clothes

N = 150
SHORT = {"epochs": 2, "steps_per_epoch": 4, "batch_size": 8, "unlabeled_ratio": 2, "precision": "fp32"}


def run(*words):
    assert cli.main([*words, "--quiet"]) == 0, words


def settings(**values):
    return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


@pytest.fixture(scope="module")
def pictures():
    """Clothes, one of them twice, and what they are."""
    images, kinds = clothes(N - 1)
    return np.concatenate([images, images[4:5]]), np.concatenate([kinds, kinds[4:5]])


@pytest.fixture
def made(pictures, workspace, tmp_path):
    """The command line's project of these pictures, and its labels as a script has them: "" where there is none."""
    images, kinds = pictures
    np.savez(tmp_path / "clothes.npz", images=images, labels=kinds)
    run("new", "Clothes", "--from", str(tmp_path / "clothes.npz"), "--workers", "1")
    run("sample", "clothes", "--fraction", "0.4")
    run("labels", "reference", "clothes")
    drawn = sp.open("clothes", home=workspace.root).labels
    labels = np.full(N, "", dtype=object)
    labels[drawn["position"]] = drawn["label"]
    return workspace.project("clothes"), labels


def coreset_of(project):
    (coreset,) = sp.open(project.name, home=project.workspace.root).coresets.values()
    return coreset


def assert_same(mine, project):
    theirs, pseudo, table = coreset_of(project), latest_pseudo(project), latest_scores(project).table()
    labels = pseudo.labels()
    assert np.array_equal(mine.scores.labels.labels, labels.labels)
    assert np.array_equal(mine.scores.labels.confidence, labels.confidence)
    assert mine.scores.labels.class_names == labels.class_names
    assert mine.scores.labels.quality.to_json()["accuracy"] == pseudo.quality()["accuracy"]
    for name in table.columns:
        assert np.array_equal(mine.scores[name], table[name]), name
    assert np.array_equal(mine.indices, theirs.indices) and dict(mine.settings) == dict(theirs.settings)


@pytest.mark.parametrize("method, ratio", [("semi_aum_cutoff", 0.7), ("semi_dual_beta", 0.5)])
def test_one_call_gives_the_coreset_of_the_command_line(method, ratio, pictures, made):
    project, labels = made
    run("train", project.name, "--start", "frozen", "--device", "cpu")
    run("dynamics", project.name, "--device", "cpu")
    run("select", project.name, "--method", method, "--ratio", str(ratio))
    assert_same(sp.prune(pictures[0], labels, ratio, method=method), project)


def test_so_do_the_steps_with_a_net_from_scratch(pictures, made):
    project, labels = made
    run("train", project.name, "--start", "scratch", "--device", "cpu", *settings(**SHORT))
    run("dynamics", project.name, "--device", "cpu", "--epochs", "3")
    run("select", project.name, "--ratio", "0.6", "--min-per-class", "2")
    pseudo = sp.learn(pictures[0], labels, start="scratch", device="cpu", **SHORT)
    dynamics = sp.train_dynamics(pseudo, epochs=3, device="cpu")
    assert_same(sp.select(sp.score(dynamics), 0.6, min_per_class=2), project)


def test_knobs_of_the_score_are_those_of_the_command_line(pictures, made):
    project, labels = made
    run("train", project.name, "--start", "frozen", "--device", "cpu")
    run("dynamics", project.name, "--device", "cpu")
    run("select", project.name, "--method", "semi_dual_beta", "--ratio", "0.5", "--T", "12", "--gamma", "0.5")
    scores = sp.score(sp.train_dynamics(sp.learn(pictures[0], labels)))
    mine = sp.select(scores, 0.5, method="semi_dual_beta", n_epochs=12, gamma=0.5)
    assert np.array_equal(mine.indices, coreset_of(project).indices)
