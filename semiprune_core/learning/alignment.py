"""Distribution alignment: predictions scaled so that their running mean matches a wanted class distribution.

From ReMixMatch (Berthelot et al. 2020, arXiv:1911.09785); an option for pools whose classes are of unequal size.
"""

from __future__ import annotations

from torch import Tensor

MOMENTUM = 0.999
TINY = 1e-6


def begin_alignment(kind: str, drawn: Tensor | None, like: Tensor) -> dict[str, Tensor]:
    """``kind`` none, labels (class shares as in ``drawn`` (C,), the uniformly drawn labels of each class) or uniform.

    Where nothing is known of class shares (None), nothing is aligned to them. ``like`` (C,) is a tensor of the kind and
    on the device of the predictions.
    """
    if kind == "none" or (kind == "labels" and drawn is None):
        return {}
    uniform = like.new_ones(len(like)) / len(like)
    wanted = uniform if kind == "uniform" or drawn is None else drawn.to(like) / drawn.sum()
    return {"align_wanted": wanted, "align_mean": uniform.clone(), "align_steps": uniform.new_zeros(())}


def align(probs: Tensor, state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """Aligned probabilities (B, C) and the next state. The mean is exact at first, then a running one."""
    if not state:
        return probs, state
    steps = state["align_steps"] + 1
    keep = (1 - 1 / steps).clamp(max=MOMENTUM)
    mean = state["align_mean"] * keep + probs.mean(0) * (1 - keep)
    scaled = probs * (state["align_wanted"] + TINY) / (mean + TINY)
    return scaled / scaled.sum(-1, keepdim=True), {**state, "align_mean": mean, "align_steps": steps}
