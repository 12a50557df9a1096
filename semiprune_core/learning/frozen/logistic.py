"""Multinomial logistic regression on features, exact, in a fraction of a second for a thousand labels.

The loss is the weighted mean cross-entropy plus ``penalty / 2`` times the squared length of the weights; the bias is
free. It is convex, so the answer does not depend on where the search starts, only on how long it takes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from semiprune_core.records import FloatArray, IntArray

TOLERANCE = 1e-5
"""The search ends where no slope is steeper; answers then agree to four digits."""
MOST_STEPS = 300


@dataclass(frozen=True, eq=False)
class Linear:
    """Logits ``x @ weights + bias``: ``weights`` (D, C), ``bias`` (C,)."""

    weights: FloatArray
    bias: FloatArray

    def logits(self, x: np.ndarray) -> FloatArray:
        return x @ self.weights.astype(x.dtype, copy=False) + self.bias


def fit_logistic(
    x: np.ndarray,
    labels: IntArray,
    n_classes: int,
    *,
    penalty: float,
    start: Linear | None = None,
    image_weights: FloatArray | None = None,
) -> Linear:
    """Fit to features ``x`` (n, D) with ``labels`` (n,); ``start`` is where the search begins (a warm start).

    A class without a label gets a very low bias, never a weight: it is not predicted.
    """
    x = np.asarray(x, dtype=np.float64)
    n, d = x.shape
    share = np.full(n, 1.0 / n) if image_weights is None else image_weights / image_weights.sum()
    present = np.unique(labels)
    column = np.searchsorted(present, labels)
    target = np.zeros((n, len(present)))
    target[np.arange(n), column] = 1
    # directions in which the data are long have steep slopes: steps are taken in coordinates where all are alike
    steep = 1 / np.sqrt(0.25 * (share @ (x * x)) + penalty)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        scaled = flat.reshape(d + 1, len(present))
        weights = scaled[:d] * steep[:, None]
        log_probs = log_softmax(x @ weights + scaled[d], axis=1)
        error = (np.exp(log_probs) - target) * share[:, None]
        slope = np.empty_like(scaled)
        slope[:d] = (x.T @ error + penalty * weights) * steep[:, None]
        slope[d] = error.sum(0)
        value = -(share @ (log_probs * target).sum(1)) + 0.5 * penalty * (weights * weights).sum()
        return float(value), slope.ravel()

    begin = np.zeros((d + 1, len(present)))
    if start is not None:
        begin[:d] = start.weights[:, present] / steep[:, None]
        begin[d] = start.bias[present]
    best = minimize(
        loss, begin.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS, "gtol": TOLERANCE}
    )
    scaled = best.x.reshape(d + 1, len(present))
    weights, bias = np.zeros((d, n_classes)), np.full(n_classes, -np.inf)
    weights[:, present], bias[present] = scaled[:d] * steep[:, None], scaled[d] - scaled[d].mean()
    return Linear(weights, bias)
