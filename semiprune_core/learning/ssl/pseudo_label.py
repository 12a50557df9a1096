"""Pseudo-label: confident predictions become labels of the same view, with a growing weight (Lee 2013)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from semiprune_core.checks import check_range
from semiprune_core.learning.ssl.base import ALGORITHMS, State, Targets
from semiprune_core.learning.ssl.fixmatch import FixMatch

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register(
    "pseudo_label",
    title="Pseudo-label",
    paper="Lee, ICML workshop 2013",
    about="Confident predictions become labels; no strong views.",
)
@dataclass(frozen=True, kw_only=True)
class PseudoLabel(FixMatch):
    """``ramp`` is the fraction of the run over which the unlabeled weight grows from 0 to its full value."""

    view: ClassVar[str | None] = "weak"
    ramp: float = 0.4

    def check(self) -> None:
        super().check()
        check_range("ramp", self.ramp, low=0, high=1)

    def targets(self, probs: Tensor, idx: Tensor, state: State, *, done: float) -> tuple[Targets, State]:
        targets, state = super().targets(probs, idx, state, done=done)
        grown = min(1.0, done / self.ramp) if self.ramp else 1.0
        return Targets(targets.labels, targets.weights * grown), state
