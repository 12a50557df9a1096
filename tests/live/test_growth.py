"""Curves through errors at several sizes: exact where they are exact, unsure where little was seen."""

import numpy as np
import pytest

from semiprune_core.learning.frozen import FrozenSettings, fit_pool, prepare_pool
from semiprune_core.live.growth import Growth, _fitted, grow, outlook
from tests.learning.frozen.clouds import make_clouds, some_labels


@pytest.mark.parametrize("a, b, c", [(0.1, 0.2, 0.5), (0.0, 0.4, 0.25), (0.3, 0.0, 1.0)])
def test_a_curve_of_the_family_is_found_again(a, b, c):
    sizes, at = np.array([0.15, 0.3, 0.5, 0.75, 0.9]), np.array([1.0, 1.5])
    errors = a + b * sizes**-c
    assert np.allclose(_fitted(sizes, errors[None], at), a + b * at**-c, atol=1e-9)


def test_errors_that_grow_with_the_labels_are_not_carried_on():
    sizes = np.array([0.2, 0.5, 0.9])
    found = _fitted(sizes, np.array([[0.1, 0.2, 0.3]]), np.array([1.0, 2.0]))
    assert np.allclose(found, 0.2)


def answers(right):
    """Growth with the same answers (P, n) in all repeats."""
    right = np.repeat(np.asarray(right, bool)[:, None], 4, axis=1)
    return Growth(np.array([0.15, 0.3, 0.5, 0.75, 0.9]) * right.shape[2], np.ones_like(right), right)


@pytest.mark.parametrize("n, surely_little", [(40, False), (1000, True)])
def test_only_many_answers_can_show_that_more_labels_change_little(n, surely_little):
    always_right = answers(np.ones((5, n)))
    view = outlook(always_right, n, 100, now=1.0, rng=np.random.default_rng(0))
    assert (view.gain_high < 0.01) == surely_little and view.gain > -0.001


def test_the_curve_goes_through_today_and_on_to_the_next_labels():
    rng = np.random.default_rng(0)
    shares = np.array([0.5, 0.6, 0.66, 0.7, 0.72])
    view = outlook(answers(rng.random((5, 400)) < shares[:, None]), 400, 100, now=0.73, rng=rng)
    today = int(np.flatnonzero(view.at == 400)[0])
    assert view.value[today] == view.low[today] == view.high[today] == pytest.approx(0.73)
    assert view.at[-1] == 500 and view.low[-1] <= view.value[-1] <= view.high[-1]
    assert 0 < view.gain < 0.05 and view.gain_low <= view.gain <= view.gain_high
    assert 0.01 < view.gain_high - view.gain_low < 0.08  # neither certain nor silent


def test_accuracy_is_measured_on_labels_that_were_not_learned_from():
    features, truth = make_clouds(n=300, noise=1.5)
    labels, settings = some_labels(truth, 100), FrozenSettings(n_folds=5)
    pool = prepare_pool(features, settings)
    fitted = fit_pool(pool, labels, settings=settings)
    given = {"groups": np.arange(300), "n_classes": 4, "settings": settings}
    growth = grow(pool, labels, fitted, **given, rng=np.random.default_rng(0))
    assert growth.sizes.tolist() == [15, 30, 50, 75, 80]
    assert growth.held.sum((1, 2)).tolist() == [4 * 85, 4 * 70, 4 * 50, 4 * 25, 4 * 100]
    assert growth.accuracy[-1] == fitted.quality.accuracy.value and growth.accuracy[0] < growth.accuracy[-1]


def test_near_duplicates_of_what_was_learned_do_not_measure():
    features, truth = make_clouds(n=200, noise=1.5)
    labels, settings = some_labels(truth, 60), FrozenSettings(n_folds=5)
    labeled = np.flatnonzero(labels >= 0)
    groups = np.arange(200)
    groups[labeled[1::2]] = labeled[::2]
    pool = prepare_pool(features, settings)
    fitted = fit_pool(pool, labels, settings=settings, groups=groups)
    growth = grow(pool, labels, fitted, groups=groups, n_classes=4, settings=settings, rng=np.random.default_rng(0))
    assert (growth.held[:-1].sum(2) % 2 == 0).all()  # a pair measures as a whole, or not at all
