"""Double-end cutoff (ELFS, Zheng et al. 2025): drop the hardest share, keep the next ones, drop the easy rest."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from semiprune_core.records import Evidence, IntArray
from semiprune_core.selection.base import (
    CUTOFF,
    SELECTORS,
    ScoreName,
    check_budget,
    easiness,
    hard_end,
    ordered,
    whole_cutoff,
)


@SELECTORS.register(
    "cutoff",
    title="Double-end cutoff",
    explain="Drops the hardest images, which are often wrongly labeled, then keeps the next hardest ones.",
    paper="arXiv:2406.04273",
    needs=("aum",),
    nested=True,
    whole=whole_cutoff,
)
def select_cutoff(
    evidence: Evidence,
    budget: int,
    *,
    rng: np.random.Generator,
    cutoff: Annotated[float | None, CUTOFF] = None,
    score: ScoreName = "aum",
    higher_is: str | None = None,
    hard_share: float | None = None,
) -> IntArray:
    """(budget,) positions, hardest first, after round(cutoff * N) still harder ones were dropped.

    Start plus length: cutoff 0 keeps the hardest images, cutoff = pruning ratio the easiest. None is 0.1, or less where
    the budget leaves less to drop.

    >>> evidence = Evidence(5, {"aum": np.array([0.1, 0.2, 0.3, 0.4, 0.5])})
    >>> select_cutoff(evidence, 3, rng=np.random.default_rng(0), cutoff=0.2).tolist()
    [1, 2, 3]
    """
    check_budget(evidence, budget)
    start = hard_end(evidence.n_images, budget, cutoff, hard_share)
    return ordered(easiness(evidence, score, higher_is), rng)[start : start + budget]
