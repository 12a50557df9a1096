"""How often the interval of a cross-fitted accuracy holds the truth: simulated draws on a pool with known truth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from semiprune_core import streams
from semiprune_core.learning.frozen.fit import fit_pool
from semiprune_core.learning.frozen.prepare import FrozenPool
from semiprune_core.learning.frozen.settings import FrozenSettings
from semiprune_core.learning.quality import wilson
from semiprune_core.records import UNLABELED, IntArray
from semiprune_core.streams import Purpose


@dataclass(frozen=True)
class Coverage:
    """Over ``n_draws``: the share of intervals that hold the truth, and of Wilson's on the same answers.

    ``wider`` is the mean width as a multiple of Wilson's, ``bias`` the mean of estimate less truth. ``shared`` is what
    ``intervals.shared_part`` has to cover: by how much the mean square of estimate less truth exceeds what the two
    samples alone would give (the labels, the images without one), as a multiple of the labels' part.
    """

    n_draws: int
    covered: float
    wilson_covered: float
    wider: float
    bias: float
    shared: float


def simulate_coverage(
    pool: FrozenPool, truth: IntArray, n_labels: int, draws: Iterable[int], settings: FrozenSettings
) -> Coverage:
    """Draw ``n_labels`` at random, fit, and compare the interval with the accuracy on all images without a label."""
    rows = []
    for draw in draws:
        labels = np.full(len(pool), UNLABELED)
        drawn = streams.rng(draw, Purpose.COVERAGE, n_labels).permutation(len(pool))[:n_labels]
        labels[drawn] = truth[drawn]
        result = fit_pool(pool, labels, n_classes=int(truth.max()) + 1, settings=settings, seed=draw)
        assert result.quality is not None
        rest = labels == UNLABELED
        real = float((result.labels[rest] == truth[rest]).mean())
        ours = result.quality.accuracy
        plain = wilson(ours.right, ours.n)
        rows.append(
            (
                ours.low <= real <= ours.high,
                plain.low <= real <= plain.high,
                (ours.high - ours.low) / (plain.high - plain.low),
                ours.value - real,
                real,
            )
        )
    table = np.array(rows, dtype=float)
    covered, plainly, wider, bias, real = (float(mean) for mean in table.mean(0))
    apart = float((table[:, 3] ** 2).mean()) / max(real * (1 - real), 1e-9)
    shared = n_labels * (apart - 1 / (len(pool) - n_labels)) - 1
    return Coverage(len(rows), covered, plainly, wider, bias, shared)
