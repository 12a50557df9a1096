"""The entropy of the prediction in the last epoch."""

from __future__ import annotations

import numpy as np

from semiprune_core.errors import MissingStepError
from semiprune_core.records import FloatArray, Trajectory
from semiprune_core.scores.base import HARDER, SCORES, finite_scores


@SCORES.register(
    "entropy",
    title="Entropy",
    higher_is=HARDER,
    explain="How undecided the model was between the classes at the end of training, in nats.",
    paper="arXiv:1906.11829",
    needs=("last_entropy",),
)
def entropy(trajectory: Trajectory) -> FloatArray:
    """(N,) entropy of the softmax in the trajectory's last epoch, from 0 to log C.

    >>> one = np.ones((1, 2))
    >>> entropy(Trajectory(one, one, one > 0, one, last_entropy=np.array([0.0, 0.5]))).tolist()
    [0.0, 0.5]
    """
    if trajectory.last_entropy is None:
        raise MissingStepError(
            "This trajectory has no entropy of its last epoch. Open it with all its epochs, or repeat the dynamics run."
        )
    return finite_scores("Entropy", np.asarray(trajectory.last_entropy, dtype=np.float64).copy())
