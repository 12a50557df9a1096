"""What answers for an image: experts, each fitted on some labels, and how their answers are put together.

Answers are multiplied, each to a power (a geometric mean with weights). The powers are fitted on answers for labels
that the experts had not seen: they say both how far to trust each expert and how sure the whole may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from semiprune_core.learning.frozen.logistic import Linear, fit_logistic
from semiprune_core.learning.frozen.prepare import FrozenPool
from semiprune_core.learning.frozen.propagation import propagate
from semiprune_core.records import FloatArray, IntArray

FLOOR = 1e-3
"""The least share that propagation gives a class: no path in the graph is no proof."""
NEVER = -30.0
"""The logit of a class that has no label to learn from."""
PRIOR_POWER, PRIOR_WEIGHT = 0.6, 2.0
"""Where the powers begin and how many labels that is worth: few labels must not make an expert certain."""


@dataclass(frozen=True, eq=False)
class Span:
    """Rows in coordinates of the labeled ones' span: a penalised linear head never leaves it, and it is smaller."""

    labeled: FloatArray
    back: FloatArray | None

    @classmethod
    def of(cls, rows: FloatArray) -> Span:
        n, d = rows.shape
        if n >= d:
            return cls(rows.astype(np.float64), None)
        rows = rows.astype(np.float64)
        squares, left = np.linalg.eigh(rows @ rows.T)
        alive = squares > 1e-10 * squares.max(initial=0)
        left, length = left[:, alive], np.sqrt(squares[alive])
        return cls(left * length, rows.T @ (left / length))

    def widen(self, head: Linear) -> Linear:
        """The head for the rows as they were."""
        return head if self.back is None else Linear(self.back @ head.weights, head.bias)


def penalty_path(
    x: FloatArray,
    labels: IntArray,
    n_classes: int,
    penalties: Sequence[float],
    image_weights: FloatArray | None = None,
) -> list[Linear]:
    """A head for each penalty, each search beginning where the one before ended."""
    heads: list[Linear] = []
    for penalty in penalties:
        start = heads[-1] if heads else None
        heads.append(fit_logistic(x, labels, n_classes, penalty=penalty, start=start, image_weights=image_weights))
    return heads


def log_probs(logits: FloatArray) -> FloatArray:
    """(n, C) log probabilities; a class that cannot be predicted gets ``NEVER``, any other is a little above it."""
    return np.where(np.isneginf(logits), NEVER, np.maximum(log_softmax(logits, axis=1), NEVER + 1))


def propagated(pool: FrozenPool, positions: IntArray, labels: IntArray, n_classes: int, *, alpha: float) -> FloatArray:
    """(N, C) log shares of what arrives from the labels at ``positions``; every class sends the same amount in all."""
    sources = np.zeros((len(pool), n_classes), np.float32)
    sources[positions, labels] = 1
    count = sources.sum(0)
    sources *= len(positions) / np.maximum(count, 1)
    if pool.kernel is None:
        arrived = propagate(pool.graph, sources, alpha=alpha)
    else:
        arrived = pool.kernel[:, positions] @ sources[positions]
    arrived = arrived.astype(np.float64)
    total = arrived.sum(1, keepdims=True)
    shares = np.where(total > 0, arrived / np.where(total > 0, total, 1), 1 / max(int((count > 0).sum()), 1))
    return np.where(count > 0, np.log(np.maximum(shares, FLOOR)), NEVER)


def fit_powers(answers: Sequence[FloatArray], labels: IntArray) -> tuple[FloatArray, float]:
    """One power (at least 0) for each expert from their log answers (n, C) for held-out ``labels``; and the loss.

    The mean cross-entropy of the product, with a weak pull to ``PRIOR_POWER``. Convex, so there is one answer. Labels
    that no expert could know (a class that was not in the fold) say nothing about powers and are left out.
    """
    stacked = np.stack(answers)  # (E, n, C)
    rows = np.arange(len(labels))
    known = (stacked[:, rows, labels] > NEVER).all(0)
    stacked, labels, rows = stacked[:, known], labels[known], np.arange(int(known.sum()))
    n = max(len(labels), 1)

    def loss(powers: FloatArray) -> tuple[float, FloatArray]:
        together = log_softmax(np.einsum("e,enc->nc", powers, stacked), axis=1)
        expected = np.einsum("nc,enc->e", np.exp(together), stacked)
        pull = PRIOR_WEIGHT / n * (powers - PRIOR_POWER)
        value = -together[rows, labels].sum() / n + 0.5 * float(pull @ (powers - PRIOR_POWER))
        return float(value), (expected - stacked[:, rows, labels].sum(1)) / n + pull

    begin = np.full(len(answers), PRIOR_POWER)
    best = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(answers))
    return best.x, float(best.fun)


def together(answers: Sequence[FloatArray], powers: FloatArray) -> FloatArray:
    """(n, C) probabilities of the experts' log answers, each to its power."""
    if not np.any(powers):
        powers = np.full(len(answers), PRIOR_POWER)
    never = np.all([answer <= NEVER for answer in answers], axis=0)
    mixed = np.einsum("e,enc->nc", powers, np.stack(answers))
    return softmax(np.where(never, -np.inf, mixed), axis=1)
