"""Probes: the exact answer of logistic regression, the same for any seed, and trials that are made of them."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from semiprune_core.errors import InvalidDataError
from semiprune_core.learning.frozen.logistic import fit_logistic
from semiprune_core.progress import Collected
from semiprune_core.trials import ProbeSettings, Trial, TrialBook, usual_test
from semiprune_core.trials.probe import fit_probe, probe_rows
from semiprune_core.trials.run import Workbench
from tests.support.features import add_features
from tests.support.scored_projects import make_pool

SETTINGS = ProbeSettings(encoder="e", features="0" * 64)


def blobs(n=120, d=6, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    return (rng.normal(size=(n, d)) + 1.5 * np.eye(n_classes, d)[labels]).astype(np.float32), labels


def test_a_probe_is_logistic_regression():
    rows, labels = blobs()
    ours = fit_probe(rows, labels, 3, penalty=0.12)
    exact = fit_logistic(rows, labels, 3, penalty=0.12 / len(rows))
    assert np.allclose(log_softmax(ours.logits(rows), 1), log_softmax(exact.logits(rows), 1), atol=2e-2)
    assert (ours.logits(rows).argmax(1) == exact.logits(rows).argmax(1)).all()


def test_long_and_short_directions_are_fitted_alike():
    rows, labels = blobs()
    stretched = rows * np.array([100, 1, 1, 1, 0.01, 1], np.float32)
    head = fit_probe(stretched, labels, 3, penalty=1e-3)
    exact = fit_logistic(stretched, labels, 3, penalty=1e-3 / len(rows))
    agree = head.logits(stretched).argmax(1) == exact.logits(stretched).argmax(1)
    assert agree.mean() > 0.98


def test_where_the_search_begins_does_not_decide_the_answer():
    rows, labels = blobs()
    near, few = fit_probe(rows, labels, 3, penalty=0.12), slice(0, 30)
    cold, warm = (fit_probe(rows[few], labels[few], 3, penalty=0.12, start=start) for start in (None, near))
    assert np.allclose(softmax(cold.logits(rows), 1), softmax(warm.logits(rows), 1), atol=5e-3)
    two = rows[labels != 1], labels[labels != 1]
    assert set(fit_probe(*two, 3, penalty=0.12, start=near).logits(rows).argmax(1)) == {0, 2}


def test_a_class_without_an_image_is_never_predicted():
    rows, labels = blobs()
    head = fit_probe(rows[labels != 1], labels[labels != 1], 3, penalty=0.12)
    assert set(head.logits(rows).argmax(1)) == {0, 2}


def test_one_class_alone_is_always_predicted():
    rows, labels = blobs()
    head = fit_probe(rows[labels == 1], labels[labels == 1], 3, penalty=0.12)
    assert set(head.logits(rows).argmax(1)) == {1}


def test_the_pool_alone_sets_the_coordinates():
    rng = np.random.default_rng(0)
    features, tests = rng.random((50, 20)).astype(np.float32), rng.random((10, 20)).astype(np.float32)
    rows, others = probe_rows(features, tests, 5)
    assert rows.shape == (50, 5) and others.shape == (10, 5)
    again, half = probe_rows(features, tests[:5], 5)
    assert np.array_equal(rows, again) and np.allclose(others[:5], half, atol=1e-6)
    assert probe_rows(features, tests[:0], 64)[0].shape == (50, 20), "no more directions than there are"


@pytest.fixture
def bench(tmp_path):
    rows, labels = blobs(160)
    return Workbench(
        images=rows[:120],
        labels=labels[:120],
        test_images=rows[120:],
        test_labels=labels[120:],
        n_classes=3,
        training=SETTINGS,
        book=TrialBook(tmp_path / "trials.jsonl"),
        progress=Collected(),
        device="cpu",
        n_trials=3,
        total=180,
    )


def trial(seed=0, ratio=0.5, method="random"):
    return Trial(method=method, pruning_ratio=ratio, seed=seed)


def test_a_trial_by_probe_counts_right_answers_and_needs_no_seed(bench):
    first = bench.run(trial(), lambda _: np.arange(60), words="one")
    assert first["n_train"] == 60 and first["n_test"] == 40 and first["n_correct"] > 20
    other = bench.run(trial(seed=1), lambda _: np.arange(60), words="two")
    assert other["n_correct"] == first["n_correct"] and "trained once" in other["note"]
    assert bench.progress.reports[-1]["done"] == 120


def test_without_a_test_image_it_says_what_to_do(bench):
    bench.test_images, bench.test_labels = bench.test_images[:0], bench.test_labels[:0]
    with pytest.raises(InvalidDataError, match="no image to test on"):
        bench.run(trial(), lambda _: np.arange(60), words="one")


def test_probes_are_usual_where_there_are_features(workspace, tmp_path):
    project = make_pool(workspace, tmp_path, n=12)
    assert usual_test(project) == "scratch"
    add_features(project)
    assert usual_test(project) == "probe"
