"""EL2N (Paul et al. 2021): the length of the error vector early in training."""

from __future__ import annotations

from typing import Annotated

from semiprune_core.checks import check_range
from semiprune_core.knobs import Knob
from semiprune_core.records import FloatArray, Trajectory
from semiprune_core.scores.base import HARDER, SCORES, finite_scores, mean_over_epochs

Early = Annotated[
    int | None,
    Knob("EL2N looks at the first so many epochs.", title="Epochs of EL2N", low=1, setting="el2n_epochs"),
]


@SCORES.register(
    "el2n",
    title="EL2N",
    higher_is=HARDER,
    explain="How far the predicted probabilities were from the label in the first epochs: high for hard images.",
    paper="arXiv:2107.07075",
    needs=("el2n",),
)
def el2n(trajectory: Trajectory, *, n_epochs: Early = 10) -> FloatArray:
    """(N,) mean over the first ten epochs of the L2 norm of softmax - one-hot, in [0, sqrt 2].

    A run shorter than ``n_epochs`` gives all its epochs: the score asks for *early* ones, and they all are.

    >>> import numpy as np
    >>> error = np.array([[1.0, 0.5], [0.0, 0.5]])
    >>> el2n(Trajectory(error, error, error > 0, error)).tolist()
    [0.5, 0.5]
    """
    if n_epochs is not None:
        check_range("n_epochs", n_epochs, low=1)
    early = trajectory.n_epochs if n_epochs is None else min(n_epochs, trajectory.n_epochs)
    return finite_scores("EL2N", mean_over_epochs(trajectory.el2n, early))
