"""Random: every image with the same chance. What any other selector has to beat."""

from __future__ import annotations

import numpy as np

from semiprune_core.records import Evidence, IntArray
from semiprune_core.selection.base import SELECTORS, check_budget


@SELECTORS.register(
    "random",
    title="Random",
    explain="Keeps images by chance alone; what every other selection has to beat.",
    needs=(),
    nested=True,
)
def select_random(evidence: Evidence, budget: int, *, rng: np.random.Generator) -> IntArray:
    """(budget,) positions drawn without replacement.

    >>> sorted(select_random(Evidence(3), 3, rng=np.random.default_rng(0)).tolist())
    [0, 1, 2]
    """
    check_budget(evidence, budget)
    return rng.permutation(evidence.n_images)[:budget]
