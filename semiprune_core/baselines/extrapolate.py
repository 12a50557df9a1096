"""Score extrapolation by neighbours (Schmidt et al. 2025, arXiv:2506.09010).

A score is known for the images that were trained on. Every other image gets the mean of its k nearest known ones in
the embedding, weighted by exp(-distance). Distances are taken in units of the mean distance to those neighbours, so
that the weights do not depend on the embedding's scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from semiprune_core.baselines.neighbours import nearest
from semiprune_core.progress import Progress
from semiprune_core.records import FloatArray, IntArray

NEIGHBOURS = (3, 5, 10, 20, 50)
FOLDS = 5


def extrapolate_knn(
    values: np.ndarray,
    known_idx: IntArray,
    known: Mapping[str, FloatArray],
    *,
    k: int,
    progress: Progress | None = None,
) -> dict[str, FloatArray]:
    """Scores (N,) of all images with features ``values`` (N, D), from ``known`` scores (M,) at ``known_idx`` (M,).

    Known scores stay as they are.
    """
    rest = np.setdiff1d(np.arange(len(values)), known_idx)
    found = {name: np.empty(len(values)) for name in known}
    for name, scores in known.items():
        found[name][known_idx] = scores
    if not len(rest):
        return found
    places, apart = nearest(values[rest], values[known_idx], min(k, len(known_idx)), progress=progress)
    weights = closeness(apart)
    weights /= weights.sum(axis=1, keepdims=True)
    for name, scores in known.items():
        found[name][rest] = (weights * np.asarray(scores)[places]).sum(axis=1)
    return found


def choose_k(
    values: np.ndarray, scores: FloatArray, *, among: Sequence[int] = NEIGHBOURS, rng: np.random.Generator
) -> int:
    """The number of neighbours that carries known ``scores`` (M,) best to known images with features ``values`` (M, D)
    that are left out, a fifth at a time, by rank correlation. The subset of the original paper had far more images, for
    which it chose among 10 and more."""
    parts = np.array_split(rng.permutation(len(scores)), FOLDS)

    def agreement(k: int) -> float:
        carried = np.empty(len(scores))
        for held in parts:
            known = np.setdiff1d(np.arange(len(scores)), held)
            carried[held] = extrapolate_knn(values, known, {"score": scores[known]}, k=k)["score"][held]
        return float(stats.spearmanr(carried, scores).statistic) if np.ptp(carried) else -1.0

    fitting = [k for k in among if k <= len(scores) * (FOLDS - 1) // FOLDS]
    can_tell = len(scores) >= 2 * FOLDS and np.ptp(scores) > 0 and fitting
    return max(fitting, key=agreement) if can_tell else among[0]


def closeness(apart: FloatArray) -> FloatArray:
    """exp(-distance) in units of the mean distance; 1 where all distances are 0.

    >>> closeness(np.array([[0.0, 2.0]])).round(4).tolist()
    [[1.0, 0.1353]]
    """
    scale = float(np.mean(apart, dtype=np.float64)) or 1.0
    return np.exp(-np.asarray(apart, dtype=np.float64) / scale)
