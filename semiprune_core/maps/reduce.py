"""From (N, D) features to two dimensions: PCA at once, UMAP or t-SNE with patience. Seeded: same in, same out."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable

import numpy as np

from semiprune_core import streams
from semiprune_core.errors import InvalidDataError
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import FloatArray
from semiprune_core.registry import Registry
from semiprune_core.streams import Purpose

BLOCK = 8192
SPREAD_DIMENSIONS = 64
"""Wider features are first reduced to this many principal components; neighbours hardly change, hours do."""
FEWEST = 10
"""Below this many images a map means nothing and neighbours run out."""

Reducer = Callable[..., FloatArray]
REDUCERS: Registry[Reducer] = Registry("map method")


def principal_components(values: np.ndarray, k: int, progress: Progress | None = None) -> FloatArray:
    """(N, k) float32: ``values`` (N, D) on their first ``k`` principal axes, in two passes over blocks.

    The sign of each axis is fixed (its largest entry is positive), so the same features give the same picture.
    """
    n, d = values.shape
    k = min(k, n, d)
    total, second = np.zeros(d), np.zeros((d, d))
    for start in range(0, n, BLOCK):
        _go_on(progress, start, 2 * n)
        part = np.asarray(values[start : start + BLOCK], dtype=np.float64)
        total += part.sum(0)
        second += part.T @ part
    mean = total / n
    _, axes = np.linalg.eigh(second / n - np.outer(mean, mean))
    axes = axes[:, ::-1][:, :k]
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(k)])
    projected = np.empty((n, k), dtype=np.float32)
    for start in range(0, n, BLOCK):
        _go_on(progress, n + start, 2 * n)
        projected[start : start + BLOCK] = (np.asarray(values[start : start + BLOCK], dtype=np.float64) - mean) @ axes
    return projected


@REDUCERS.register("pca", title="PCA", pace="at once")
def pca(values: np.ndarray, *, seed: int = 0, progress: Progress | None = None) -> FloatArray:
    """The two directions in which the features vary most."""
    points = principal_components(values, 2, progress)
    return points if points.shape[1] == 2 else np.column_stack([points, np.zeros(len(points), np.float32)])


@REDUCERS.register("umap", title="UMAP", pace="a minute or two for 50,000 images")
def umap(
    values: np.ndarray, *, seed: int = 0, progress: Progress | None = None, n_neighbors: int = 15, min_dist: float = 0.1
) -> FloatArray:
    """UMAP (McInnes et al. 2018): neighbours stay neighbours. Begins at the principal components."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImportWarning)  # it misses Tensorflow, for a variant nobody asks for
        from umap import UMAP

    values = _narrow(values, 2 * SPREAD_DIMENSIONS, progress)
    bar = _Bar(r"(\d+)/(\d+)", progress)
    model = UMAP(
        n_neighbors=min(n_neighbors, len(values) - 1),
        min_dist=min_dist,
        init="pca",
        random_state=seed,
        n_jobs=1,
        tqdm_kwds={"disable": False, "file": bar, "bar_format": "{n_fmt}/{total_fmt}\n", "mininterval": 0.2},
    )
    return model.fit_transform(np.asarray(values, dtype=np.float32)).astype(np.float32)


@REDUCERS.register("tsne", title="t-SNE", pace="many minutes for 50,000 images")
def tsne(
    values: np.ndarray, *, seed: int = 0, progress: Progress | None = None, perplexity: float = 30.0
) -> FloatArray:
    """t-SNE (van der Maaten and Hinton 2008), Barnes-Hut, begun at the principal components."""
    from sklearn.manifold import TSNE

    values = _narrow(values, SPREAD_DIMENSIONS, progress)
    model = TSNE(
        perplexity=min(perplexity, (len(values) - 1) / 3),
        init="pca",
        random_state=seed,
        verbose=2,
        max_iter=1000,
    )
    with contextlib.redirect_stdout(_Bar(r"Iteration (\d+)", progress, total=1000)):  # its only way to tell
        return model.fit_transform(np.asarray(values, dtype=np.float32)).astype(np.float32)


def _narrow(values: np.ndarray, most: int, progress: Progress | None) -> np.ndarray:
    if len(values) < FEWEST:
        raise InvalidDataError(f"A map of neighbours needs at least {FEWEST} images, there are {len(values)}.")
    if values.shape[1] > most:
        return principal_components(values, SPREAD_DIMENSIONS, progress)
    return values


class _Bar(io.TextIOBase):
    """A stream that reads another library's progress lines and hands them on; it also carries the stop inward."""

    def __init__(self, pattern: str, progress: Progress | None, total: int | None = None) -> None:
        self.pattern, self.progress, self.total = re.compile(pattern), progress, total

    def write(self, text: str) -> int:
        told = self.pattern.search(text)
        if told and self.progress is not None:
            if self.progress.should_stop():
                raise Stopped
            total = self.total or int(told[2])
            self.progress.report(min(int(told[1]), total), total, unit="rounds", stage="map")
        return len(text)

    def writable(self) -> bool:
        return True


def _go_on(progress: Progress | None, done: int, total: int) -> None:
    if progress is None:
        return
    if progress.should_stop():
        raise Stopped
    progress.report(done, total, unit="images", stage="principal components")


def reduce(name: str, values: np.ndarray, *, seed: int, progress: Progress | None = None) -> FloatArray:
    """(N, 2) float32 by the method ``name``."""
    return REDUCERS[name](values, seed=streams.derived(seed, Purpose.MAP, bits=32), progress=progress)
