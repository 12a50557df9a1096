"""Groups of near-duplicates: exact, in blocks, each named by its smallest position."""

import numpy as np
import pytest

from semiprune_core.learning.frozen import near_duplicates
from semiprune_core.learning.frozen.duplicates import centred_rows
from semiprune_core.progress import Collected, Stopped
from tests.learning.frozen.clouds import make_clouds

MODULE = "semiprune_core.learning.frozen.duplicates"


def by_hand(features, threshold):
    """The slow twin: all cosines, links followed one by one."""
    rows = centred_rows(features)
    linked = rows @ rows.T >= threshold
    groups = np.arange(len(rows))
    changed = True
    while changed:
        smallest = np.array([groups[linked[i]].min(initial=groups[i]) for i in range(len(rows))])
        changed = bool((smallest != groups).any())
        groups = smallest
    return groups


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.95])
@pytest.mark.parametrize("directions", [3, 500])
def test_groups_are_those_of_all_pairs(monkeypatch, threshold, directions):
    monkeypatch.setattr(f"{MODULE}.DIRECTIONS", directions)
    features, _ = make_clouds(150, noise=0.7)
    assert (near_duplicates(features, threshold=threshold) == by_hand(features, threshold)).all()


def test_groups_do_not_depend_on_the_blocks(monkeypatch):
    features, _ = make_clouds(150, noise=0.7)
    whole = near_duplicates(features, threshold=0.6)
    monkeypatch.setattr(f"{MODULE}.CELLS", 150 * 4)
    assert (near_duplicates(features, threshold=0.6) == whole).all()


def test_copies_have_the_smallest_position_of_their_group():
    features, _ = make_clouds(50)
    again = np.concatenate([features, features[[7, 3, 7]]])
    groups = near_duplicates(again, threshold=0.99)
    assert groups[50:].tolist() == [7, 3, 7]
    assert (groups[:50] == np.arange(50)).all()


@pytest.mark.parametrize("n", [0, 1])
def test_one_image_is_its_own_group(n):
    assert near_duplicates(np.ones((n, 4), np.float32)).tolist() == list(range(n))


def test_a_stop_is_honoured():
    with pytest.raises(Stopped):
        near_duplicates(make_clouds(50)[0], progress=Collected(stop_after=0, reports=[{"done": 0}]))


@pytest.mark.parametrize("many", [0.0, 1.0])
def test_pairs_compared_at_once_and_one_by_one_are_the_same(monkeypatch, many):
    monkeypatch.setattr("semiprune_core.learning.frozen.duplicates.MANY", many)
    features, _ = make_clouds(120, n_dims=130)
    assert (near_duplicates(features, threshold=0.5) == by_hand(features, 0.5)).all()
