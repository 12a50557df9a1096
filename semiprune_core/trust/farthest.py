"""Where images of a missing class may be: far from all that are labeled, or beside the few of it that are."""

from __future__ import annotations

import numpy as np

from semiprune_core.learning.frozen.neighbours import unit_rows
from semiprune_core.learning.frozen.prepare import Scaling, main_directions
from semiprune_core.records import FloatArray, IntArray

REST = 1e6
"""The order of images that were not reached; finite, as a drawing wants it."""


DIRECTIONS = 256


def directions(features: np.ndarray) -> FloatArray:
    """(N, 256 or less) of length 1: the main directions of ``features`` (N, D), scaled as heads see them."""
    values = np.asarray(features, np.float32)
    return unit_rows(main_directions(Scaling.of(values)(values), DIRECTIONS))


def farthest_first(features: np.ndarray, labeled: IntArray, candidates: IntArray, count: int) -> FloatArray:
    """(N,) the turn in which each image is drawn, ``REST`` for those that are not.

    Greedy k-center (Gonzalez 1985) on cosines: each turn takes the candidate that is farthest from every image at the
    positions ``labeled`` and from those taken before.
    """
    rows = directions(features)
    likeness = np.full(len(rows), -1.0, np.float32)
    for start in range(0, len(labeled), 512):
        likeness = np.maximum(likeness, (rows @ rows[labeled[start : start + 512]].T).max(1))
    order = np.full(len(rows), REST)
    open_mask = np.zeros(len(rows), bool)
    open_mask[candidates] = True
    for turn in range(min(count, len(candidates))):
        place = int(np.where(open_mask, likeness, np.inf).argmin())
        order[place], open_mask[place] = turn, False
        likeness = np.maximum(likeness, rows @ rows[place])
    return order


def nearest_first(features: np.ndarray, examples: IntArray) -> FloatArray:
    """(N,) how unlike each image is to the nearest of those at the positions ``examples``, by cosine."""
    rows = directions(features)
    return (1 - (rows @ rows[examples].T).max(1)).astype(np.float64)
