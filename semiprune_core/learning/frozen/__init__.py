"""Frozen start: heads on features that an encoder made once. Settings and results import without torch.

``fit_frozen`` gives labels, probabilities and a cross-fitted quality; ``near_duplicates`` gives groups that must not be
split; ``compare`` says which of two candidates is better on labels that both held out.
"""

from semiprune_core.learning.frozen.compare import Comparison, compare
from semiprune_core.learning.frozen.duplicates import near_duplicates
from semiprune_core.learning.frozen.fit import fit_frozen, fit_pool
from semiprune_core.learning.frozen.prepare import FrozenPool, prepare_pool
from semiprune_core.learning.frozen.results import FrozenResult, OutOfFold, Views
from semiprune_core.learning.frozen.settings import HEADS, FrozenSettings

__all__ = [
    "HEADS",
    "Comparison",
    "FrozenPool",
    "FrozenResult",
    "FrozenSettings",
    "OutOfFold",
    "Views",
    "compare",
    "fit_frozen",
    "fit_pool",
    "near_duplicates",
    "prepare_pool",
]
