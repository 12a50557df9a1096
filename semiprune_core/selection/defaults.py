"""The paper's own values, and values to start from where nothing was searched yet.

The tables are those of the paper's appendix "Hyperparameters for Selection Methods". They were tuned on pools of 8,000
to 1.3 million images whose scoring runs had 90 or 200 epochs, and they do not carry over to small pools or short runs.
In rough trials with short runs (test accuracy, 2 seeds):

    6,000 images    r = 0.9   Beta, c_D = 5: 81.4    Random: 80.0
                    r = 0.7   Beta, c_D = 5: 78.3    Random: 83.2
                    AUM equals Random at cutoff 0.1 and is worse at larger ones
    30,000 images   r = 0.9   Beta, c_D = 5: 88.7    Random: 87.1    AUM at best equal, at cutoff 0.1

So outside the paper's range :func:`default_knobs` uses a cutoff of 0.1, and c_D = 5 only from r = 0.9 on. Below that it
lowers c_D so that 1 - r^c_D, which sets how far the Beta distribution leans to hard images, is what it was at r = 0.9
with c_D = 5, the one place where it was seen to help; c_D cannot be less than 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from semiprune_core.checks import check_range
from semiprune_core.errors import UnknownNameError
from semiprune_core.selection.base import DEFAULT_CUTOFF

PAPER_RATIOS = (0.3, 0.5, 0.7, 0.8, 0.9)
PAPER_CUTOFFS: dict[str, tuple[float, ...]] = {  # Semi-AUM+Cutoff, by pruning ratio
    "food101": (0.1, 0.3, 0.5, 0.6, 0.8),
    "sun397": (0.1, 0.1, 0.1, 0.2, 0.2),
    "cifar100-c": (0.1, 0.2, 0.4, 0.5, 0.7),
    "tiny-imagenet-c": (0.2, 0.4, 0.6, 0.7, 0.8),
    "cifar100-lt-0.1": (0.1, 0.4, 0.5, 0.6, 0.8),
    "caltech101": (0.0, 0.1, 0.4, 0.5, 0.6),
    "cifar10": (0.0, 0.0, 0.1, 0.2, 0.4),
    "cifar100": (0.1, 0.2, 0.4, 0.6, 0.7),
    "imagenet1k": (0.1, 0.3, 0.5, 0.5, 0.7),
}
PAPER_BETA: dict[str, tuple[int, float]] = {  # Semi-DUAL+Beta: (T, c_D)
    "food101": (30, 5.0),
    "sun397": (30, 5.0),
    "cifar100-c": (70, 4.0),
    "tiny-imagenet-c": (50, 6.0),
    "cifar100-lt-0.1": (30, 6.0),
    "caltech101": (30, 5.0),
    "cifar10": (30, 5.5),
    "cifar100": (30, 4.0),
    "imagenet1k": (60, 11.0),
}
PAPER_MIN_IMAGES, PAPER_MIN_EPOCHS = 8_000, 90
SMALL_C_D, SMALL_C_D_RATIO = 5.0, 0.9
SCORED_EPOCHS = 30  # T: the median of the paper's table
BY_CUTOFF = ("semi_aum_cutoff", "semi_el2n", "semi_forgetting", "elfs", "elfs_self")
BY_CUTOFF += ("cluster_el2n", "cluster_forgetting")
BY_BETA = ("semi_dual_beta", "fully_supervised")


@dataclass(frozen=True)
class Defaults:
    """Where to start: ``selector`` knobs, fields of ``ScoreSettings`` in ``scores``, and ``why``, for the page."""

    selector: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)
    why: str = ""


def paper_cutoff(dataset: str, pruning_ratio: float) -> float:
    """The paper's cutoff of a data set; between its ratios interpolated, from 0 at ratio 0.

    >>> paper_cutoff("cifar100", 0.9)
    0.7
    """
    return _cutoff_at(_known(dataset, PAPER_CUTOFFS), pruning_ratio)


def paper_beta(dataset: str) -> tuple[int, float]:
    """The paper's (T, c_D) of a data set.

    >>> paper_beta("imagenet1k")
    (60, 11.0)
    """
    return _known(dataset, PAPER_BETA)


def default_knobs(method: str, n_images: int, pruning_ratio: float, n_epochs: int | None = None) -> Defaults:
    """What to use for ``method`` in a project that was never searched; ``n_epochs`` is the length of the scoring run.

    A run of unknown length counts as short, which is the careful choice. Baselines that choose the same way start from
    the same values. Methods without such knobs get none.

    >>> default_knobs("semi_aum_cutoff", 6_000, 0.7, 20).selector
    {'cutoff': 0.1}
    >>> default_knobs("semi_dual_beta", 50_000, 0.7, 200).selector
    {'c_d': 5.0}
    """
    check_range("pruning_ratio", pruning_ratio, low=0, high=1, high_open=True)
    like_paper = n_images >= PAPER_MIN_IMAGES and (n_epochs or 0) >= PAPER_MIN_EPOCHS
    why = (
        "The median of the paper's values for pools and runs of this size."
        if like_paper
        else "Unproven for a small pool or a short run: these can be worse than Random. Search or evaluate first."
    )
    if method in BY_CUTOFF:
        if like_paper:
            medians = np.median(np.array(list(PAPER_CUTOFFS.values())), axis=0)
            cutoff = _cutoff_at(tuple(medians.tolist()), pruning_ratio)
        else:
            cutoff = min(DEFAULT_CUTOFF, pruning_ratio)
        return Defaults({"cutoff": cutoff}, {}, why)
    if method in BY_BETA:
        c_d = float(np.median([c_d for _, c_d in PAPER_BETA.values()])) if like_paper else _small_c_d(pruning_ratio)
        scored = None if n_epochs is None else min(SCORED_EPOCHS, n_epochs)
        return Defaults({"c_d": c_d}, {"dual_epochs": scored, "gamma": 1.0}, why)
    return Defaults()


def _small_c_d(pruning_ratio: float) -> float:
    if pruning_ratio >= SMALL_C_D_RATIO:
        return SMALL_C_D
    if pruning_ratio == 0:
        return 1.0
    return round(max(1.0, SMALL_C_D * math.log(SMALL_C_D_RATIO) / math.log(pruning_ratio)), 2)


def _cutoff_at(cutoffs: tuple[float, ...], pruning_ratio: float) -> float:
    """Interpolate between the paper's ratios; beyond the last one the easy end stays as wide as it was there."""
    check_range("pruning_ratio", pruning_ratio, low=0, high=1, high_open=True)
    cutoff = float(np.interp(pruning_ratio, (0.0, *PAPER_RATIOS), (0.0, *cutoffs)))
    return round(min(cutoff, pruning_ratio), 4)


def _known(dataset: str, table: dict[str, Any]) -> Any:
    if dataset not in table:
        raise UnknownNameError(f"The paper has no values for '{dataset}'. It has: {', '.join(table)}.")
    return table[dataset]
