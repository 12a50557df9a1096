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
from semiprune_core.learning.frozen.neighbours import cosine_blocks, largest
from semiprune_core.learning.frozen.prepare import orthonormal
from semiprune_core.learning.threads import one_thread
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import FloatArray, IntArray
from semiprune_core.registry import Registry
from semiprune_core.streams import Purpose

BLOCK = 8192
WIDE = 512
"""Features with more dimensions than this have their main axes searched for, not all of them computed."""
SPARE, ROUNDS = 32, 6
"""Directions beyond those asked for, and multiplications, in that search."""
SPREAD_DIMENSIONS = 64
"""Wider features are first reduced to this many principal components; neighbours hardly change, hours do."""
EXACT = range(4096, 20_001)
"""Pools of so many images get their exact neighbours from us, in seconds. In smaller ones UMAP finds them itself; in
larger ones its approximate search is quicker, though half a minute goes into compiling it."""
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
    mean, axes = _exact_axes(values, progress) if d <= WIDE else _main_axes(values, k, progress)
    axes = axes[:, ::-1][:, :k]
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(k)])
    projected = np.empty((n, k), dtype=np.float32)
    for start in range(0, n, BLOCK):
        _go_on(progress, n + start, 2 * n)
        projected[start : start + BLOCK] = (np.asarray(values[start : start + BLOCK], dtype=np.float64) - mean) @ axes
    return projected


def _exact_axes(values: np.ndarray, progress: Progress | None) -> tuple[FloatArray, FloatArray]:
    """(D,) the mean and (D, D) all principal axes, longest last."""
    n, d = values.shape
    total, second = np.zeros(d), np.zeros((d, d))
    for start in range(0, n, BLOCK):
        _go_on(progress, start, 2 * n)
        part = np.asarray(values[start : start + BLOCK], dtype=np.float64)
        total += part.sum(0)
        second += part.T @ part
    mean = total / n
    return mean, np.linalg.eigh(second / n - np.outer(mean, mean))[1]


@one_thread()
def _main_axes(values: np.ndarray, k: int, progress: Progress | None) -> tuple[FloatArray, FloatArray]:
    """(D,) the mean and (D, about k) the longest principal axes, longest last, by repeated multiplication of a few more
    directions (Halko et al. 2011): all of thousands take their square in memory and half a minute."""
    n, d = values.shape
    blocks = [slice(start, start + BLOCK) for start in range(0, n, BLOCK)]
    mean = sum((np.asarray(values[block], dtype=np.float64).sum(0) for block in blocks), np.zeros(d)) / n
    middle = mean.astype(np.float32)
    axes = np.random.default_rng(0).standard_normal((d, min(k + SPARE, n, d))).astype(np.float32)
    shadows = np.zeros((axes.shape[1], axes.shape[1]))
    for number in range(ROUNDS + 1):
        axes = orthonormal(axes)  # fewer, where the features do not differ in as many directions
        product = np.zeros_like(axes)
        shadows = np.zeros((axes.shape[1], axes.shape[1]))
        for block in blocks:
            _go_on(progress, number * n // (ROUNDS + 1), 2 * n)
            part = np.asarray(values[block], dtype=np.float32) - middle
            along = part @ axes
            product += part.T @ along
            shadows += (along.T @ along).astype(np.float64)
        if number < ROUNDS:
            axes = product
    found = axes.astype(np.float64) @ np.linalg.eigh(shadows)[1]
    return mean, np.hstack([np.zeros((d, max(0, k - found.shape[1]))), found])


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

    values = np.asarray(_narrow(values, 2 * SPREAD_DIMENSIONS, progress), dtype=np.float32)
    n_neighbors = min(n_neighbors, len(values) - 1)
    bar = _Bar(r"(\d+)/(\d+)", progress)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "precomputed_knn", UserWarning)  # no search index: nothing is placed later
        model = UMAP(
            n_neighbors=n_neighbors,
            min_dist=min_dist,
            init="pca",
            random_state=seed,
            n_jobs=1,
            precomputed_knn=_neighbours(values, n_neighbors, progress) if len(values) in EXACT else (None, None, None),
            tqdm_kwds={"disable": False, "file": bar, "bar_format": "{n_fmt}/{total_fmt}\n", "mininterval": 0.2},
        )
        return model.fit_transform(values).astype(np.float32)


def _neighbours(values: FloatArray, k: int, progress: Progress | None) -> tuple[IntArray, FloatArray, None]:
    """Positions and distances (N, k) of the nearest rows as UMAP wants them: each row comes first among its own."""
    values = values - values.mean(0)
    squares = np.einsum("nd,nd->n", values, values)
    places, distances = np.empty((len(values), k), np.int64), np.empty((len(values), k), np.float32)
    for first, products in cosine_blocks(values, progress=progress):
        rows = np.arange(first, first + len(products))
        nearness = 2 * products - squares  # less the square of the row itself, which is the same for all its neighbours
        nearness[rows - first, rows] = np.inf
        places[rows], _ = largest(nearness, k)
        gaps = values[rows][:, None] - values[places[rows]]
        distances[rows] = np.sqrt(np.einsum("nkd,nkd->nk", gaps, gaps))
    return places, distances, None


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
