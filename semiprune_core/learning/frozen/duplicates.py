"""Groups of near-duplicates: images whose features point the same way, linked over any number of steps.

Features are centred on the pool first: what all its images have in common says nothing about two of them. Pairs are
looked for exactly, in blocks. Most are ruled out by their shadows on the pool's main directions: a cosine is at most
the product of the shadows plus the product of what is left over (Cauchy and Schwarz).

Each tile is multiplied on one thread, several tiles at a time: the threads of one product wait for each other and burn
processor time wherever something else runs too.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from semiprune_core.checks import check_range
from semiprune_core.learning.frozen.neighbours import unit_rows
from semiprune_core.learning.frozen.prepare import main_axes
from semiprune_core.learning.threads import one_thread
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import FloatArray, IntArray

THRESHOLD = 0.85
"""Cosine of centred features from which on two images are near-duplicates; docs/frozen.md says how it was found."""
DIRECTIONS = 96
CELLS = 1 << 19
"""Pairs looked at in one tile: 2 MB, which stay near the processor."""
SAMPLE = 3_000
"""Images that the main directions are taken from, evenly spread over the pool."""
MANY = 0.02
"""Share of pairs that are compared one by one at most."""
SLACK = 1e-4
"""Rounding of products in single precision."""
MOST_PAIRS = 5_000_000
"""Pairs that are kept at most, the most alike ones."""


class Pairs(NamedTuple):
    """(P,) pairs of images, ``left`` before ``right``, and how alike they are."""

    left: IntArray
    right: IntArray
    likeness: FloatArray

    def above(self, threshold: float) -> Pairs:
        return self.take(self.likeness >= threshold)

    def take(self, chosen: np.ndarray) -> Pairs:
        return Pairs(self.left[chosen], self.right[chosen], self.likeness[chosen])


def joined(parts: Sequence[Pairs]) -> Pairs:
    """All pairs one after the other."""
    return Pairs(
        np.concatenate([part.left for part in parts]),
        np.concatenate([part.right for part in parts]),
        np.concatenate([part.likeness for part in parts]),
    )


def near_duplicates(
    features: np.ndarray, *, threshold: float = THRESHOLD, progress: Progress | None = None
) -> IntArray:
    """(N,) one number per image: the smallest position in its group, its own where nothing is like it.

    ``features`` (N, D) of all splits together, so copies across splits are found too.
    """
    return linked(len(features), alike_pairs(centred_rows(features), threshold=threshold, progress=progress))


@one_thread()
def alike_pairs(
    rows: FloatArray,
    *,
    threshold: float,
    signs: FloatArray | None = None,
    stage: str = "near-duplicates",
    progress: Progress | None = None,
) -> Pairs:
    """All pairs of ``rows`` (N, D, of length 1) whose cosine is at least ``threshold``, at most :data:`MOST_PAIRS`.

    With ``signs`` (D,) the images count as mirrored too: mirroring multiplies each number with its sign, and the higher
    one of a pair's two cosines is its likeness.
    """
    check_range("threshold", threshold, low=0, high=1, low_open=True)
    n, found, n_found = len(rows), [_NO_PAIRS], 0
    if n < 2:
        return _NO_PAIRS
    likeness = _Cosines(rows) if signs is None else _EitherWay(rows, signs)
    side = max(1, math.isqrt(CELLS))
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for first in range(0, n, side):
            if progress is not None:
                if progress.should_stop():
                    raise Stopped
                progress.report(first, n, unit="images", stage=stage)
            here = slice(first, first + side)
            there = [slice(second, second + side) for second in range(first, n, side)]
            parts = list(threads.map(lambda columns, here=here: _pairs(likeness, here, columns, threshold), there))
            n_found += sum(len(part.left) for part in parts)
            found += [part for part in parts if len(part.left)]
            if n_found > 2 * MOST_PAIRS:
                found = [_most_alike(found)]
                n_found = MOST_PAIRS
    return _most_alike(found)


def linked(n: int, pairs: Pairs) -> IntArray:
    """(n,) groups of images that are linked by pairs over any number of steps, each by its smallest position."""
    groups: IntArray = np.arange(n)
    if not len(pairs.left):
        return groups
    links = sparse.coo_array((np.ones(len(pairs.left), bool), (pairs.left, pairs.right)), shape=(n, n))
    _, part = connected_components(links, directed=False)
    smallest = np.full(part.max() + 1, n)
    np.minimum.at(smallest, part, groups)
    return smallest[part]


def centred_rows(features: np.ndarray) -> FloatArray:
    """(N, D) float32 features less their mean, of length 1; an image just like the mean keeps a row of zeros."""
    mean = np.zeros(features.shape[1], np.float64)
    for start in range(0, len(features), 4096):
        mean += features[start : start + 4096].astype(np.float64).sum(0)
    mean /= max(len(features), 1)
    rows = np.empty(features.shape, np.float32)
    for start in range(0, len(rows), 4096):
        rows[start : start + 4096] = features[start : start + 4096] - mean
    return unit_rows(rows)


_NO_PAIRS = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))


def _most_alike(found: list[Pairs]) -> Pairs:
    """All of them in one, and no more than are kept."""
    whole = joined(found)
    if len(whole.left) <= MOST_PAIRS:
        return whole
    best = np.sort(np.argpartition(-whole.likeness, MOST_PAIRS)[:MOST_PAIRS])
    return whole.take(best)


class _Cosines:
    """The likeness of images whose rows point the same way."""

    def __init__(self, rows: FloatArray) -> None:
        self._rows = rows
        main = main_axes(rows[:: max(1, len(rows) // SAMPLE)], DIRECTIONS)
        if main is None:  # few images or few dimensions: all directions
            few = len(rows) <= rows.shape[1]
            main = np.linalg.svd(rows if few else rows.T @ rows, full_matrices=False)[2].T
        self._shadows = _shadows(rows, main)

    def tile(self, here: slice, there: slice) -> FloatArray:
        """(rows, columns) what the likeness is at most."""
        return self._shadows[here] @ self._shadows[there].T

    def exact_tile(self, here: slice, there: slice) -> FloatArray:
        return self._rows[here] @ self._rows[there].T

    def of(self, left: IntArray, right: IntArray) -> FloatArray:
        """(P,) one by one."""
        return np.einsum("pd,pd->p", self._rows[left], self._rows[right])


class _EitherWay:
    """The likeness of images, one of them mirrored or not.

    What keeps its sign adds ``same`` to both cosines, the rest adds ``turned`` to one and takes it from the other: the
    higher one is same + abs(turned), for the price of one product.
    """

    def __init__(self, rows: FloatArray, signs: FloatArray) -> None:
        self._same, self._turned = (np.ascontiguousarray(rows[:, part]) for part in (signs > 0, signs < 0))

    def tile(self, here: slice, there: slice) -> FloatArray:
        turned = self._turned[here] @ self._turned[there].T
        likeness: FloatArray = self._same[here] @ self._same[there].T
        likeness += np.abs(turned, out=turned)
        return likeness

    exact_tile = tile

    def of(self, left: IntArray, right: IntArray) -> FloatArray:
        turned = np.abs(np.einsum("pd,pd->p", self._turned[left], self._turned[right]))
        return np.einsum("pd,pd->p", self._same[left], self._same[right]) + turned


def _shadows(rows: FloatArray, main: FloatArray) -> FloatArray:
    """(N, directions + 1): coordinates along the pool's main directions, and the length of what they leave out."""
    shadows = np.empty((len(rows), main.shape[1] + 1), np.float32)
    shadows[:, :-1] = rows @ main
    squares = np.einsum("nd,nd->n", rows, rows) - np.einsum("nd,nd->n", shadows[:, :-1], shadows[:, :-1])
    shadows[:, -1] = np.sqrt(np.maximum(squares, 0))
    return shadows


def _pairs(likeness: _Cosines | _EitherWay, here: slice, there: slice, threshold: float) -> Pairs:
    """The pairs with the first image in the rows ``here`` and a later one in ``there``, at or above the threshold."""
    possible = likeness.tile(here, there) >= threshold - SLACK
    n_possible = np.count_nonzero(possible)
    if not n_possible:
        return _NO_PAIRS
    if n_possible > MANY * possible.size:  # shadows rule out too little: all cosines are quicker than one by one
        possible = likeness.exact_tile(here, there) >= threshold - SLACK
    left, right = np.nonzero(possible)
    left, right = left + here.start, right + there.start
    later = right > left
    left, right = left[later], right[later]
    exact = np.empty(len(left), np.float32)
    for start in range(0, len(left), 8192):
        part = slice(start, start + 8192)
        exact[part] = likeness.of(left[part], right[part])
    return Pairs(left, right, exact).above(threshold)
