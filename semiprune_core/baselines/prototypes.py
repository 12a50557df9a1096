"""Self-supervised prototypicality (Sorscher et al. 2022, arXiv:2206.14486).

k-means in an embedding; the difficulty of an image is its cosine distance to the nearest centroid. Images far from
every prototype are the hard ones, and at little pruning the ones worth keeping.
"""

from __future__ import annotations

import numpy as np

from semiprune_core.baselines.neighbours import unit_length
from semiprune_core.errors import InvalidDataError
from semiprune_core.records import FloatArray


def prototypicality(values: np.ndarray, *, n_clusters: int, seed: int, n_starts: int = 10) -> FloatArray:
    """(N,) float64 cosine distance in [0, 2] of each row of ``values`` (N, D) to the nearest k-means centroid.

    The clusters are those of the rows scaled to length 1, the best of ``n_starts`` runs from k-means++ starts.
    """
    if len(values) < n_clusters:
        raise InvalidDataError(f"There are {len(values)} images for {n_clusters} clusters. Ask for fewer clusters.")
    from sklearn.cluster import KMeans

    rows = unit_length(values)
    model = KMeans(n_clusters, n_init=n_starts, random_state=seed).fit(rows)
    return to_nearest(rows, model.cluster_centers_)


def to_nearest(rows: FloatArray, centroids: FloatArray) -> FloatArray:
    """(N,) cosine distance of each row (N, D) to the nearest of ``centroids`` (K, D).

    >>> to_nearest(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[3.0, 0.0]])).tolist()
    [0.0, 1.0]
    """
    likeness = unit_length(rows) @ unit_length(centroids).T
    return 1 - np.clip(likeness.max(axis=1), -1, 1).astype(np.float64)
