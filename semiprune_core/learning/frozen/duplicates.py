"""Groups of near-duplicates: images whose features point the same way, linked over any number of steps.

Features are centred on the pool first: what all its images have in common says nothing about two of them. Pairs are
looked for exactly, in blocks. Most are ruled out by their shadows on the pool's main directions: a cosine is at most
the product of the shadows plus the product of what is left over (Cauchy and Schwarz).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from semiprune_core.checks import check_range
from semiprune_core.learning.frozen.neighbours import unit_rows
from semiprune_core.learning.frozen.prepare import main_axes
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import FloatArray, IntArray

THRESHOLD = 0.85
"""Cosine of centred features from which on two images are near-duplicates; docs/frozen.md says how it was found."""
DIRECTIONS = 96
CELLS = 1 << 23
"""Pairs looked at in one block: 32 MB."""
SAMPLE = 3_000
"""Images that the main directions are taken from, evenly spread over the pool."""
MANY = 0.02
"""Share of pairs that are compared one by one at most."""
SLACK = 1e-4
"""Rounding of products in single precision."""


def near_duplicates(
    features: np.ndarray, *, threshold: float = THRESHOLD, progress: Progress | None = None
) -> IntArray:
    """(N,) one number per image: the smallest position in its group, its own where nothing is like it.

    ``features`` (N, D) of all splits together, so copies across splits are found too.
    """
    check_range("threshold", threshold, low=0, high=1, low_open=True)
    n = len(features)
    groups: IntArray = np.arange(n)
    if n < 2:
        return groups
    rows = centred_rows(features)
    shadows = _shadows(rows)
    block = max(1, CELLS // n)
    for first in range(0, n, block):
        if progress is not None:
            if progress.should_stop():
                raise Stopped
            progress.report(first, n, unit="images", stage="near-duplicates")
        left, right = _pairs(rows, shadows, slice(first, first + block), threshold)
        groups = _merged(groups, left, right)
    return groups


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


def _shadows(rows: FloatArray) -> FloatArray:
    """(N, directions + 1): coordinates along the pool's main directions, and the length of what they leave out."""
    main = main_axes(rows[:: max(1, len(rows) // SAMPLE)], DIRECTIONS)
    if main is None:  # a small pool: all its directions
        main = np.linalg.svd(rows, full_matrices=False)[2].T
    shadows = np.empty((len(rows), main.shape[1] + 1), np.float32)
    shadows[:, :-1] = rows @ main
    squares = np.einsum("nd,nd->n", rows, rows) - np.einsum("nd,nd->n", shadows[:, :-1], shadows[:, :-1])
    shadows[:, -1] = np.sqrt(np.maximum(squares, 0))
    return shadows


def _pairs(rows: FloatArray, shadows: FloatArray, block: slice, threshold: float) -> tuple[IntArray, IntArray]:
    """Positions of the pairs with one image in the block and another behind it, at or above the threshold."""
    bounds = shadows[block] @ shadows[block.start :].T
    possible = bounds >= threshold - SLACK
    if possible.sum() > MANY * possible.size:  # shadows rule out too little: all cosines are quicker than one by one
        possible = rows[block] @ rows[block.start :].T >= threshold - SLACK
    left, right = np.nonzero(possible)
    later = right > left
    left, right = left[later] + block.start, right[later] + block.start
    alike = np.empty(len(left), bool)
    for start in range(0, len(left), 8192):
        part = slice(start, start + 8192)
        alike[part] = np.einsum("pd,pd->p", rows[left[part]], rows[right[part]]) >= threshold
    return left[alike], right[alike]


def _merged(groups: IntArray, left: IntArray, right: IntArray) -> IntArray:
    """Groups after the pairs are linked; each goes by its smallest position."""
    if not len(left):
        return groups
    n = len(groups)
    links = sparse.coo_array((np.ones(len(left), bool), (groups[left], groups[right])), shape=(n, n))
    _, part = connected_components(links, directed=False)
    smallest = np.full(part.max() + 1, n)
    np.minimum.at(smallest, part, np.arange(n))
    return smallest[part[groups]]
