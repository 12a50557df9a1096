"""Near-duplicates: images whose features or fingerprints point the same way, and their groups at any threshold."""

from __future__ import annotations

import numpy as np

from semiprune_core.learning.frozen.duplicates import Pairs, alike_pairs, centred_rows, joined, linked
from semiprune_core.learning.frozen.neighbours import unit_rows
from semiprune_core.progress import Progress
from semiprune_core.records import FloatArray, IntArray
from semiprune_core.scan.fingerprints import fingerprints

LEAST = 0.85
"""Pairs that are less alike than this are not kept."""
THRESHOLD = 0.9
"""Likeness from which on two images are near-duplicates; docs/pool.md says how it was found."""
LARGEST_GROUP, SMALL_GROUP = 0.05, 10
"""A group of more than this part of all images, and of more than so many, is a kind of image: its pairs must be more
alike."""
STEP = 0.01


def find_pairs(images: np.ndarray, features: np.ndarray | None = None, *, progress: Progress | None = None) -> Pairs:
    """Pairs of images (N, S, S, C) uint8 alike by :data:`LEAST` or more; the better of all ways to look counts.

    ``features`` (N, D), those of an image and of its mirrored one added up, see what fingerprints miss: a cropped edge.
    """
    rows, signs = fingerprints(images)
    found = [alike_pairs(rows, signs=signs, threshold=LEAST, stage="fingerprints", progress=progress)]
    if features is not None:
        found.append(alike_pairs(centred_rows(features), threshold=LEAST, stage="features", progress=progress))
    return best_of(len(images), found)


def both_views(own: np.ndarray, mirrored: np.ndarray | None) -> FloatArray:
    """(N, D) the features of an image and of its mirrored one together: a mirrored copy has the same."""
    rows = unit_rows(own)
    return rows if mirrored is None else rows + unit_rows(mirrored)


def best_of(n: int, found: list[Pairs]) -> Pairs:
    """Each pair once, with its highest likeness, in the order of its images."""
    left, right, likeness = joined(found)
    number = left * n + right
    order = np.lexsort((-likeness, number))
    first = np.ones(len(order), bool)
    first[1:] = number[order][1:] != number[order][:-1]
    chosen = order[first]
    return Pairs(left[chosen], right[chosen], np.minimum(likeness[chosen], 1))


def groups_at(n: int, pairs: Pairs, threshold: float, copies: IntArray | None = None) -> IntArray:
    """(n,) one number per image: the smallest position of its group. ``copies`` (n,) have the same pixels.

    A chain of links can join a whole kind of image; in a group beyond :data:`LARGEST_GROUP` only pairs that are more
    alike stay linked.
    """
    same = np.arange(n) if copies is None else copies
    exact = Pairs(same, np.arange(n), np.ones(n, np.float32))
    chosen = pairs.above(threshold)
    while True:
        whole = joined([chosen, exact])
        groups = linked(n, whole)
        size = np.bincount(groups, minlength=n)[groups]
        loose = (size > max(SMALL_GROUP, LARGEST_GROUP * n))[chosen.left]
        threshold += STEP
        if not loose.any():
            return groups
        tight = ~loose | (chosen.likeness >= threshold)
        if threshold > 1:
            tight = ~loose
        chosen = chosen.take(tight)
