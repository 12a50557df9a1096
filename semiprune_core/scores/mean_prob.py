"""The mean probability of the label: the horizontal axis of the paper's plane, and what Beta sampling looks at."""

from __future__ import annotations

from semiprune_core.records import FloatArray, Trajectory
from semiprune_core.scores.base import EASIER, SCORES, DualEpochs, finite_scores, mean_over_epochs, scored_epochs


@SCORES.register(
    "mean_prob",
    title="Mean probability",
    higher_is=EASIER,
    explain="The probability the model gave to the label, averaged over the scored epochs.",
    paper="arXiv:2009.10795",
    needs=("target_prob",),
)
def mean_prob(trajectory: Trajectory, *, n_epochs: DualEpochs = None) -> FloatArray:
    """(N,) mean over the first T epochs of p(label), in [0, 1]; T is that of DUAL.

    >>> import numpy as np
    >>> prob = np.array([[0.0, 0.5], [0.5, 1.0]])
    >>> mean_prob(Trajectory(prob, prob, prob > 0, prob)).tolist()
    [0.25, 0.75]
    """
    return finite_scores(
        "Mean probability", mean_over_epochs(trajectory.target_prob, scored_epochs(trajectory, n_epochs))
    )
