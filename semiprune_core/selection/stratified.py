"""Stratified over score bins (coverage-centric selection, Zheng et al. 2023): some of every difficulty."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from semiprune_core.checks import check_range
from semiprune_core.knobs import Knob
from semiprune_core.records import Evidence, FloatArray, IntArray
from semiprune_core.selection.base import (
    CUTOFF,
    SELECTORS,
    ScoreName,
    check_budget,
    easiness,
    equal_shares,
    hard_end,
    interleave,
    ordered,
    split_groups,
    whole_cutoff,
)


@SELECTORS.register(
    "stratified",
    title="Stratified (coverage-centric)",
    explain="Cuts the range of a score into bins and keeps about as many images from each, so every difficulty stays.",
    paper="arXiv:2210.15809",
    needs=("aum",),
    nested=False,
    whole=whole_cutoff,
)
def select_stratified(
    evidence: Evidence,
    budget: int,
    *,
    rng: np.random.Generator,
    cutoff: Annotated[float, CUTOFF] = 0.0,
    n_bins: Annotated[
        int,
        Knob("How many bins the range of the score is cut into.", title="Bins", low=1, shown=(1, 500), flag="--bins"),
    ] = 50,
    score: ScoreName = "aum",
    higher_is: str | None = None,
    hard_share: float | None = None,
) -> IntArray:
    """(budget,) positions: the hardest ``cutoff`` share is dropped, then equal shares come from ``n_bins`` bins.

    The bins have equal width over the remaining scores; a bin with too few images gives all of them, and the others
    share what is left. Within a bin images are drawn at random.

    >>> evidence = Evidence(6, {"aum": np.array([0.0, 0.01, 0.02, 0.03, 0.5, 1.0])})
    >>> chosen = select_stratified(evidence, 3, rng=np.random.default_rng(0), n_bins=3)
    >>> sorted(chosen.tolist())[1:]
    [4, 5]
    """
    check_budget(evidence, budget)
    check_range("n_bins", n_bins, low=1)
    values = easiness(evidence, score, higher_is)
    start = hard_end(evidence.n_images, budget, cutoff, hard_share)
    left = rng.permutation(ordered(values, rng)[start:])  # in random order from here on
    bins = split_groups(_bin_of(values[left], n_bins))
    shares = equal_shares(np.array([len(members) for members in bins], dtype=np.int64), budget)
    return interleave([left[members[:share]] for members, share in zip(bins, shares, strict=True)])


def _bin_of(values: FloatArray, n_bins: int) -> IntArray:
    """(M,) the bin 0..n_bins-1 of each value; one bin when all are equal."""
    if not len(values):
        return np.empty(0, dtype=np.int64)
    low, width = float(values.min()), float(values.max()) - float(values.min())
    if width == 0:
        return np.zeros(len(values), dtype=np.int64)
    return np.minimum(((values - low) / width * n_bins).astype(np.int64), n_bins - 1)
