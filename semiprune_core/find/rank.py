"""Cosines of features with one row, exactly and in blocks, and the order they make."""

from __future__ import annotations

import numpy as np

from semiprune_core.records import FloatArray, IntArray

BLOCK = 1024


def lengths(features: np.ndarray) -> FloatArray:
    """(N,) the length of each row of ``features`` (N, D), float16 or float32, maybe memory-mapped."""
    found = np.empty(len(features), np.float32)
    for start in range(0, len(features), BLOCK):
        rows = np.asarray(features[start : start + BLOCK], np.float32)
        found[start : start + len(rows)] = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    return found


def cosines(features: np.ndarray, query: np.ndarray, row_lengths: FloatArray | None = None) -> FloatArray:
    """(N,) cosine of each row with ``query`` (D,); a row of zeros is like nothing, 0.

    ``row_lengths`` are those of :func:`lengths`, where they are known already.
    """
    wanted = np.asarray(query, np.float32)
    scale = (lengths(features) if row_lengths is None else row_lengths) * np.linalg.norm(wanted)
    products = np.empty(len(features), np.float32)
    for start in range(0, len(features), BLOCK):
        rows = np.asarray(features[start : start + BLOCK], np.float32)
        products[start : start + len(rows)] = rows @ wanted
    return np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)


def most_alike(likeness: FloatArray, among: IntArray | None = None, *, most: int | None = None) -> IntArray:
    """Positions (of ``among``, or all) from the most alike on, at most ``most``; of equal ones the earlier first.

    >>> most_alike(np.array([0.1, 0.9, 0.5, 0.9]), most=3).tolist()
    [1, 3, 2]
    """
    positions = np.arange(len(likeness)) if among is None else np.sort(among)
    values = likeness[positions]
    if most is not None and 0 < most < len(values):
        edge = np.partition(values, len(values) - most)[len(values) - most]
        positions, values = positions[values >= edge], values[values >= edge]
    return positions[np.argsort(-values, kind="stable")][:most]
