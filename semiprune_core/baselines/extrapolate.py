"""Score extrapolation by neighbours (Schmidt et al. 2025, arXiv:2506.09010).

A score is known for the images that were trained on. Every other image gets the mean of its k nearest known ones in
the embedding, weighted by exp(-distance). Distances are taken in units of the mean distance to those neighbours, so
that the weights do not depend on the embedding's scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from semiprune_core.baselines.neighbours import nearest
from semiprune_core.progress import Progress
from semiprune_core.records import FloatArray, IntArray

NEIGHBOURS = (3, 5, 10, 20, 50)
FOLDS = 5


def extrapolate_knn(
    values: np.ndarray,
    known_idx: IntArray,
    known_scores: Mapping[str, FloatArray],
    *,
    k: int,
    progress: Progress | None = None,
) -> dict[str, FloatArray]:
    """Scores (N,) of all images with features ``values`` (N, D), from ``known_scores`` (M,) at ``known_idx`` (M,).

    Known scores stay as they are.
    """
    rest = np.setdiff1d(np.arange(len(values)), known_idx)
    all_scores: dict[str, FloatArray] = {name: np.empty(len(values)) for name in known_scores}
    for name, scores in known_scores.items():
        all_scores[name][known_idx] = scores
    if not len(rest):
        return all_scores
    places, apart = nearest(values[rest], values[known_idx], min(k, len(known_idx)), progress=progress)
    for name, scores in known_scores.items():
        all_scores[name][rest] = carried(scores, places, apart)
    return all_scores


def carried(scores: FloatArray, places: IntArray, apart: FloatArray) -> FloatArray:
    """(N,) means of ``scores`` (M,) at the neighbours' ``places``, by closeness; places and distances are (N, k).

    >>> carried(np.array([1.0, 5.0]), np.array([[0, 1]]), np.array([[2.0, 2.0]])).tolist()
    [3.0]
    """
    weights = closeness(apart)
    weights /= weights.sum(axis=1, keepdims=True)
    return (weights * np.asarray(scores)[places]).sum(axis=1)


def choose_k(
    values: np.ndarray,
    scores: FloatArray,
    *,
    among: Sequence[int] = NEIGHBOURS,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> int:
    """The number of neighbours that carries known ``scores`` (M,) best to known images with features ``values`` (M, D)
    that are left out, a fifth at a time, by rank correlation. The subset of the original paper had far more images, for
    which it chose among 10 and more. Neighbours are looked for once per fifth; fewer are the first of more."""
    parts = np.array_split(rng.permutation(len(scores)), FOLDS)
    fitting = [k for k in among if k <= len(scores) * (FOLDS - 1) // FOLDS]
    if len(scores) < 2 * FOLDS or not np.ptp(scores) or not fitting:
        return among[0]
    guessed = {k: np.empty(len(scores)) for k in fitting}
    for number, held in enumerate(parts):
        others = np.setdiff1d(np.arange(len(scores)), held)
        places, apart = nearest(values[held], values[others], max(fitting), progress=progress)
        for k in fitting:
            guessed[k][held] = carried(scores[others], places[:, :k], apart[:, :k])
        if progress is not None:
            progress.report(number + 1, FOLDS, unit="parts", stage="number of neighbours")

    def agreement(k: int) -> float:
        both = pd.DataFrame({"guessed": guessed[k], "scores": scores})
        return float(both.corr("spearman").iloc[0, 1]) if np.ptp(guessed[k]) else -1.0

    return max(fitting, key=agreement)


def closeness(apart: FloatArray) -> FloatArray:
    """exp(-distance) in units of the mean distance; 1 where all distances are 0.

    >>> closeness(np.array([[0.0, 2.0]])).round(4).tolist()
    [[1.0, 0.1353]]
    """
    scale = float(np.mean(apart, dtype=np.float64)) or 1.0
    return np.exp(-np.asarray(apart, dtype=np.float64) / scale)
