"""FreeMatch: thresholds that follow the model's own confidence (Wang et al. 2023, arXiv:2205.07246)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from semiprune_core.checks import check_range
from semiprune_core.learning.ssl.base import ALGORITHMS, Algorithm, State, Step, Targets, consistency

if TYPE_CHECKING:
    from torch import Tensor

TINY = 1e-12


@ALGORITHMS.register(
    "freematch",
    title="FreeMatch",
    paper="arXiv:2205.07246",
    about="The threshold follows the model's own mean confidence, per class.",
)
@dataclass(frozen=True, kw_only=True)
class FreeMatch(Algorithm):
    """``momentum`` is lambda of the running means, ``fairness_weight`` w_f of the term for balanced predictions."""

    momentum: float = 0.999
    unlabeled_weight: float = 1.0
    fairness_weight: float = 0.01

    def check(self) -> None:
        check_range("momentum", self.momentum, low=0, high=1, high_open=True)
        check_range("unlabeled_weight", self.unlabeled_weight, low=0)
        check_range("fairness_weight", self.fairness_weight, low=0)

    def begin(self, labels: Tensor, n_images: int, n_classes: int) -> State:
        uniform = labels.new_ones(n_classes).float() / n_classes
        return {"confidence": uniform[0].clone(), "mean_prob": uniform, "histogram": uniform.clone()}

    def targets(self, probs: Tensor, idx: Tensor, state: State, *, done: float) -> tuple[Targets, State]:
        confidence, labels = probs.max(dim=-1)
        share = labels.bincount(minlength=probs.shape[-1]).to(probs.dtype) / len(labels)
        now = {"confidence": confidence.mean(), "mean_prob": probs.mean(0), "histogram": share}
        state = {name: old.lerp(now[name], 1 - self.momentum) for name, old in state.items()}
        bars = state["confidence"] * state["mean_prob"] / state["mean_prob"].max()
        return Targets(labels, (confidence >= bars[labels]).float(), state), state

    def step(self, labeled: Tensor, labels: Tensor, unlabeled: Tensor, targets: Targets | None) -> Step:
        assert targets is not None
        loss, log = consistency(labeled, labels, unlabeled, targets, self.unlabeled_weight)
        if self.fairness_weight:
            loss = loss + self.fairness_weight * self.fairness(unlabeled, targets)
        return Step(loss, {**log, "threshold": targets.facts["confidence"]})

    @staticmethod
    def fairness(unlabeled: Tensor, targets: Targets) -> Tensor:
        """-H(norm(p / h), norm(p' / h')): running means p, h against this batch's p', h' over confident images."""
        sure = targets.weights > 0
        if not sure.any():
            return unlabeled.float().sum() * 0
        probs = unlabeled.float().softmax(-1)[sure]
        share = probs.argmax(-1).bincount(minlength=probs.shape[-1]).to(probs.dtype) / len(probs)
        running = targets.facts["mean_prob"] / targets.facts["histogram"].clamp(min=TINY)
        batch = (probs.mean(0) / share.clamp(min=TINY)) * (share > 0)
        running, batch = running / running.sum(), batch / batch.sum().clamp(min=TINY)
        return (running * (batch + TINY).log()).sum()
