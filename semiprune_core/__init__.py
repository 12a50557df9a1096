"""SemiPrune Studio's core: from a pool of unlabeled images to a coreset, without a browser.

    import semiprune_core as sp

    coreset = sp.prune(images, labels, ratio=0.7)  # labels: -1 or None where there is none
    coreset.indices                                # what to keep, best first

Step by step: ``embed``, ``learn``, ``train_dynamics``, ``score``, ``select``, ``evaluate``; projects: ``open("name")``.
Nothing is loaded before it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semiprune_core.library import (
        Coreset,
        Evaluation,
        Features,
        Project,
        PseudoLabels,
        Scores,
        TrainingDynamics,
        embed,
        evaluate,
        learn,
        open,
        prune,
        score,
        select,
        train_dynamics,
    )

__version__ = "0.1.0"
__all__ = [
    "Coreset",
    "Evaluation",
    "Features",
    "Project",
    "PseudoLabels",
    "Scores",
    "TrainingDynamics",
    "__version__",
    "embed",
    "evaluate",
    "learn",
    "open",
    "prune",
    "score",
    "select",
    "train_dynamics",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(f"{__name__}.library"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
