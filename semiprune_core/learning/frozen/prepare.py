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
SAMPLE = 8_000
"""Images that main directions are taken from, evenly spread over the pool."""
OWN = 0.5
"""How far an image's own features, less the mean of its views, count beside that mean. A mirrored sign is another sign:
the mean alone could not tell it from its like."""
SPARE, ROUNDS = 32, 4
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
    def of(cls, features: FloatArray) -> Scaling:
        return cls.of_rooted(rooted(features))

    @classmethod
    def of_rooted(cls, rows: FloatArray) -> Scaling:
        deviation = rows.std(0, dtype=np.float64)
        alive = deviation > TINY * max(float(deviation.max(initial=0)), TINY)
        scale = np.where(alive, 1 / np.where(alive, deviation, 1), 0) / np.sqrt(max(int(alive.sum()), 1))
        return cls(rows.mean(0, dtype=np.float64).astype(np.float32), scale.astype(np.float32))

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
    plain, strong = [], []
    for mine, extra in zip(encoders, beside, strict=True):
        own = rooted(mine)
        mean = _averaged(own, extra.weak)
        scaling = Scaling.of_rooted(mean)
        beyond = [] if extra.weak is None else [(own - mean) * (OWN * scaling.scale)]
        plain.append(np.hstack([scaling.rooted(mean), *beyond]))
        others = () if extra.strong is None else extra.strong
        strong.append([np.hstack([scaling(view), *beyond]) for view in others])
    share = np.float32(1 / np.sqrt(len(encoders)))
    rows = np.hstack(plain) * share
    graph = neighbour_graph(
        *nearest(unit_rows(main_directions(rows, settings.directions)), settings.n_neighbours, progress=progress)
    )
    means = neighbour_means(graph, rows) if settings.smooth else rows[:, :0]
    half = np.float32(np.sqrt(0.5) if settings.smooth else 1)
    n_strong = min(len(part) for part in strong)
    stronger = [
        np.hstack([part[v] for part in strong] + ([means / share] if settings.smooth else [])) for v in range(n_strong)
    ]
    stacked = np.stack(stronger) * (share * half) if stronger else np.zeros((0, len(rows), 0), np.float32)
    return FrozenPool(np.hstack([rows, means]) * half, stacked, graph)


def main_directions(rows: FloatArray, n: int) -> FloatArray:
    """(N, n) coordinates along the ``n`` directions in which the pool is longest; as it is where it has no more.

    They are found by repeated multiplication of a few more random directions (Halko et al. 2011): the exact answer
    takes the cube of the number of dimensions, which two layers of two encoders make large.
    """
    if min(rows.shape) <= n:
        return rows
    sample = rows[:: max(1, len(rows) // SAMPLE)]
    found = np.random.default_rng(0).standard_normal((rows.shape[1], min(n + SPARE, *rows.shape)), np.float32)
    for _ in range(ROUNDS):
        found = np.linalg.qr(sample.T @ (sample @ found))[0]
    shadows = (sample @ found).astype(np.float64)
    _, turned = np.linalg.eigh(shadows.T @ shadows)
    return rows @ (found @ turned[:, -n:].astype(np.float32))


def neighbour_means(graph: sparse.csr_array, rows: FloatArray) -> FloatArray:
    """(N, D) the mean of each image's neighbours, weighted as the graph is, at mean square length 1."""
    weight = np.asarray(graph.sum(1)).ravel()
    means = (sparse.diags_array(1 / np.where(weight > 0, weight, 1)) @ graph) @ rows
    return (means / max(float(np.sqrt((means * means).sum(1).mean())), TINY)).astype(np.float32)


def _averaged(own: FloatArray, weak: FloatArray | None) -> FloatArray:
    mean = own.copy()
    if weak is not None:
        for view in weak:
            mean += rooted(view)
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
