"""How likely a pseudo-label is wrong, given how sure the model was of it and its score: fitted on few held-out labels.

Held-out labels (uniformly drawn, answered by a model that never saw them) say whether the model's answer is right.
Their scores need care: the scoring run saw the person's label. Where the answer is right that is the same label, hence
the same score; where it is wrong the score with the wrong label was never seen. So a right answer speaks of its
confidence, score and whether it is kept; a wrong one of its confidence alone. What share of all pseudo-labels each has
is known from the rest of the pool. That gives a likelihood without a bias:

    right, in cell c:            q_c (1 - w_c)
    wrong, with confidence i:    the sum of q_c w_c over the cells of that confidence

with q the shares of all pseudo-labels and w = sigmoid(design @ beta) the chance that a label is wrong. ``beta`` has a
normal prior: what pools have in common, wide enough for those that differ (docs/select.md says how that was checked).

K cells = B confidence bins x S score bins x 2 (kept or not), P terms. D draws of the labels are fitted at once: the
Select page has one, a simulation many.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import expit, ndtri

from semiprune_core import streams
from semiprune_core.records import BoolArray, FloatArray, IntArray
from semiprune_core.streams import Purpose

CONFIDENCE_BINS, SCORE_BINS = 8, 8
STEPS = 30
LIKELY = 0.8
"""From this probability on it is said that more of a coreset's labels are wrong than of the pool's."""
ENOUGH = 50_000
"""The edges of bins come from about as many values."""
N_SAMPLES = 400
SPREAD = 1.2
"""The normal approximation, and a prior that is wrong for some pools, make too narrow an interval: by as much."""
TERMS: dict[str, tuple[float, float]] = {
    "level": (-2.3, 1.5),
    "doubt": (1.0, 0.6),
    "hardness": (0.5, 1.5),
    "doubt squared": (-0.2, 0.3),
    "hardness squared": (0.0, 1.0),
    "both": (0.1, 0.3),
    "kept": (0.0, 1.5),
}
"""Mean and deviation of the prior. Doubt and hardness are normal scores of their ranks among the pseudo-labels."""
BIN_DEVIATIONS = (0.4, 0.8)
"""Of each bin of confidence and of score from the smooth terms."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The pseudo-labels of a pool in K cells.

    ``shares`` (K,) of all of them and ``kept`` (K,) of the kept ones sum to 1. ``design`` (K, P); ``bins`` (K,) is the
    confidence bin of a cell.
    """

    shares: FloatArray
    kept: FloatArray
    design: FloatArray
    bins: IntArray


@dataclass(frozen=True, eq=False)
class Places:
    """Where each of N images lies: confidence bin, score bin, and 1 where it is kept."""

    confidence: IntArray
    score: IntArray
    kept: IntArray

    @property
    def cells(self) -> IntArray:
        return cell_number(self.confidence, self.score, self.kept)


def cell_number(confidence: IntArray, score: IntArray, kept: IntArray) -> IntArray:
    """The cell of each bin of confidence, bin of score, and 1 where kept."""
    return (confidence * SCORE_BINS + score) * 2 + kept


def without_kept(cells: Cells, right: FloatArray) -> FloatArray:
    """``right`` (K,) counts, those of dropped and kept taken together and divided as all pseudo-labels are."""
    both, shares = right.reshape(-1, 2).sum(1), cells.shares.reshape(-1, 2)
    part = np.divide(
        shares, shares.sum(1, keepdims=True), out=np.full_like(shares, 0.5), where=shares.sum(1)[:, None] > 0
    )
    return (part * both[:, None]).ravel()


def bin_by_rank(values: FloatArray, known: BoolArray, n_bins: int) -> IntArray:
    """(N,) the bin of each image among ``n_bins`` that hold equally many of the ``known`` ones; equal values together.

    >>> bin_by_rank(np.array([0.1, 0.2, 0.3, 0.4]), np.ones(4, bool), 2).tolist()
    [0, 0, 1, 1]
    """
    seen = values[known]
    seen = seen[:: 1 + len(seen) // ENOUGH]
    edges = np.quantile(seen, np.arange(1, n_bins) / n_bins, method="higher")
    return np.searchsorted(np.unique(edges), values, side="right")


def places_of(doubt: FloatArray, hardness: FloatArray, kept: BoolArray, pseudo: BoolArray) -> Places:
    """Where every image (N,) lies, in bins that hold equally many of the ``pseudo``-labeled ones."""
    return Places(
        bin_by_rank(doubt, pseudo, CONFIDENCE_BINS), bin_by_rank(hardness, pseudo, SCORE_BINS), kept.astype(np.int64)
    )


def cells_of(places: Places, pseudo: BoolArray) -> Cells:
    """The ``pseudo``-labeled images (N,) in cells."""
    n_cells = CONFIDENCE_BINS * SCORE_BINS * 2
    counts = np.bincount(places.cells[pseudo], minlength=n_cells).astype(float)
    number = np.arange(n_cells)
    kept = counts * (number % 2)
    bins = number // (2 * SCORE_BINS)
    scores = number // 2 % SCORE_BINS
    doubt = _normal_scores(np.bincount(bins, counts, CONFIDENCE_BINS).astype(float))[bins]
    hard = _normal_scores(np.bincount(scores, counts, SCORE_BINS).astype(float))[scores]
    one = np.ones(n_cells)
    in_bin = (bins[:, None] == np.arange(CONFIDENCE_BINS)).astype(float)
    smooth = [one, doubt, hard, doubt**2 - 1, hard**2 - 1, doubt * hard, number % 2 - 0.5]
    in_score = (scores[:, None] == np.arange(SCORE_BINS)).astype(float)
    design = np.column_stack([*smooth, in_bin, in_score])
    return Cells(counts / max(counts.sum(), 1), kept / max(kept.sum(), 1), design, bins)


def _normal_scores(counts: FloatArray) -> FloatArray:
    """The normal score of the middle of each bin."""
    total = max(float(counts.sum()), 1.0)
    middle = (np.cumsum(counts) - counts / 2) / total
    return np.asarray(ndtri(np.clip(middle, 0.5 / total, 1 - 0.5 / total)))


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is believed of ``beta``: ``mean`` (D, P) and ``factor`` (D, P, P); factor @ factor.T is its covariance."""

    mean: FloatArray
    factor: FloatArray


def fit_errors(cells: Cells, right: FloatArray, wrong: FloatArray, weight: float = 1.0) -> Posterior:
    """From held-out labels: ``right`` (D, K) counts of right answers by cell, ``wrong`` (D, B) of wrong ones by
    confidence.

    ``weight`` is what one label is worth, less than 1 where they depend on each other. Fisher scoring to the mode of
    each draw, and the normal approximation there.
    """
    x, q = cells.design, cells.shares
    n_terms = x.shape[1]
    mean, precision = _prior()
    in_bin = (cells.bins[:, None] == np.arange(CONFIDENCE_BINS)).astype(float)  # (K, B)
    by_bin = (in_bin[:, :, None] * x[:, None]).reshape(len(x), -1)  # (K, B * P)
    products = (x[:, :, None] * x[:, None]).reshape(len(x), -1)  # (K, P * P)
    n = weight * (right.sum(1) + wrong.sum(1))
    right, wrong = weight * right, weight * wrong
    beta = np.tile(mean, (len(right), 1))
    precisions = np.empty((len(right), n_terms, n_terms))
    moving = np.arange(len(right))
    for _ in range(STEPS):
        w = expit(beta[moving] @ x.T)
        slope = q * w * (1 - w)
        total = np.maximum((q * w) @ in_bin, 1e-12)  # (D, B)
        rise = (slope @ by_bin).reshape(-1, CONFIDENCE_BINS, n_terms)
        gradient = ((wrong[moving] / total)[:, None] @ rise)[:, 0] - (right[moving] * w) @ x
        gradient -= (beta[moving] - mean) * precision
        information = ((slope * w) @ products).reshape(-1, n_terms, n_terms)
        information += (rise / total[..., None]).transpose(0, 2, 1) @ rise
        information = information * n[moving, None, None] + np.diag(precision)
        step = np.linalg.solve(information, gradient[..., None])[..., 0]
        largest = np.abs(step).max(1)
        beta[moving] += step / np.maximum(1.0, largest)[:, None]
        precisions[moving] = information
        moving = moving[largest >= 1e-4]
        if not len(moving):
            break
    return Posterior(beta, np.linalg.cholesky(np.linalg.inv(precisions)))


def _prior() -> tuple[FloatArray, FloatArray]:
    """Mean and precision (P,) of each term."""
    mean = np.array([*(m for m, _ in TERMS.values()), *[0.0] * (CONFIDENCE_BINS + SCORE_BINS)])
    deviation = np.array(
        [*(d for _, d in TERMS.values()), *[BIN_DEVIATIONS[0]] * CONFIDENCE_BINS, *[BIN_DEVIATIONS[1]] * SCORE_BINS]
    )
    return mean, deviation**-2


def sampled_errors(cells: Cells, found: Posterior, normals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(D, M) shares of wrong ones among the kept labels and among all, from the posterior by ``normals`` (M, P)."""
    filled = cells.shares > 0
    beta = found.mean[:, None] + SPREAD * normals @ found.factor.transpose(0, 2, 1)
    w = expit((beta @ cells.design[filled].T).astype(np.float32))
    both = w @ np.column_stack([cells.kept[filled], cells.shares[filled]]).astype(np.float32)
    return both[..., 0].astype(float), both[..., 1].astype(float)


@cache
def posterior_normals() -> tuple[FloatArray, FloatArray]:
    """Standard normal numbers (M, P) for the terms and (M,) for the coreset, always the same, each with its mirror."""
    rng = streams.rng(0, Purpose.LABEL_ERROR)
    half = rng.standard_normal((N_SAMPLES // 2, len(TERMS) + CONFIDENCE_BINS + SCORE_BINS))
    chance = rng.standard_normal(N_SAMPLES)
    return np.concatenate([half, -half]), chance


def estimated_shares(
    cells: Cells, right: FloatArray, wrong: FloatArray, n_kept: FloatArray, weight: float = 1.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Quantiles 2.5, 50 and 97.5% (3, D) of the share of wrong ones among ``n_kept`` (D,) kept pseudo-labels, the same
    quantiles of that among all, and (D,) how likely the first is the larger one.
    """
    normals, chance = posterior_normals()
    kept, everywhere = sampled_errors(cells, fit_errors(cells, right, wrong, weight), normals)
    more = (kept > everywhere).mean(1)
    kept = kept + np.sqrt(kept * (1 - kept) / np.maximum(n_kept, 1)[:, None]) * chance
    ends = [0.025, 0.5, 0.975]
    return np.clip(np.quantile(kept, ends, axis=1), 0, 1), np.quantile(everywhere, ends, axis=1), more
