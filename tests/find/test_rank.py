"""Cosines and ranks against the slow, obvious way."""

import numpy as np
import pytest

from semiprune_core.find.rank import BLOCK, cosines, lengths, most_alike


def brute_force(features, query):
    """Position by position, in double precision; equal ones in their order."""
    values = []
    for row in features.astype(np.float64):
        scale = np.sqrt((row * row).sum() * (query.astype(np.float64) ** 2).sum())
        values.append((row * query).sum() / scale if scale else 0.0)
    return np.array(values)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("n", [1, 7, BLOCK + 3])
def test_ranks_are_those_of_brute_force(kind, n):
    rng = np.random.default_rng(n)
    features = rng.standard_normal((n, 24)).astype(kind)
    features[n // 2] = 0
    features[-1] = features[0]  # a tie
    query = rng.standard_normal(24)
    wanted = brute_force(features, query)
    found = cosines(features, query)
    np.testing.assert_allclose(found, wanted, atol=2e-6)
    for most in (None, 1, 5, n):
        order = most_alike(found, most=most)
        assert len(order) == min(n, most or n)
        np.testing.assert_allclose(wanted[order], np.sort(wanted)[::-1][: len(order)], atol=4e-6)
    if n > 2:
        whole = most_alike(found).tolist()
        assert whole.index(0) + 1 == whole.index(n - 1)


def test_lengths_that_are_known_already_change_nothing():
    features = np.random.default_rng(0).standard_normal((50, 8)).astype(np.float32)
    query = features[3]
    np.testing.assert_array_equal(cosines(features, query), cosines(features, query, lengths(features)))


def test_only_the_asked_ones_are_put_in_order():
    assert most_alike(np.array([0.9, 0.1, 0.5, 0.7]), np.array([2, 1, 3])).tolist() == [3, 2, 1]


def test_a_row_of_zeros_is_like_nothing():
    assert cosines(np.zeros((2, 3), np.float32), np.ones(3)).tolist() == [0, 0]
    assert cosines(np.ones((2, 3), np.float32), np.zeros(3)).tolist() == [0, 0]
