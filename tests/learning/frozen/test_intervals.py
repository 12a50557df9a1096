"""Intervals of cross-fitted accuracy."""

import numpy as np
import pytest

from semiprune_core.learning.frozen.intervals import (
    balanced_accuracy,
    design_effect,
    interval,
    measure_out_of_fold,
    score_interval,
    shared_part,
)
from semiprune_core.learning.quality import wilson


def test_without_dependence_and_without_end_it_is_wilsons():
    right = np.arange(40) < 31
    found = interval(right, np.arange(40), None, shared=0)
    assert (found.low, found.high) == pytest.approx((wilson(31, 40).low, wilson(31, 40).high))


@pytest.mark.parametrize("n, rest", [(60, 5940), (150, 1350), (600, 5400)])
def test_it_is_not_wider_than_wilsons_by_more_than_a_quarter(n, rest):
    right = np.arange(n) < 0.8 * n
    found, plain = interval(right, np.arange(n), rest), wilson(int(right.sum()), n)
    assert plain.high - plain.low < found.high - found.low <= 1.25 * (plain.high - plain.low)


def test_copies_count_as_fewer_labels():
    right = np.repeat(np.arange(30) < 20, 4)
    assert design_effect(right, np.arange(120)) == 1
    assert design_effect(right, np.repeat(np.arange(30), 4)) == pytest.approx(4)
    assert design_effect(np.ones(120, bool), np.repeat(np.arange(30), 4)) == 4


@pytest.mark.parametrize("p, end", [(0.0, 0), (1.0, 1)])
def test_the_ends_are_reached_only_by_all_or_none(p, end):
    low, high = score_interval(p, 33.3)
    assert (low, high)[end] == p
    assert 0 <= low < high <= 1


def test_quality_has_an_interval_for_each_class_with_enough_labels():
    truth = np.repeat([0, 1, 2], [40, 20, 3])
    predicted = np.where(np.arange(63) % 5 == 0, 0, truth)
    found = measure_out_of_fold(predicted, truth, np.full(63, 0.9), np.arange(63), n_classes=4, n_rest=500)
    assert found.accuracy.n == 63
    assert [share is not None for share in found.per_class] == [True, True, False, False]
    assert found.per_class[0].value == 1
    own = interval((predicted == truth)[truth == 1], np.arange(20), round(500 * 20 / 63), shared=shared_part(63))
    assert found.per_class[1] == own  # folds share all labels, not those of a class
    assert balanced_accuracy(predicted, truth) == pytest.approx(np.mean([1, 16 / 20, 2 / 3]), abs=0.1)
