"""Paired comparisons: exact in the labels on which two candidates differ, honest about close calls."""

import numpy as np
import pytest

from semiprune_core.errors import InvalidDataError
from semiprune_core.learning.frozen import compare


def answers(both, only_first, only_second, neither=0):
    first = np.repeat([True, True, False, False], [both, only_first, only_second, neither])
    second = np.repeat([True, False, True, False], [both, only_first, only_second, neither])
    return first, second


def test_a_clear_lead_is_named_with_its_interval():
    first, second = answers(400, 90, 10, 100)
    found = compare("Frozen", first, "From scratch", second)
    assert found.difference == pytest.approx(80 / 600)
    assert 0 < found.low < found.difference < found.high
    assert not found.close_call
    assert found.sentence().startswith("Frozen is ahead of From scratch by 13.3 points (")


def test_a_close_call_says_so_whoever_is_ahead():
    found = compare("Frozen", *answers(50, 4, 6)[:1], "From scratch", answers(50, 4, 6)[1])
    assert found.close_call and found.better == "From scratch"
    assert found.sentence().startswith("A close call: From scratch is ahead of Frozen by 3.3 points (-")


def test_two_that_never_differ_are_level_and_the_interval_is_not_empty():
    first, second = answers(50, 0, 0, 10)
    found = compare("A", first, "B", second)
    assert found.low < 0 < found.high
    assert "level" in found.sentence()


def test_swapping_the_two_swaps_the_interval():
    first, second = answers(60, 12, 5, 3)
    one, other = compare("A", first, "B", second), compare("B", second, "A", first)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


def test_near_duplicates_widen_the_interval():
    first, second = answers(60, 20, 8, 12)
    groups = np.arange(100) // 4
    alone, together = compare("A", first, "B", second), compare("A", first, "B", second, groups=groups)
    assert together.high - together.low > alone.high - alone.low


@pytest.mark.parametrize("n", [15, 57, 150])
@pytest.mark.parametrize(
    "both, only_first, only_second",
    [(0.6, 0.2, 0.1), (0.6, 0.25, 0.01), (0.5, 0.4, 0.02), (0.8, 0.02, 0.02), (0.7, 0.01, 0.0)],
)
def test_the_interval_holds_the_truth_as_often_as_it_says(n, both, only_first, only_second):
    rng = np.random.default_rng(0)
    shares = [both, only_first, only_second, 1 - both - only_first - only_second]
    covered = 0
    for _ in range(400):
        found = compare("A", *_sides(rng.choice(4, n, p=shares)))
        covered += found.low <= only_first - only_second <= found.high
    assert covered >= 0.93 * 400


def _sides(kind):
    return (kind == 0) | (kind == 1), "B", (kind == 0) | (kind == 2)


def test_an_estimate_never_stands_at_the_end_of_its_interval():
    found = compare("A", *answers(35, 0, 14, 8)[:1], "B", answers(35, 0, 14, 8)[1])
    assert found.low < found.difference - 0.05 and found.high > found.difference + 0.05


def test_different_labels_are_refused():
    with pytest.raises(InvalidDataError, match="same held-out labels"):
        compare("A", np.ones(3, bool), "B", np.ones(4, bool))
