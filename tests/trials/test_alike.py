"""Near-copies of test images, as features see them."""

import numpy as np
import pytest

from semiprune_core.progress import Collected
from semiprune_core.results.features import KIND, POOL_FILE, TEST_FILE, segments_of
from semiprune_core.trials import alike as alike_module
from semiprune_core.trials.alike import alike, known_alike, pin_features
from tests.support.scored_projects import make_pool


@pytest.fixture
def project(workspace, tmp_path):
    project = make_pool(workspace, tmp_path, n=60, n_classes=3, n_test=20)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 64)).astype(np.float32)
    rows[7] = rows[60] + 0.01 * rng.normal(size=64)  # an image of the pool and the first test image
    rows[3] = rows[2] + 0.01 * rng.normal(size=64)
    rows[20:40] = rows[20] + 0.01 * rng.normal(size=(20, 64))  # a kind of image
    with project.draft(KIND, settings={"encoder": "e"}, inputs={"pool": project.everything().hash}) as draft:
        np.save(draft.path(POOL_FILE), rows[:60], allow_pickle=False)
        np.save(draft.path(TEST_FILE), rows[60:], allow_pickle=False)
        draft.facts.update(n_dimensions=64, segments=list(segments_of(project)))
    return project


def test_near_copies_are_found_once_within_and_across_splits(project, monkeypatch):
    assert known_alike(project) is None
    pins = pin_features(project)
    groups = alike(project, pins, Collected())
    expected = np.arange(80)
    expected[[3, 60]] = [2, 7]
    assert groups.tolist() == expected.tolist(), "a large group is no copy of one image"
    monkeypatch.setattr(alike_module, "near_duplicates", None)  # not looked for again
    assert alike(project, pins, Collected()).tolist() == known_alike(project).tolist() == groups.tolist()


def test_without_features_nothing_is_known(workspace, tmp_path):
    project = make_pool(workspace, tmp_path, n=20, n_classes=2)
    assert pin_features(project) == {} and known_alike(project) is None and alike(project, {}, Collected()) is None
