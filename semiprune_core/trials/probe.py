"""A probe: multinomial logistic regression on the features of a coreset. Exact, so there is no seed.

Features are scaled and turned into the pool's main directions once for all trials of a job. The loss is the mean
cross-entropy plus the penalty on the squared weights; it is convex, so the answer does not depend on where the search
begins. The search works in coordinates in which the coreset is equally long in all directions: three dozen steps are
enough, 0.05 seconds for 2,400 images.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

from semiprune_core.learning.frozen.logistic import Linear
from semiprune_core.learning.frozen.prepare import SAMPLE, Scaling, main_axes
from semiprune_core.learning.threads import one_thread
from semiprune_core.records import FloatArray, IntArray

TOLERANCE = 1e-4
MOST_STEPS = 100


def probe_rows(features: FloatArray, tests: FloatArray, directions: int) -> tuple[FloatArray, FloatArray]:
    """(N, d) and (M, d) float32: what probes see of the pool and of test images; the pool sets the coordinates."""
    scaling = Scaling.of(np.asarray(features))
    rows, others = scaling(np.asarray(features)), scaling(np.asarray(tests))
    axes = main_axes(rows[:: max(1, len(rows) // SAMPLE)], directions)
    return (rows, others) if axes is None else (rows @ axes, others @ axes)


@one_thread()
def fit_probe(rows: FloatArray, labels: IntArray, n_classes: int, *, penalty: float) -> Linear:
    """The head for ``rows`` (n, d) float32 with ``labels`` (n,); a class without an image is never predicted."""
    n, d = rows.shape
    penalty = penalty / n
    present, column = np.unique(labels, return_inverse=True)
    k, places = len(present), np.arange(n)
    curvature = (rows.T @ rows).astype(np.float64) / (4 * n)  # of the loss at its steepest, in each direction
    curvature[np.diag_indices(d)] += penalty
    lower = cholesky(curvature, lower=True)
    back = solve_triangular(lower, np.eye(d), lower=True).T.astype(np.float32)  # weights = back @ coordinates
    even, pull = rows @ back, np.float32(penalty) * (back.T @ back)

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        head = flat.reshape(d + 1, k).astype(np.float32)
        logits = even @ head[:d] + head[d]
        logits -= logits.max(1, keepdims=True)
        target = logits[places, column]
        probs = np.exp(logits, out=logits)
        total = probs.sum(1)
        pulled = pull @ head[:d]
        value = float((np.log(total) - target).mean(dtype=np.float64))
        value += 0.5 * float((pulled * head[:d]).sum(dtype=np.float64))
        probs /= total[:, None]
        probs[places, column] -= 1
        probs /= n
        slope = np.empty((d + 1, k))
        slope[:d] = even.T @ probs + pulled
        slope[d] = probs.sum(0)
        return value, slope.ravel()

    best = minimize(
        loss,
        np.zeros((d + 1) * k),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MOST_STEPS, "gtol": TOLERANCE, "ftol": 1e-9},
    )
    head = best.x.reshape(d + 1, k).astype(np.float32)
    weights, bias = np.zeros((d, n_classes), np.float32), np.full(n_classes, -np.inf, np.float32)
    weights[:, present], bias[present] = back @ head[:d], head[d]
    return Linear(weights, bias)
