"""Nearest neighbours by cosine, exactly and in blocks: nothing of size N x N is ever held."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import FloatArray, IntArray

CELLS = 1 << 24
"""Cosines looked at in one block: 64 MB."""
BLOCK = 4096


def unit_rows(values: np.ndarray) -> FloatArray:
    """(N, D) float32 rows of length 1; a row of zeros stays. Block by block: nothing else is of their size."""
    rows = np.empty(values.shape, dtype=np.float32)
    for start in range(0, len(rows), BLOCK):
        part = rows[start : start + BLOCK]
        part[...] = values[start : start + BLOCK]
        length = np.linalg.norm(part, axis=1, keepdims=True)
        part /= np.where(length > 0, length, 1)
    return rows


def nearest(rows: FloatArray, k: int, *, progress: Progress | None = None) -> tuple[IntArray, FloatArray]:
    """Positions and cosines (N, k) of the ``k`` rows most like each of ``rows`` (N, D, of length 1), itself left out.

    Nearest first; equal ones in their order.
    """
    n = len(rows)
    k = min(k, n - 1)
    places, cosines = np.empty((n, k), np.int64), np.empty((n, k), np.float32)
    for first, likeness in cosine_blocks(rows, progress=progress):
        mine = np.arange(len(likeness))
        likeness[mine, first + mine] = -np.inf
        places[first + mine], cosines[first + mine] = largest(likeness, k)
    return places, cosines


def largest(likeness: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """Columns and values (n, k) of each row's ``k`` largest in (n, N): largest first, equal ones in their order."""
    near = np.sort(np.argpartition(likeness, -k, axis=1)[:, -k:], axis=1)
    value = np.take_along_axis(likeness, near, 1)
    order = np.argsort(-value, axis=1, kind="stable")
    return np.take_along_axis(near, order, 1), np.take_along_axis(value, order, 1)


def cosine_blocks(rows: FloatArray, *, progress: Progress | None = None) -> Iterator[tuple[int, FloatArray]]:
    """Blocks of the matrix of all cosines: the first row's position, and (block, N) values that may be overwritten."""
    n = len(rows)
    block = max(1, CELLS // max(n, 1))
    for first in range(0, n, block):
        if progress is not None:
            if progress.should_stop():
                raise Stopped
            progress.report(first, n, unit="images", stage="neighbours")
        yield first, rows[first : first + block] @ rows.T
