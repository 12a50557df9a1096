"""How much memory the baselines take beside the features on the disk, in units of the (N, D) float32 matrix."""

import tracemalloc

import numpy as np
import pytest

from semiprune_core.baselines import prototypes, temi, zcore
from semiprune_core.baselines.settings import HeadSettings, ZCoreSettings
from semiprune_core.learning.frozen.neighbours import unit_rows
from semiprune_core.progress import Collected, Stopped

N, D = 40_000, 64  # so that a block of 4,096 rows is a tenth of it
MATRIX = N * D * 4


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    """Features as evidence keeps them: float32, memory-mapped."""
    path = tmp_path_factory.mktemp("features") / "features.npy"
    np.save(path, np.random.default_rng(0).normal(1, 1, (N, D)).astype(np.float32))
    return np.load(path, mmap_mode="r")


def peak(work):
    """The most memory that ``work()`` held at a time, in matrices."""
    work()  # what it imports does not count
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / MATRIX
    finally:
        tracemalloc.stop()


def test_rows_of_length_one_take_one_matrix(values):
    assert peak(lambda: unit_rows(values)) < 1.3


def test_zcore_takes_one_matrix(values):
    settings = ZCoreSettings(n_samples=50)
    assert peak(lambda: zcore.zcore_scores(values, settings=settings, rng=np.random.default_rng(0))) < 1.3


@pytest.mark.parametrize("many, most", [(N, 2.3), (N - 1, 1.4)])
def test_prototypicality_takes_two_matrices_and_in_a_large_pool_one(many, most, values, monkeypatch):
    monkeypatch.setattr(prototypes, "MANY", many)
    monkeypatch.setattr(prototypes, "BATCH", 4000)
    assert peak(lambda: prototypes.prototypicality(values, n_clusters=3, seed=0, n_starts=1)) < most


def test_clustering_takes_one_matrix_and_the_neighbours(values, monkeypatch):
    monkeypatch.setattr(temi, "nearest", nothing_near)
    settings = HeadSettings(n_heads=1, epochs=1, batch_size=256, hidden=4, bottleneck=4, n_neighbours=4, n_components=0)

    def work():
        with pytest.raises(Stopped):
            temi.cluster(values, n_clusters=3, settings=settings, seed=0, progress=Collected(0, [{"done": 0}]))

    assert peak(work) < 1.4


def nothing_near(queries, among, k, **more):
    """Neighbours without the time it takes to find them."""
    assert queries is among and len(queries) == N
    return np.zeros((N, k), np.int64), np.zeros((N, k), np.float32)
