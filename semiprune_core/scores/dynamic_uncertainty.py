"""Dynamic uncertainty (He et al. 2024): how much the label's probability moves within a few epochs, all run long."""

from __future__ import annotations

import numpy as np

from semiprune_core.records import FloatArray, Trajectory
from semiprune_core.scores.base import HARDER, SCORES, Window, finite_scores, mean_over_epochs
from semiprune_core.scores.windows import COLUMNS, check_window, sliding_moments


@SCORES.register(
    "dynamic_uncertainty",
    title="Dynamic uncertainty",
    higher_is=HARDER,
    explain="How restless the label's probability was, window by window over the whole training: "
    "high for images that were learned and lost again, low for those that are easy or never learned.",
    paper="arXiv:2306.05175",
    needs=("target_prob",),
)
def dynamic_uncertainty(trajectory: Trajectory, *, window: Window = 10) -> FloatArray:
    """(N,) mean over all windows of J epochs of the deviation (J - 1) of p(label) within them.

    ``window`` is J. The T - J + 1 windows go over the whole run, as in the code of DUAL and of SemiPrune; that of the
    original paper leaves out the last one. All three multiply by 10, which changes no order.

    >>> prob = np.array([[0.0, 0.5], [0.5, 0.5], [1.0, 0.5]])
    >>> dynamic_uncertainty(Trajectory(prob, prob, prob > 0, prob), window=3).tolist()
    [0.5, 0.0]
    """
    check_window("Dynamic uncertainty", window, trajectory.n_epochs)
    scores = np.empty(trajectory.n_images, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is refused below, in words
        for start in range(0, len(scores), COLUMNS):
            part = trajectory.target_prob[:, start : start + COLUMNS].astype(np.float64)
            _, m2 = sliding_moments(part, window)
            scores[start : start + COLUMNS] = mean_over_epochs(np.sqrt(m2 / (window - 1)), len(m2))
    return finite_scores("Dynamic uncertainty", scores)
