"""A probe: multinomial logistic regression on the features of a coreset. Exact, so there is no seed.

Features are scaled and turned into the pool's main directions once for all trials of a job. The loss is the mean
cross-entropy plus the penalty on the squared weights; it is convex, so the answer does not depend on where the search
begins, only how long it takes: from the head of all images that a coreset may be chosen from, half as long for large
coresets. The search works in coordinates in which the coreset is equally long along each main direction.
"""

from __future__ import annotations

import numpy as np
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
def fit_probe(
    rows: FloatArray, labels: IntArray, n_classes: int, *, penalty: float, start: Linear | None = None
) -> Linear:
    """The head for ``rows`` (n, d) float32 with ``labels`` (n,); a class without an image is never predicted.

    ``start`` is a head near which the answer is looked for, such as that of more images.
    """
    n, d = rows.shape
    penalty = penalty / n
    present, column = np.unique(labels, return_inverse=True)
    k, places = len(present), np.arange(n)
    curvature = np.einsum("nd,nd->d", rows, rows, dtype=np.float64) / (4 * n) + penalty  # at the steepest, at most
    step = (1 / np.sqrt(curvature)).astype(np.float32)[:, None]  # weights = step * coordinates
    even, pull = rows * step.T, np.float32(penalty) * step * step
    begin = np.zeros((d + 1, k))
    if start is not None and np.isfinite(start.bias[present]).all():
        begin[:d], begin[d] = start.weights[:, present] / step, start.bias[present]

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        head = flat.reshape(d + 1, k).astype(np.float32)
        logits = even @ head[:d] + head[d]
        logits -= logits.max(1, keepdims=True)
        target = logits[places, column]
        probs = np.exp(logits, out=logits)
        total = probs.sum(1)
        pulled = pull * head[:d]
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
        begin.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MOST_STEPS, "gtol": TOLERANCE, "ftol": 1e-9},
    )
    head = best.x.reshape(d + 1, k).astype(np.float32)
    weights, bias = np.zeros((d, n_classes), np.float32), np.full(n_classes, -np.inf, np.float32)
    weights[:, present], bias[present] = step * head[:d], head[d]
    return Linear(weights, bias)
