"""FixMatch: a weak view's confident prediction is the label of the strong view (Sohn et al. 2020, arXiv:2001.07685)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from semiprune_core.checks import check_range
from semiprune_core.learning.ssl.base import ALGORITHMS, Algorithm, State, Step, Targets, consistency

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register(
    "fixmatch", title="FixMatch", paper="arXiv:2001.07685", about="One fixed confidence threshold for all classes."
)
@dataclass(frozen=True, kw_only=True)
class FixMatch(Algorithm):
    """``threshold`` is tau, ``unlabeled_weight`` lambda_u."""

    threshold: float = 0.95
    unlabeled_weight: float = 1.0

    def check(self) -> None:
        check_range("threshold", self.threshold, low=0, high=1)
        check_range("unlabeled_weight", self.unlabeled_weight, low=0)

    def targets(self, probs: Tensor, idx: Tensor, state: State, *, done: float) -> tuple[Targets, State]:
        confidence, labels = probs.max(dim=-1)
        return Targets(labels, (confidence >= self.threshold).float()), state

    def step(self, labeled: Tensor, labels: Tensor, unlabeled: Tensor, targets: Targets | None) -> Step:
        assert targets is not None
        return Step(*consistency(labeled, labels, unlabeled, targets, self.unlabeled_weight))
