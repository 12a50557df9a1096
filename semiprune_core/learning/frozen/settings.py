"""Settings of the frozen start: heads on features that an encoder made once. Nothing here loads torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from semiprune_core.checks import check_choice, check_range
from semiprune_core.learning.ssl import ALGORITHMS, Algorithm
from semiprune_core.settings import Settings

HEADS = {
    "combined": "Combined",
    "logistic": "Logistic regression",
    "propagation": "Label propagation",
    "ssl": "Semi-supervised head",
}
"""What answers, and its name for people; docs/frozen.md shows how they do beside each other."""


@dataclass(frozen=True, kw_only=True)
class FrozenSettings(Settings):
    """A frozen run. The defaults were found on tuning images, see docs/frozen.md."""

    head: str = "combined"
    n_folds: int = 10
    """Folds of the cross-fit; every uniformly drawn label is held out in one of them."""
    n_neighbours: int = 15
    directions: int = 256
    """Main directions of the features in which neighbours are looked for."""
    smooth: bool = True
    """Whether logistic regression sees the mean of an image's neighbours beside the image."""
    penalties: tuple[float, ...] = (3e-3, 1e-3, 3e-4, 1e-4)
    """Strengths of the regularisation to choose from, strongest first."""
    alpha: float = 0.9
    """How far labels flow along the graph, in [0, 1)."""
    algorithm: str = "fixmatch"
    """The SSL algorithm of the semi-supervised head."""
    options: dict[str, Any] = field(default_factory=dict)
    n_steps: int = 400
    batch_size: int = 64
    unlabeled_ratio: int = 7
    lr: float = 0.03
    ema_decay: float = 0.99
    distribution_alignment: str = "labels"

    def check(self) -> None:
        check_choice("head", self.head, tuple(HEADS))
        check_range("n_folds", self.n_folds, low=2, high=50)
        check_range("n_neighbours", self.n_neighbours, low=1)
        check_range("directions", self.directions, low=1)
        for penalty in self.penalties:
            check_range("penalties", penalty, low=0, low_open=True)
        check_range("alpha", self.alpha, low=0, high=1, high_open=True)
        check_choice("algorithm", self.algorithm, tuple(ALGORITHMS))
        self.make_algorithm()
        check_range("n_steps", self.n_steps, low=1)
        check_range("batch_size", self.batch_size, low=2)
        check_range("unlabeled_ratio", self.unlabeled_ratio, low=1)
        check_range("lr", self.lr, low=0, low_open=True)
        check_range("ema_decay", self.ema_decay, low=0, high=1, high_open=True)
        check_choice("distribution_alignment", self.distribution_alignment, ("none", "labels", "uniform"))

    def make_algorithm(self) -> Algorithm:
        return ALGORITHMS[self.algorithm].from_json(self.options)
