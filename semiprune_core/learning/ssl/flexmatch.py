"""FlexMatch: classes that are learned less get a lower threshold (Zhang et al. 2021, arXiv:2110.08263)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from semiprune_core.learning.ssl.base import ALGORITHMS, State, Targets
from semiprune_core.learning.ssl.fixmatch import FixMatch

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register(
    "flexmatch",
    title="FlexMatch",
    paper="arXiv:2110.08263",
    about="A threshold per class, lower for classes learned less well.",
)
@dataclass(frozen=True, kw_only=True)
class FlexMatch(FixMatch):
    """``warm_up`` counts images without a confident label yet as a class of their own, so thresholds rise slowly."""

    warm_up: bool = True

    def begin(self, labels: Tensor, n_images: int, n_classes: int) -> State:
        return {"confident_as": labels.new_full((n_images,), -1)}

    def targets(self, probs: Tensor, idx: Tensor, state: State, *, done: float) -> tuple[Targets, State]:
        confidence, labels = probs.max(dim=-1)
        beta = self.learned(state["confident_as"], probs.shape[-1])
        bar = self.threshold * (beta / (2 - beta))[labels]  # the convex mapping M(x) = x / (2 - x)
        sure = confidence >= self.threshold
        confident_as = state["confident_as"].clone()
        confident_as[idx[sure]] = labels[sure]
        return Targets(labels, (confidence >= bar).float()), {"confident_as": confident_as}

    def learned(self, confident_as: Tensor, n_classes: int) -> Tensor:
        """(C,) learning status beta: confident images per class, relative to the largest count."""
        count = (confident_as + 1).bincount(minlength=n_classes + 1)  # place 0 counts images never confident
        largest = count.max() if self.warm_up else count[1:].max().clamp(min=1)
        return count[1:].float() / largest
