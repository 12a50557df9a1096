"""Nearest neighbours, exactly and in blocks: one matrix product per block, nothing of size N x N is kept."""

from __future__ import annotations

import numpy as np

from semiprune_core.checks import check_range
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import FloatArray, IntArray

CELLS = 1 << 24  # distances looked at in one block: 64 MB
BLOCK = 4096


def nearest(
    queries: np.ndarray, among: np.ndarray, k: int, *, itself: bool = True, progress: Progress | None = None
) -> tuple[IntArray, FloatArray]:
    """Places and distances (N, k) of the ``k`` nearest rows of ``among`` (M, D) for each of ``queries`` (N, D).

    Euclidean, nearest first. With ``itself`` off, row i of ``among`` is no neighbour of query i (for queries that are
    ``among`` itself).

    >>> line = np.array([[0.0], [1.0], [3.0]])
    >>> nearest(line, line, 1, itself=False)[0].ravel().tolist()
    [1, 0, 1]
    """
    n, m = len(queries), len(among)
    check_range("k", k, low=1, high=m if itself else m - 1)
    others = np.asarray(among, dtype=np.float32)
    squares = np.einsum("md,md->m", others, others)
    places, distances = np.empty((n, k), np.int64), np.empty((n, k), np.float32)
    block = max(1, CELLS // max(m, 1))
    for start in range(0, n, block):
        if progress is not None:
            if progress.should_stop():
                raise Stopped
            progress.report(start, n, unit="images", stage="neighbours")
        part = np.asarray(queries[start : start + block], dtype=np.float32)
        rows = np.arange(len(part))
        far = squares - 2 * (part @ others.T)  # squared distances, each row off by its own constant
        if not itself:
            far[rows, start + rows] = np.inf
        near = np.sort(np.argpartition(far, k - 1, axis=1)[:, :k], axis=1)
        apart = np.take_along_axis(far, near, 1) + np.einsum("bd,bd->b", part, part)[:, None]
        order = np.argsort(apart, axis=1, kind="stable")
        places[start : start + len(part)] = np.take_along_axis(near, order, 1)
        distances[start : start + len(part)] = np.sqrt(np.maximum(np.take_along_axis(apart, order, 1), 0))
    return places, distances
