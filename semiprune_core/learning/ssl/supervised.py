"""Supervised-only: the human labels and nothing else, the line every other algorithm must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from semiprune_core.learning.ssl.base import ALGORITHMS, Algorithm, Step, Targets, cross_entropy

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("supervised", title="Supervised only", about="Learns from the human labels alone.")
@dataclass(frozen=True, kw_only=True)
class Supervised(Algorithm):
    view: ClassVar[str | None] = None

    def step(self, labeled: Tensor, labels: Tensor, unlabeled: Tensor, targets: Targets | None) -> Step:
        loss = cross_entropy(labeled, labels).mean()
        return Step(loss, {"supervised_loss": loss.detach()})
