"""Copies and near-copies of test images are left out of training and selection, counted and said."""

import numpy as np
import pytest

from semiprune_core.evaluation import evaluation_data
from semiprune_core.evaluation.data import copies_words
from semiprune_core.evaluation.runs import data_sentence
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.project.pool_view import pool_summary


@pytest.fixture
def project(import_into, tmp_path):
    """40 images in two classes and 10 tests; images 0 and 1 are test images too, 5 is 4 once more."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (50, 8, 8), dtype=np.uint8)
    images[0], images[1], images[5] = images[40], images[41], images[4]
    split = np.repeat(["pool", "test"], [40, 10])
    np.savez(tmp_path / "images.npz", images=images, labels=np.arange(50) % 2, split=split)
    project, _ = import_into(SourceSpec("npz", str(tmp_path / "images.npz")))
    return project


def test_copies_of_test_images_are_left_out_and_counted(project):
    data = evaluation_data(project)
    assert data.test == "split" and np.flatnonzero(data.left_mask).tolist() == [0, 1]
    assert len(data.chosen_from) == 38 and (data.n_copies, data.n_near) == (2, 0)
    assert copies_words(data) == "2 copies of test images were left out of every coreset and of the full data."
    assert "2 copies of test images are left out" in data_sentence(data)


def test_near_copies_are_left_out_too(project):
    alike = np.arange(50)
    alike[[8, 45]] = 8  # of a test image
    alike[[10, 11]] = 10  # of each other
    data = evaluation_data(project, alike=alike)
    assert np.flatnonzero(data.left_mask).tolist() == [0, 1, 8] and (data.n_copies, data.n_near) == (2, 1)
    assert copies_words(data).startswith("2 copies and 1 near-copy of test images were left out")


def test_those_who_are_alike_are_tested_on_or_left_out_together(import_into, tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (60, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "images.npz", images=images, labels=np.arange(60) % 2)
    project, _ = import_into(SourceSpec("npz", str(tmp_path / "images.npz")))
    alike = np.arange(60) // 3 * 3
    data = evaluation_data(project, alike=alike)
    away = data.held_mask | data.left_mask
    assert data.test == "held out" and data.n_test == 12 and data.n_near == data.left_mask.sum() > 0
    assert not np.isin(alike[~away], alike[data.held_mask]).any() and (away.reshape(-1, 3).sum(1) % 3 == 0).all()


def test_the_pool_counts_copies_within_and_across_splits_apart(project):
    summary = pool_summary(project.everything())
    assert (summary.n_pool, summary.n_test, summary.n_duplicates, summary.n_shared) == (40, 10, 1, 2)
