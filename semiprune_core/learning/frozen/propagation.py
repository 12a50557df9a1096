"""Label propagation: labels flow along the graph of nearest neighbours (Zhou et al. 2004).

``F = (1 - alpha) (I - alpha S)^-1 Y``, with S the symmetrically normalised graph and Y one row of ones per label.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from semiprune_core.records import FloatArray, IntArray

STEPS = 25
SHARPNESS = 3.0
"""Exponent on the cosine: near neighbours count for more."""


def neighbour_graph(places: IntArray, cosines: FloatArray, *, sharpness: float = SHARPNESS) -> sparse.csr_array:
    """(N, N) symmetric, normalised, without loops, from the neighbours (N, k) of each image and their cosines."""
    n, k = places.shape
    weights = np.maximum(cosines.astype(np.float64), 0) ** sharpness
    edges = sparse.csr_array((weights.ravel(), places.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    edges = edges + edges.T
    degree = np.asarray(edges.sum(1)).ravel()
    scale = sparse.diags_array(1 / np.sqrt(np.where(degree > 0, degree, 1)))
    graph = (scale @ edges @ scale).tocsr().astype(np.float32)
    graph.sort_indices()
    return graph


def propagate(graph: sparse.csr_array, sources: FloatArray, *, alpha: float, steps: int = STEPS) -> FloatArray:
    """(N, M) what arrives everywhere from ``sources`` (N, M); each column flows on its own."""
    begin = np.asarray(sources, dtype=np.float32)
    flow = begin.copy()
    for _ in range(steps):
        flow = alpha * (graph @ flow) + (1 - alpha) * begin
    return flow
