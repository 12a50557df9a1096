"""DUAL (Cho et al. 2025): difficulty times uncertainty of the label's probability, with SemiPrune's exponent gamma."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from semiprune_core.checks import check_range
from semiprune_core.knobs import Knob
from semiprune_core.records import FloatArray, Trajectory
from semiprune_core.scores.base import (
    HARDER,
    SCORES,
    DualEpochs,
    Window,
    finite_scores,
    mean_over_epochs,
    scored_epochs,
)
from semiprune_core.scores.windows import COLUMNS, check_window, sliding_moments

Gamma = Annotated[
    float,
    Knob(
        "Exponent on DUAL's deviation, in (0, 1].",
        title="gamma",
        low=0,
        high=1,
        low_open=True,
        shown=(0.1, 1.0),
        step=0.1,
        setting="gamma",
        tune=True,
    ),
]


@SCORES.register(
    "dual",
    title="DUAL",
    higher_is=HARDER,
    explain="How low and how restless the label's probability was, window by window: "
    "high for images that are learned late and unsteadily.",
    paper="arXiv:2502.06905",
    needs=("target_prob",),
)
def dual(trajectory: Trajectory, *, n_epochs: DualEpochs = None, window: Window = 10, gamma: Gamma = 1.0) -> FloatArray:
    """(N,) mean over all windows of J epochs among the first T of (1 - mean) * deviation^gamma.

    The deviation divides by J - 1. ``window`` is J, ``n_epochs`` is T, gamma lies in (0, 1]; 1 is the original score.

    >>> prob = np.array([[0.0, 0.5], [0.5, 0.5], [1.0, 0.5]])
    >>> dual(Trajectory(prob, prob, prob > 0, prob), window=3).tolist()  # (1 - 0.5) * 0.5, and no deviation at all
    [0.25, 0.0]
    """
    n_epochs = scored_epochs(trajectory, n_epochs)
    check_window("DUAL", window, n_epochs)
    check_range("gamma", gamma, low=0, high=1, low_open=True)
    scores = np.empty(trajectory.n_images, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is refused below, in words
        for start in range(0, len(scores), COLUMNS):
            part = trajectory.target_prob[:n_epochs, start : start + COLUMNS].astype(np.float64)
            mean, m2 = sliding_moments(part, window)
            terms = m2 / (window - 1)
            np.sqrt(terms, out=terms)
            if gamma != 1:
                np.power(terms, gamma, out=terms)
            terms *= 1 - mean
            scores[start : start + COLUMNS] = mean_over_epochs(terms, len(terms))
    return finite_scores("DUAL", scores)
