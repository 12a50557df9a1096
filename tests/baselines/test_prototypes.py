"""Prototypicality, and the neighbours that several baselines look for."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from semiprune_core.baselines import neighbours, prototypes
from semiprune_core.baselines.prototypes import prototypicality, to_nearest
from semiprune_core.errors import InvalidDataError, InvalidSettingError
from semiprune_core.learning.frozen.neighbours import unit_rows
from semiprune_core.progress import Collected, Stopped


def test_the_image_between_two_clusters_is_the_least_prototypical():
    rng = np.random.default_rng(0)
    directions = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    values = np.concatenate(
        [directions[0] + rng.normal(0, 0.01, (20, 3)), directions[1] + rng.normal(0, 0.01, (20, 3))]
    )
    values = np.concatenate([values * rng.uniform(1, 9, (40, 1)), [[1.0, 1.0, 0.0]]])  # lengths do not matter
    scores = prototypicality(values, n_clusters=2, seed=0)
    assert scores.argmax() == 40 and scores[:40].max() < 0.01 < scores[40]
    np.testing.assert_array_equal(scores, prototypicality(values, n_clusters=2, seed=0))


def test_the_distance_is_the_cosine_one_to_the_nearest_centroid():
    rng = np.random.default_rng(1)
    rows, centroids = rng.normal(size=(30, 6)), rng.normal(size=(4, 6))
    slow = [min(1 - row @ one / (np.linalg.norm(row) * np.linalg.norm(one)) for one in centroids) for row in rows]
    np.testing.assert_allclose(to_nearest(rows, centroids), slow, atol=1e-6)


def test_features_stay_as_they_are():
    values = np.random.default_rng(0).normal(2, 1, (60, 4)).astype(np.float32)
    before = values.copy()
    prototypicality(values, n_clusters=3, seed=0)
    np.testing.assert_array_equal(values, before)


def test_of_several_starts_the_one_with_the_least_inertia_counts(monkeypatch):
    given = iter([(3.0, np.eye(2)[:1]), (1.0, np.eye(2)[1:]), (2.0, np.eye(2)[:1])])
    seeds = []
    monkeypatch.setattr(prototypes, "_at_once", lambda rows, k, seed, progress: (seeds.append(seed), next(given))[1])
    scores = prototypicality(np.eye(2), n_clusters=1, seed=0, n_starts=3)
    assert scores.tolist() == [1.0, 0.0] and len(set(seeds)) == 3


def test_a_stop_is_honoured_between_two_starts(monkeypatch):
    begun = []
    monkeypatch.setattr(
        prototypes, "_at_once", lambda rows, k, seed, progress: (begun.append(seed), (1.0, np.eye(2)))[1]
    )
    progress = Collected(2)
    with pytest.raises(Stopped):
        prototypicality(np.eye(2), n_clusters=2, seed=0, n_starts=10, progress=progress)
    assert len(begun) == 3 and progress.reports[-1] == {"done": 2, "total": 10, "unit": "starts", "stage": "k-means"}


def test_a_large_pool_is_clustered_in_batches_with_the_same_finding(monkeypatch):
    rng = np.random.default_rng(0)
    values = np.eye(5)[rng.integers(0, 3, 600)] + rng.normal(0, 0.05, (600, 5))
    at_once = prototypicality(values, n_clusters=3, seed=0)
    monkeypatch.setattr(prototypes, "MANY", 599)
    monkeypatch.setattr(prototypes, "BATCH", 100)
    monkeypatch.setattr(prototypes, "_at_once", None)
    found = prototypicality(values, n_clusters=3, seed=0)
    np.testing.assert_allclose(found, at_once, atol=0.01)
    np.testing.assert_array_equal(found, prototypicality(values, n_clusters=3, seed=0))
    with pytest.raises(Stopped):  # also within a start
        prototypicality(values, n_clusters=3, seed=0, n_starts=1, progress=Collected(0))


def test_a_blank_image_is_neither_hard_nor_easy_and_changes_nothing_for_others():
    values = np.random.default_rng(0).uniform(0.2, 1, (41, 5))
    plain = prototypicality(values, n_clusters=2, seed=0)
    black = np.insert(values, [0, 20], 0, axis=0)
    found = prototypicality(black, n_clusters=2, seed=0)
    np.testing.assert_array_equal(np.delete(found, [0, 21]), plain)
    assert found[0] == found[21] == np.median(plain) < plain.max() < 0.5


def test_blank_images_do_not_count_for_the_clusters():
    with pytest.raises(InvalidDataError, match="There are 2 images that are not blank for 3 clusters"):
        prototypicality(np.diag([1.0, 1.0, 0.0, 0.0]), n_clusters=3, seed=0)


def test_more_clusters_than_images_are_refused():
    with pytest.raises(InvalidDataError, match="3 images for 4 clusters"):
        prototypicality(np.eye(3), n_clusters=4, seed=0)


@pytest.mark.parametrize("itself", [True, False])
def test_neighbours_equal_scikit_learns(itself, monkeypatch):
    monkeypatch.setattr(neighbours, "CELLS", 200)  # several blocks
    values = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    places, apart = neighbours.nearest(values, values, 5, itself=itself)
    model = NearestNeighbors(n_neighbors=5).fit(values)
    wanted_apart, wanted = model.kneighbors(values if itself else None)
    np.testing.assert_array_equal(places, wanted)
    np.testing.assert_allclose(apart, wanted_apart, atol=2e-3)


def test_neighbours_of_nobody_else_are_refused_and_a_stop_is_honoured():
    values = np.eye(3)
    with pytest.raises(InvalidSettingError, match="k must be"):
        neighbours.nearest(values, values, 3, itself=False)
    with pytest.raises(Stopped):
        neighbours.nearest(values, values, 1, progress=Collected(0, [{"done": 0}]))


def test_a_row_of_zeros_has_no_direction_and_does_no_harm():
    np.testing.assert_allclose(unit_rows(np.array([[0.0, 0.0], [3.0, 4.0]])), [[0, 0], [0.6, 0.8]], rtol=1e-6)
