"""The deviation of the label's probability over the epochs: the vertical axis of the paper's plane."""

from __future__ import annotations

import numpy as np

from semiprune_core.records import FloatArray, Trajectory
from semiprune_core.scores.base import HARDER, SCORES, DualEpochs, finite_scores, mean_over_epochs, scored_epochs


@SCORES.register(
    "variability",
    title="Variability",
    higher_is=HARDER,
    explain="How much the label's probability moved over the scored epochs: high for images the model wavered on.",
    paper="arXiv:2009.10795",
    needs=("target_prob",),
)
def variability(trajectory: Trajectory, *, n_epochs: DualEpochs = None) -> FloatArray:
    """(N,) standard deviation (T - 1) of p(label) over the first T epochs; 0 for a single epoch.

    >>> prob = np.array([[0.0, 0.5], [0.5, 0.5], [1.0, 0.5]])
    >>> variability(Trajectory(prob, prob, prob > 0, prob)).tolist()
    [0.5, 0.0]
    """
    n_epochs = scored_epochs(trajectory, n_epochs)
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is refused below, in words
        mean = mean_over_epochs(trajectory.target_prob, n_epochs)
        m2 = np.zeros_like(mean)
        for row in trajectory.target_prob[:n_epochs]:
            apart = row - mean
            apart *= apart
            m2 += apart
        return finite_scores("Variability", np.sqrt(m2 / max(1, n_epochs - 1)))
