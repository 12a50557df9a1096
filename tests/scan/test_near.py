"""Fingerprints and groups, held against closed forms."""

import numpy as np

from semiprune_core.learning.frozen.duplicates import Pairs, alike_pairs
from semiprune_core.scan.fingerprints import fingerprints
from semiprune_core.scan.near import best_of, find_pairs, groups_at


def smooth(n, side=32, channels=3, seed=0):
    """(n, side, side, channels) uint8 of slow waves, all different."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (n, 4, 4, channels)).astype(float)
    return np.kron(coarse, np.ones((1, side // 4, side // 4, 1))).astype(np.uint8)


def test_a_mirrored_image_has_the_mirrored_fingerprint():
    for channels in (1, 3):
        images = smooth(20, channels=channels)
        both = np.concatenate([images, images[:, :, ::-1]])
        rows, signs = fingerprints(both)
        assert np.allclose(rows[20:], rows[:20] * signs, atol=1e-5)
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_brighter_and_flatter_copies_have_the_same_fingerprint():
    images = smooth(30)
    paler = (images // 2 + 60).astype(np.uint8)
    rows, _ = fingerprints(np.concatenate([images, paler]))
    assert (np.einsum("nd,nd->n", rows[:30], rows[30:]) > 0.99).all()


def test_blank_images_are_like_nothing():
    images = np.concatenate([smooth(10), np.full((2, 32, 32, 3), 200, np.uint8)])
    pairs = find_pairs(images)
    assert not np.isin([10, 11], [pairs.left, pairs.right]).any()


def test_pairs_either_way_are_those_of_the_higher_one_of_both_products(monkeypatch):
    monkeypatch.setattr("semiprune_core.learning.frozen.duplicates.CELLS", 100)
    rng, signs = np.random.default_rng(0), np.array([1, -1, -1, 1, -1], np.float32)
    rows = rng.normal(size=(60, 5)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    pairs = alike_pairs(rows, signs=signs, threshold=0.6)
    highest = np.maximum(rows @ rows.T, rows @ (rows * signs).T)
    expected = np.argwhere(np.triu(highest >= 0.6, 1))
    assert len(expected) > np.triu(rows @ rows.T >= 0.6, 1).sum()
    assert sorted(zip(pairs.left.tolist(), pairs.right.tolist())) == sorted(map(tuple, expected.tolist()))
    assert np.allclose(pairs.likeness, highest[pairs.left, pairs.right], atol=1e-6)


def test_only_the_most_alike_pairs_are_kept(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    every = alike_pairs(rows, threshold=0.5)
    monkeypatch.setattr("semiprune_core.learning.frozen.duplicates.MOST_PAIRS", 10)
    best = alike_pairs(rows, threshold=0.5)
    assert sorted(best.likeness.tolist()) == sorted(every.likeness.tolist())[-10:]


def test_of_a_pair_found_twice_the_higher_likeness_counts():
    a = Pairs(np.array([0, 2]), np.array([1, 3]), np.array([0.9, 0.95], np.float32))
    b = Pairs(np.array([0]), np.array([1]), np.array([0.97], np.float32))
    best = best_of(4, [a, b])
    assert best.left.tolist() == [0, 2] and np.allclose(best.likeness, [0.97, 0.95])


def test_a_chain_that_joins_a_whole_kind_is_cut_where_it_is_weakest():
    n = 100
    chain = Pairs(np.arange(19), np.arange(1, 20), np.full(19, 0.93, np.float32))
    tight = Pairs(np.array([0, 50]), np.array([1, 51]), np.array([0.99, 0.93], np.float32))
    groups = groups_at(n, best_of(n, [chain, tight]), 0.92)
    expected = np.arange(n)
    expected[[1, 51]] = [0, 50]
    assert groups.tolist() == expected.tolist()


def test_equal_pixels_stay_together_whatever_the_threshold():
    copies = np.array([0, 0, 2, 0])
    none = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
    assert groups_at(4, none, 0.99, copies).tolist() == [0, 0, 2, 0]
