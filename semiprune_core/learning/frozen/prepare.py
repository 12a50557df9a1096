"""Features made ready for heads: one scale for all encoders, the graph of neighbours, the mean of the neighbours."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from semiprune_core.errors import InvalidDataError
from semiprune_core.learning.frozen.neighbours import nearest, unit_rows
from semiprune_core.learning.frozen.propagation import neighbour_graph, propagate
from semiprune_core.learning.frozen.results import Views
from semiprune_core.learning.frozen.settings import FrozenSettings
from semiprune_core.learning.threads import one_thread
from semiprune_core.progress import Progress
from semiprune_core.records import FloatArray

TINY = 1e-6
DULL = 1e-4
"""A dimension that changes less than this, beside the liveliest, is rounding."""
SAMPLE = 3_000
"""Images that main directions are taken from, evenly spread over the pool."""
WIDTH = 512
"""Main directions that a linear head sees: as good as all (docs/frozen.md), a tenth of the memory of two encoders."""
BLOCK = 4096
OWN = 0.5
"""How far an image's own features, less the mean of its views, count beside that mean. A mirrored sign is another sign:
the mean alone could not tell it from its like."""
ROUNDING = 1e-12
"""Directions whose square is smaller than this part of the largest are what rounding left."""
SPARE, ROUNDS = 32, 3
"""Directions beyond those asked for, and multiplications, in the search for main directions."""


@dataclass(frozen=True, eq=False)
class FrozenPool:
    """``rows`` (N, D) what a linear head sees, ``strong`` (V, N, D) the same of strong views, ``graph`` (N, N).

    ``kernel`` (N, N) is what arrives at each image from each other one; only small pools that are fitted many times
    have it, see :meth:`with_kernel`.
    """

    rows: FloatArray
    strong: FloatArray
    graph: sparse.csr_array
    kernel: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def with_kernel(self, alpha: float) -> FrozenPool:
        """The same pool, on which labels flow at once: for a few thousand images and many fits at one ``alpha``."""
        kernel = propagate(self.graph, np.eye(len(self), dtype=np.float32), alpha=alpha)
        return dataclasses.replace(self, kernel=kernel)


@dataclass(frozen=True, eq=False)
class Scaling:
    """Signed root, length 1, each dimension less its mean and divided by its deviation; mean square length 1.

    The root tames the few dimensions that a picture lights up. A dimension that never changes is left out.
    """

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, features: np.ndarray, weak: np.ndarray | None = None) -> Scaling:
        """Of ``features`` (N, D), averaged with the views ``weak`` (V, N, D), block by block."""
        n, total = len(features), np.zeros((2, features.shape[1]))
        for block in _blocks(n):
            rows = _averaged(rooted(features[block]), weak, block).astype(np.float64)
            total += rows.sum(0), (rows * rows).sum(0)
        mean = total[0] / max(n, 1)
        deviation = np.sqrt(np.maximum(total[1] / max(n, 1) - mean * mean, 0))
        alive = deviation > DULL * max(float(deviation.max(initial=0)), TINY)
        scale = np.where(alive, 1 / np.where(alive, deviation, 1), 0) / np.sqrt(max(int(alive.sum()), 1))
        return cls(mean.astype(np.float32), scale.astype(np.float32))

    def __call__(self, features: FloatArray) -> FloatArray:
        return self.rooted(rooted(features))

    def rooted(self, rows: FloatArray) -> FloatArray:
        return (rows - self.mean) * self.scale


def rooted(features: np.ndarray) -> FloatArray:
    """(N, D) float32: signed roots, of length 1."""
    values = np.asarray(features, np.float32)
    rows = np.sign(values) * np.sqrt(np.abs(values))
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY)


def prepare_pool(
    features: np.ndarray | Sequence[np.ndarray],
    settings: FrozenSettings,
    *,
    views: Views | Sequence[Views] | None = None,
    progress: Progress | None = None,
) -> FrozenPool:
    """From features (N, D) of one encoder, or a list of them of several, to what heads are fitted on.

    ``views`` belong to the features, one to each encoder.
    """
    encoders = [features] if isinstance(features, np.ndarray) else list(features)
    beside = [views] if isinstance(views, Views) else list(views or [Views()] * len(encoders))
    _check(encoders, beside)
    n = len(encoders[0])
    scalings = [Scaling.of(mine, extra.weak) for mine, extra in zip(encoders, beside, strict=True)]
    share = np.float32(1 / np.sqrt(len(encoders)))

    def scaled(where: Any, strong: int | None = None) -> FloatArray:
        """Rows of the images at ``where``, of all encoders side by side; those of a strong view where one is given."""
        parts = []
        for mine, extra, scaling in zip(encoders, beside, scalings, strict=True):
            own = rooted(mine[where])
            mean = _averaged(own, extra.weak, where)
            seen = mean if strong is None or extra.strong is None else rooted(extra.strong[strong][where])
            parts.append(scaling.rooted(seen))
            if extra.weak is not None:
                parts.append((own - mean) * (OWN * scaling.scale))
        return np.hstack(parts) * share

    def coordinates(strong: int | None = None) -> FloatArray:
        out = np.empty((n, width), np.float32)
        for block in _blocks(n):
            part = scaled(block, strong)
            out[block] = part if axes is None else part @ axes
        return out

    axes = main_axes(scaled(slice(None, None, max(1, n // SAMPLE))), WIDTH)
    width = scaled(slice(0, 1)).shape[1] if axes is None else axes.shape[1]
    rows = coordinates()
    main = main_directions(rows, settings.directions) if axes is None else rows[:, -settings.directions :]
    graph = neighbour_graph(*nearest(unit_rows(main), settings.n_neighbours, progress=progress))
    means = neighbour_means(graph, rows) if settings.smooth else rows[:, :0]
    half = np.float32(np.sqrt(0.5) if settings.smooth else 1)
    n_strong = min(0 if extra.strong is None else len(extra.strong) for extra in beside)
    stronger = np.zeros((n_strong, n, width + means.shape[1]), np.float32)
    for view in range(n_strong):
        stronger[view] = np.hstack([coordinates(view), means]) * half
    return FrozenPool(np.hstack([rows, means]) * half, stronger, graph)


def main_directions(rows: FloatArray, n: int) -> FloatArray:
    """(N, n) coordinates along the ``n`` directions in which the pool is longest; as it is where it has no more."""
    axes = main_axes(rows[:: max(1, len(rows) // SAMPLE)], n)
    return rows if axes is None else rows @ axes


@one_thread()
def main_axes(sample: FloatArray, n: int) -> FloatArray | None:
    """(D, n) the directions in which ``sample`` (m, D) is longest, longest last; None where it has no more than ``n``.

    They are found by repeated multiplication of a few more random directions (Halko et al. 2011): the exact answer
    takes the cube of the number of dimensions, which several encoders make large. On one thread: beside another
    process two of them take thirty times the time of one for the small matrices here.
    """
    if min(sample.shape) <= n:
        return None
    found = np.random.default_rng(0).standard_normal((sample.shape[1], min(n + SPARE, *sample.shape)), np.float32)
    for _ in range(ROUNDS):
        found = orthonormal(sample.T @ (sample @ found))
    shadows = (sample @ found).astype(np.float64)
    _, turned = np.linalg.eigh(shadows.T @ shadows)
    return found @ turned[:, -n:].astype(np.float32)


def orthonormal(columns: FloatArray) -> FloatArray:
    """Columns at right angles and of length 1 that span what ``columns`` (D, k) do, as far as they differ.

    By way of their products, which takes a fraction of the time of numpy's QR where D is large.
    """
    exact = columns.astype(np.float64)
    squares, turned = np.linalg.eigh(exact.T @ exact)
    own = squares > ROUNDING * max(float(squares.max(initial=0)), TINY)
    return (exact @ (turned[:, own] / np.sqrt(squares[own]))).astype(np.float32)


def neighbour_means(graph: sparse.csr_array, rows: FloatArray) -> FloatArray:
    """(N, D) the mean of each image's neighbours, weighted as the graph is, at mean square length 1."""
    weight = np.asarray(graph.sum(1)).ravel()
    means = (sparse.diags_array(1 / np.where(weight > 0, weight, 1)) @ graph) @ rows
    return (means / max(float(np.sqrt((means * means).sum(1).mean())), TINY)).astype(np.float32)


def _averaged(own: FloatArray, weak: np.ndarray | None, where: Any) -> FloatArray:
    if weak is None:
        return own
    mean = own.copy()
    for view in weak:
        mean += rooted(view[where])
    return mean / np.float32(1 + len(weak))


def _blocks(n: int) -> list[slice]:
    return [slice(start, start + BLOCK) for start in range(0, n, BLOCK)]


def _check(encoders: Sequence[np.ndarray], views: Sequence[Views]) -> None:
    if len(views) != len(encoders):
        raise InvalidDataError(f"There are {len(encoders)} sets of features but views of {len(views)}.")
    n = len(encoders[0])
    for features, extra in zip(encoders, views, strict=True):
        if features.ndim != 2 or len(features) != n:
            raise InvalidDataError(f"Features have shape {features.shape}, expected ({n}, dimensions).")
        if not np.isfinite(features).all():
            raise InvalidDataError("The features hold values that are not finite. Make them again.")
        for name, others in (("weak", extra.weak), ("strong", extra.strong)):
            if others is not None and others.shape[1:] != features.shape:
                raise InvalidDataError(f"{name} views have shape {others.shape}, expected (views, {n}, dimensions).")
