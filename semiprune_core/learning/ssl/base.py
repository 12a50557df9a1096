"""What every SSL algorithm shares: a frozen dataclass of settings that says what to learn from unlabeled images.

The loop asks twice in a step. :meth:`Algorithm.targets` looks at the predictions on the weak views of the *whole*
batch (no graph) and returns labels and weights; :meth:`Algorithm.step` turns logits into the loss of a part of it.
Between them the loop may split the batch, over micro-batches or processes, without changing what is learned.

Only tensor methods are used here, so pages and the command line can list the algorithms without loading torch.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from semiprune_core.registry import Registry
from semiprune_core.settings import Settings

if TYPE_CHECKING:
    from torch import Tensor

State = dict[str, "Tensor"]
"""What an algorithm remembers between steps; it goes into the checkpoint as it is."""


@dataclass(frozen=True, eq=False)
class Targets:
    """``labels`` (B,) classes and ``weights`` (B,) in [0, 1] for the unlabeled batch; ``facts`` (C,) tensors for it."""

    labels: Tensor
    weights: Tensor
    facts: State = field(default_factory=dict)

    def part(self, rows: slice) -> Targets:
        return dataclasses.replace(self, labels=self.labels[rows], weights=self.weights[rows])


@dataclass(frozen=True, eq=False)
class Step:
    """A differentiable ``loss`` and numbers worth drawing."""

    loss: Tensor
    log: dict[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Algorithm(Settings):
    """Base of the algorithms. ``view`` is the unlabeled view the loss is taken on, or None without unlabeled images."""

    view: ClassVar[str | None] = "strong"

    def begin(self, labels: Tensor, n_images: int, n_classes: int) -> State:
        """The state before the first step; ``labels`` (n,) are the human labels in use, on the training device."""
        return {}

    def targets(self, probs: Tensor, idx: Tensor, state: State, *, done: float) -> tuple[Targets, State]:
        """From weak-view probabilities (B, C) of images ``idx`` (B,) to targets and the next state.

        ``done`` in [0, 1) is how much of the run has passed. The given state is not changed.
        """
        raise NotImplementedError

    def step(self, labeled: Tensor, labels: Tensor, unlabeled: Tensor, targets: Targets | None) -> Step:
        """The loss for logits (b, C) of labeled images with ``labels`` (b,), and (B, C) of the unlabeled view."""
        raise NotImplementedError


ALGORITHMS: Registry[type[Algorithm]] = Registry("SSL algorithm")


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """(B,) cross-entropy of logits (B, C) with labels (B,)."""
    return -logits.float().log_softmax(-1).gather(1, labels[:, None])[:, 0]


def consistency(
    labeled: Tensor, labels: Tensor, unlabeled: Tensor, targets: Targets, unlabeled_weight: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Supervised loss plus the weighted loss on the unlabeled view: means over *all* images of each kind."""
    supervised = cross_entropy(labeled, labels).mean()
    unsupervised = (cross_entropy(unlabeled, targets.labels) * targets.weights).mean()
    log = {
        "supervised_loss": supervised.detach(),
        "unsupervised_loss": unsupervised.detach(),
        "mask_share": (targets.weights > 0).float().mean(),
    }
    return supervised + unlabeled_weight * unsupervised, log
