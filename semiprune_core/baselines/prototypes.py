"""Self-supervised prototypicality (Sorscher et al. 2022, arXiv:2206.14486).

k-means in an embedding; the difficulty of an image is its cosine distance to the nearest centroid. Images far from
every prototype are the hard ones, and at little pruning the ones worth keeping.
"""

from __future__ import annotations

import math

import numpy as np

from semiprune_core import streams
from semiprune_core.baselines.neighbours import BLOCK
from semiprune_core.errors import InvalidDataError
from semiprune_core.learning.frozen.neighbours import unit_rows
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import FloatArray
from semiprune_core.streams import Purpose

MANY = 200_000
"""Above this many images k-means learns from batches in PASSES over the pool, instead of all images in each round."""
BATCH, PASSES = 10_000, 5


def prototypicality(
    values: np.ndarray, *, n_clusters: int, seed: int, n_starts: int = 10, progress: Progress | None = None
) -> FloatArray:
    """(N,) float64 cosine distance in [0, 2] of each row of ``values`` (N, D) to the nearest k-means centroid.

    The clusters are those of the rows scaled to length 1, the best of ``n_starts`` runs from k-means++ starts: the one
    with the least sum of squared distances. A row of zeros, such as a black image, has no direction: it takes no part
    and gets the median distance, neither hard nor easy.
    """
    blank = ~np.any(values, axis=1)
    if (n_seen := int((~blank).sum())) < n_clusters:
        there = f"{n_seen} images that are not blank" if blank.any() else f"{n_seen} images"
        raise InvalidDataError(f"There are {there} for {n_clusters} clusters. Ask for fewer clusters.")
    rows = unit_rows(values[~blank] if blank.any() else values)
    fit = _in_batches if len(rows) > MANY else _at_once
    least = math.inf
    best: FloatArray = np.empty(0)
    for number in range(n_starts):
        _go_on(progress, number, n_starts)
        start = streams.derived(seed, Purpose.CLUSTERS, number, bits=32)
        inertia, centroids = fit(rows, n_clusters, start, progress)
        if inertia < least:
            least, best = inertia, centroids
    distances = np.empty(len(values))
    distances[~blank] = to_nearest(rows, best)
    distances[blank] = np.median(distances[~blank])
    return distances


def _at_once(rows: FloatArray, n_clusters: int, seed: int, progress: Progress | None) -> tuple[float, FloatArray]:
    """Inertia and centroids (K, D) of Lloyd's k-means from one start."""
    from sklearn.cluster import KMeans

    model = KMeans(n_clusters, n_init=1, random_state=seed, copy_x=False).fit(rows)  # centred in place, and back
    return float(model.inertia_), model.cluster_centers_


def _in_batches(rows: FloatArray, n_clusters: int, seed: int, progress: Progress | None) -> tuple[float, FloatArray]:
    """The same by mini-batch k-means (Sculley 2010), which looks for a stop before each batch."""
    from sklearn.cluster import MiniBatchKMeans

    n, size, rng = len(rows), max(BATCH, 3 * n_clusters), streams.rng(seed, Purpose.CLUSTER_BATCHES)
    model = MiniBatchKMeans(n_clusters, n_init=1, batch_size=size, random_state=seed)
    for _ in range(PASSES):
        order = rng.permutation(n)
        for start in range(0, n, size):
            _go_on(progress)
            model.partial_fit(rows[order[start : start + size]])
    inertia = sum(-model.score(rows[start : start + size]) for start in range(0, n, size))
    return float(inertia), model.cluster_centers_


def _go_on(progress: Progress | None, done: int | None = None, total: int = 0) -> None:
    if progress is None:
        return
    if progress.should_stop():
        raise Stopped
    if done is not None:
        progress.report(done, total, unit="starts", stage="k-means")


def to_nearest(rows: FloatArray, centroids: FloatArray) -> FloatArray:
    """(N,) cosine distance of each row (N, D) to the nearest of ``centroids`` (K, D).

    >>> to_nearest(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[3.0, 0.0]])).tolist()
    [0.0, 1.0]
    """
    likeness, towards = np.empty(len(rows)), unit_rows(centroids).T
    for start in range(0, len(rows), BLOCK):
        cosines = unit_rows(rows[start : start + BLOCK]) @ towards
        likeness[start : start + BLOCK] = np.clip(cosines.max(axis=1), -1, 1)
    return 1 - likeness
