"""ZCore: zero-shot coreset selection by subspace sampling (Griffin, Marks and Corso 2024, arXiv:2411.15349).

Again and again: draw a few dimensions of the embedding, draw a point in them (each coordinate from the triangular
distribution between the smallest and the largest value with its peak at the median), and give 1 to the image that is
nearest to it (L1): it covers that region. Its own nearest images in the same subspace are redundant beside it; they
share a penalty of 1 in proportion to distance^-exponent. An image that lies exactly on the winner takes all of it.

Draws of one subspace are independent of all others, so they are taken together: an image that wins twice in a subspace
has its neighbours looked for once. Only the order of a sum differs from the definition.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from semiprune_core.baselines.neighbours import BLOCK
from semiprune_core.baselines.settings import ZCoreSettings
from semiprune_core.checks import check_range
from semiprune_core.errors import InvalidDataError
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import FloatArray, IntArray

PER_IMAGE, FEWEST_SAMPLES, MOST_SAMPLES = 20, 100_000, 1_000_000
"""The paper draws a million, which is 20 for each image of CIFAR."""
REPORT_EVERY = 256
DRAW_BLOCK = 1 << 15


def n_samples_for(n_images: int, settings: ZCoreSettings) -> int:
    """How many points are drawn: as asked, else by the size of the pool."""
    return settings.n_samples or min(max(PER_IMAGE * n_images, FEWEST_SAMPLES), MOST_SAMPLES)


def zcore_scores(
    values: np.ndarray, *, settings: ZCoreSettings, rng: np.random.Generator, progress: Progress | None = None
) -> FloatArray:
    """(N,) float64 in [0, 1], higher is worth more: the coverage and redundancy of each row of ``values`` (N, D)."""
    n, n_dimensions = values.shape
    check_range("subspace", settings.subspace, low=1, high=n_dimensions)
    if n < 2:
        raise InvalidDataError("Coverage and redundancy need at least two images.")
    columns = np.empty((n_dimensions, n), dtype=np.float32)  # a subspace is a few rows
    for start in range(0, n, BLOCK):
        columns[:, start : start + BLOCK] = values[start : start + BLOCK].T
    total: FloatArray = rng.random((n,)) if settings.random_start else np.zeros(n)
    dims, points = draw_points(columns, n_samples_for(n, settings), settings.subspace, rng)
    order = np.lexsort(dims.T[::-1])
    begins = np.flatnonzero(np.r_[True, (dims[order][1:] != dims[order][:-1]).any(axis=1)])
    for number, mine in enumerate(np.split(order, begins[1:])):
        if progress is not None and number % REPORT_EVERY == 0:
            if progress.should_stop():
                raise Stopped
            progress.report(int(begins[number]), len(order), unit="samples", stage="coverage")
        _score_subspace(columns[dims[mine[0]]], points[mine], settings, total)
    low, high = total.min(), total.max()
    return (total - low) / (high - low) if high > low else np.zeros(n)


def draw_points(
    columns: FloatArray, n_samples: int, subspace: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """``n_samples`` subspaces (S, m), their dimensions different and rising, and a point in each (S, m)."""
    n_dimensions = len(columns)
    low, high = columns.min(axis=1), columns.max(axis=1)
    peak = np.array([np.median(row) for row in columns])  # of all at once it would copy all
    dims = np.empty((n_samples, subspace), dtype=np.int64)
    points = np.empty((n_samples, subspace), dtype=np.float32)
    for start in range(0, n_samples, DRAW_BLOCK):
        part = slice(start, min(start + DRAW_BLOCK, n_samples))
        chosen = _different(n_dimensions, part.stop - part.start, subspace, rng)
        dims[part] = chosen
        points[part] = _triangular(low[chosen], peak[chosen], high[chosen], rng.random(chosen.shape))
    return dims, points


def _different(n_dimensions: int, n: int, k: int, rng: np.random.Generator) -> IntArray:
    """(n, k) rows of ``k`` different numbers below ``n_dimensions``, each such set equally likely, rising."""
    chosen = rng.integers(0, n_dimensions, (n, k))
    while True:
        chosen.sort(axis=1)
        twice = np.flatnonzero((chosen[:, 1:] == chosen[:, :-1]).any(axis=1))
        if not len(twice):
            return chosen
        if 2 * k > n_dimensions:  # drawing again would take long
            chosen[twice] = rng.permuted(np.tile(np.arange(n_dimensions), (len(twice), 1)), axis=1)[:, :k]
        else:
            chosen[twice] = rng.integers(0, n_dimensions, (len(twice), k))


def _triangular(low: FloatArray, peak: FloatArray, high: FloatArray, chance: FloatArray) -> FloatArray:
    """The triangular distribution's inverse at ``chance``; where low = high that value (numpy's own refuses it)."""
    width = np.where(high > low, high - low, 1)
    left = (peak - low) / width
    rising = low + np.sqrt(chance * width * (peak - low))
    falling = high - np.sqrt((1 - chance) * width * (high - peak))
    return np.where(high > low, np.where(chance < left, rising, falling), low)


def _score_subspace(sub: FloatArray, points: FloatArray, settings: ZCoreSettings, total: FloatArray) -> None:
    """Add what the ``points`` (s, m) drawn in the subspace ``sub`` (m, N) mean for all images to ``total`` (N,)."""
    for winner, times in Counter(int(apart_from(sub, point).argmin()) for point in points).items():
        total[winner] += times
        others, penalty = redundancy(sub, winner, settings.n_redundant, settings.exponent)
        total[others] -= times * penalty


def apart_from(sub: FloatArray, point: FloatArray) -> FloatArray:
    """(N,) L1 distance of every image to ``point`` (m,) in the subspace ``sub`` (m, N), row by row: that is quicker."""
    apart = np.abs(sub[0] - point[0])
    for row, value in zip(sub[1:], point[1:]):
        apart += np.abs(row - value)
    return apart


def redundancy(sub: FloatArray, winner: int, n_redundant: int, exponent: float) -> tuple[IntArray, FloatArray]:
    """Who is redundant beside ``winner`` in the subspace (m, N), and their shares of a penalty of 1."""
    apart = apart_from(sub, sub[:, winner])
    apart[winner] = np.inf
    if apart.min() == 0:
        return np.array([int(apart.argmin())]), np.ones(1)
    k = min(n_redundant, len(apart) - 1)
    near = np.argpartition(apart, k - 1)[:k]
    log_share = -exponent * np.log(apart[near].astype(np.float64))
    share = np.exp(log_share - log_share.max())
    return near, share / share.sum()
