"""Folds: alike in class shares, near-duplicates together."""

import numpy as np
import pytest

from semiprune_core.learning.frozen.folds import TRAINS_ONLY, assign_folds, count_folds, training_mask


def deal(labels, k=5, groups=None, measurable=None, seed=0):
    n = len(labels)
    return assign_folds(
        np.asarray(labels),
        k,
        np.random.default_rng(seed),
        measurable=np.ones(n, bool) if measurable is None else measurable,
        groups=np.arange(n) if groups is None else groups,
    )


def test_folds_are_alike_in_size_and_in_every_class():
    labels = np.repeat([0, 1, 2], [50, 25, 8])
    folds = deal(labels)
    assert np.ptp(np.bincount(folds)) <= 2
    for label in range(3):
        assert np.ptp(np.bincount(folds[labels == label], minlength=5)) <= 1


def test_a_group_is_in_one_fold():
    groups = np.repeat(np.arange(20), 4)
    folds = deal(np.arange(80) % 3, groups=groups)
    assert all(len(set(folds[groups == group])) == 1 for group in range(20))
    assert np.bincount(folds).tolist() == [16] * 5


def test_labels_on_purpose_have_no_fold_and_stay_out_with_their_group():
    labels = np.array([0, 0, 1, 1, 0, 1])
    groups = np.array([0, 0, 2, 3, 4, 5])
    measurable = np.array([True, False, True, True, True, False])
    folds = deal(labels, 2, groups, measurable)
    assert (folds[~measurable] == TRAINS_ONLY).all()
    train = training_mask(folds, groups, int(folds[0]))
    assert not train[0] and not train[1]  # the second is a copy of the held-out first
    assert train[5]


def test_two_labels_of_a_rare_class_are_in_two_folds():
    for seed in range(20):
        labels = np.array([0] * 30 + [1] * 2)
        folds = deal(labels, seed=seed)
        assert folds[30] != folds[31]


@pytest.mark.parametrize("n, folds", [(0, 0), (1, 0), (3, 3), (500, 10)])
def test_there_are_never_more_folds_than_labels(n, folds):
    assert count_folds(n, 10) == folds
