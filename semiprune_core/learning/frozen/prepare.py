"""Features made ready for heads: one scale for all encoders, the graph of neighbours, the mean of the neighbours."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from semiprune_core.errors import InvalidDataError
from semiprune_core.learning.frozen.neighbours import nearest, unit_rows
from semiprune_core.learning.frozen.propagation import neighbour_graph, propagate
from semiprune_core.learning.frozen.results import Views
from semiprune_core.learning.frozen.settings import FrozenSettings
from semiprune_core.progress import Progress
from semiprune_core.records import FloatArray

TINY = 1e-6
SAMPLE = 20_000
"""Images that main directions are taken from, evenly spread over the pool."""


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
    def of(cls, features: FloatArray) -> Scaling:
        rows = _rooted(features)
        deviation = rows.std(0, dtype=np.float64)
        alive = deviation > TINY * max(float(deviation.max(initial=0)), TINY)
        scale = np.where(alive, 1 / np.where(alive, deviation, 1), 0) / np.sqrt(max(int(alive.sum()), 1))
        return cls(rows.mean(0, dtype=np.float64).astype(np.float32), scale.astype(np.float32))

    def __call__(self, features: FloatArray) -> FloatArray:
        return (_rooted(features) - self.mean) * self.scale


def _rooted(features: FloatArray) -> FloatArray:
    rows = np.sign(features) * np.sqrt(np.abs(features))
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
    plain, strong = [], []
    for mine, extra in zip(encoders, beside, strict=True):
        mean = _averaged(mine, extra.weak)
        scaling = Scaling.of(mean)
        plain.append(scaling(mean))
        strong.append(
            [scaling(np.asarray(view, np.float32)) for view in extra.strong] if extra.strong is not None else []
        )
    share = np.float32(1 / np.sqrt(len(encoders)))
    rows = np.hstack(plain) * share
    graph = neighbour_graph(
        *nearest(unit_rows(main_directions(rows, settings.directions)), settings.n_neighbours, progress=progress)
    )
    means = neighbour_means(graph, rows) if settings.smooth else rows[:, :0]
    half = np.float32(np.sqrt(0.5) if settings.smooth else 1)
    n_strong = min(len(part) for part in strong)
    others = [
        np.hstack([part[v] for part in strong] + ([means / share] if settings.smooth else [])) for v in range(n_strong)
    ]
    stacked = np.stack(others) * (share * half) if others else np.zeros((0, len(rows), 0), np.float32)
    return FrozenPool(np.hstack([rows, means]) * half, stacked, graph)


def main_directions(rows: FloatArray, n: int) -> FloatArray:
    """(N, n) coordinates along the ``n`` directions in which the pool is longest; as it is where it has no more."""
    if min(rows.shape) <= n:
        return rows
    sample = rows[:: max(1, len(rows) // SAMPLE)].astype(np.float64)
    _, vectors = np.linalg.eigh(sample.T @ sample)
    return rows @ vectors[:, -n:].astype(np.float32)


def neighbour_means(graph: sparse.csr_array, rows: FloatArray) -> FloatArray:
    """(N, D) the mean of each image's neighbours, weighted as the graph is, at mean square length 1."""
    weight = np.asarray(graph.sum(1)).ravel()
    means = (sparse.diags_array(1 / np.where(weight > 0, weight, 1)) @ graph) @ rows
    return (means / max(float(np.sqrt((means * means).sum(1).mean())), TINY)).astype(np.float32)


def _averaged(features: np.ndarray, weak: FloatArray | None) -> FloatArray:
    mean = np.array(features, dtype=np.float32)
    if weak is not None:
        for view in weak:
            mean += view
        mean /= 1 + len(weak)
    return mean


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
