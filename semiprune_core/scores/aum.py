"""AUM, the area under the margin (Pleiss et al. 2020), with the softmax margin as SemiPrune and ELFS use it."""

from __future__ import annotations

from semiprune_core.records import FloatArray, Trajectory
from semiprune_core.scores.base import EASIER, SCORES, AumEpochs, finite_scores, mean_over_epochs, scored_epochs


@SCORES.register(
    "aum",
    title="AUM",
    higher_is=EASIER,
    explain="How far the label's probability stayed above the best other class, averaged over the epochs: "
    "low for hard or wrongly labeled images.",
    paper="arXiv:2001.10528",
    needs=("margin",),
)
def aum(trajectory: Trajectory, *, n_epochs: AumEpochs = None) -> FloatArray:
    """(N,) mean over the first T epochs of p(label) - max p(other), in [-1, 1].

    >>> import numpy as np
    >>> margin = np.array([[0.5, -1.0], [1.0, 0.0]])
    >>> aum(Trajectory(margin, margin, margin > 0, margin)).tolist()
    [0.75, -0.5]
    """
    return finite_scores("AUM", mean_over_epochs(trajectory.margin, scored_epochs(trajectory, n_epochs)))
