"""Top-k and bottom-k: the hardest or the easiest images by one score."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from semiprune_core.checks import check_choice
from semiprune_core.knobs import Knob
from semiprune_core.records import Evidence, IntArray
from semiprune_core.selection.base import SELECTORS, ScoreName, check_budget, easiness, ordered

HARDEST, EASIEST = "hardest", "easiest"


@SELECTORS.register(
    "top",
    title="Hardest or easiest",
    explain="Keeps the images at one end of a score: the hardest, or the easiest.",
    needs=("aum",),
    nested=True,
)
def select_top(
    evidence: Evidence,
    budget: int,
    *,
    rng: np.random.Generator,
    keep: Annotated[
        str, Knob("Which end of the score is kept.", title="Keep the", choices=(HARDEST, EASIEST))
    ] = HARDEST,
    score: ScoreName = "aum",
    higher_is: str | None = None,
) -> IntArray:
    """(budget,) positions of the ``keep`` = "hardest" or "easiest" images, the most extreme first.

    >>> evidence = Evidence(4, {"aum": np.array([0.1, 0.4, 0.3, 0.2])})
    >>> select_top(evidence, 2, rng=np.random.default_rng(0), keep="easiest").tolist()
    [1, 2]
    """
    check_budget(evidence, budget)
    check_choice("keep", keep, (HARDEST, EASIEST))
    values = easiness(evidence, score, higher_is)
    return ordered(values if keep == HARDEST else -values, rng)[:budget]
