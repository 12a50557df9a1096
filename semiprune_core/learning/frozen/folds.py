"""Folds for cross-fitting: every uniformly drawn label is held out once, near-duplicates stay together."""

from __future__ import annotations

import numpy as np

from semiprune_core.checks import check_range
from semiprune_core.records import BoolArray, IntArray

TRAINS_ONLY = -1
"""The fold of a label that measures nothing."""


def assign_folds(
    labels: IntArray, n_folds: int, rng: np.random.Generator, *, measurable: BoolArray, groups: IntArray
) -> IntArray:
    """(n,) the fold of each labeled image, ``TRAINS_ONLY`` for labels that were added on purpose.

    ``labels`` (n,) classes, ``measurable`` (n,) whether drawn uniformly, ``groups`` (n,) one number per group of
    near-duplicates. Groups are dealt out class by class, each to the fold that has fewest of its class so far, then
    fewest of all, so that folds are alike in size and in class shares as far as groups allow.
    """
    check_range("n_folds", n_folds, low=2)
    folds = np.full(len(labels), TRAINS_ONLY)
    measured = np.flatnonzero(measurable)
    names, member = np.unique(groups[measured], return_inverse=True)
    sizes = np.bincount(member, minlength=len(names))
    first = np.full(len(names), -1)
    first[member[::-1]] = labels[measured[::-1]]  # a group goes by the class of its first image
    per_class = np.bincount(first, minlength=1)
    chance = rng.permutation(len(names))
    # large groups first, they are hard to place; then rare classes, which must not meet in one fold
    order = np.lexsort((chance, first, per_class[first], -sizes))
    of_class = np.zeros((n_folds, per_class.size))
    totals = np.zeros(n_folds)
    chosen = np.empty(len(names), np.int64)
    for group in order:
        place = np.lexsort((rng.permutation(n_folds), totals, of_class[:, first[group]]))[0]
        chosen[group] = place
        of_class[place, first[group]] += sizes[group]
        totals[place] += sizes[group]
    folds[measured] = chosen[member]
    return folds


def training_mask(folds: IntArray, groups: IntArray, fold: int) -> BoolArray:
    """(n,) which labels train while ``fold`` is held out: all others, but none of a held-out image's group."""
    return ~np.isin(groups, groups[folds == fold])


def count_folds(n_measurable: int, wanted: int) -> int:
    """``wanted`` folds, or as many as there are labels to hold out; 0 where fewer than two can be."""
    return 0 if n_measurable < 2 else min(wanted, n_measurable)
