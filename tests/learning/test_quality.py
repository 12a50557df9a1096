"""Held-out labels, intervals and calibration."""

import numpy as np
import pytest

from semiprune_core.errors import InvalidSettingError
from semiprune_core.learning import quality


@pytest.mark.parametrize(
    "right, n, low, high",
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (81, 263, 0.2553, 0.3662)],
)
def test_wilson_interval_of_known_cases(right, n, low, high):
    """81 of 263 is the example of Newcombe (1998), table I."""
    share = quality.wilson(right, n)
    assert (share.low, share.high) == pytest.approx((low, high), abs=1e-4)
    assert share.low <= share.value <= share.high


def test_wilson_refuses_nothing_and_too_much():
    with pytest.raises(InvalidSettingError):
        quality.wilson(0, 0)
    with pytest.raises(InvalidSettingError):
        quality.wilson(3, 2)


def test_wilson_covers_the_truth_about_95_times_in_100():
    rng = np.random.default_rng(0)
    hits = [quality.wilson(int(right), 60) for right in rng.binomial(60, 0.83, 2000)]
    assert 0.93 <= np.mean([share.low <= 0.83 <= share.high for share in hits]) <= 0.97


@pytest.mark.parametrize("n, held", [(0, 0), (19, 0), (20, 2), (199, 20), (200, 50), (600, 60), (5000, 500)])
def test_ten_percent_are_held_out_and_fifty_where_there_are_enough(n, held):
    assert quality.held_out_count(n, 0.10) == held
    assert quality.held_out_count(n, 0) == 0


def test_the_split_is_a_partition_and_every_class_stays():
    labels = np.array([0] * 300 + [1] * 30 + [2])
    for seed in range(20):
        train, held = quality.split_held_out(labels, 0.10, np.random.default_rng(seed))
        assert sorted([*train, *held]) == list(range(len(labels))) and len(held) == 50
        assert set(labels[train]) == {0, 1, 2}


def test_a_class_of_single_labels_keeps_them_even_when_drawing_anew_is_hopeless():
    labels = np.arange(200)
    train, held = quality.split_held_out(labels, 0.10, np.random.default_rng(0))
    assert len(train) == 200 and len(held) == 0


def test_the_held_out_part_is_drawn_uniformly():
    labels = np.arange(40) % 2
    counts = np.zeros(40)
    for seed in range(2000):
        counts[quality.split_held_out(labels, 0.25, np.random.default_rng(seed))[1]] += 1
    assert np.abs(counts / 2000 - 0.25).max() < 0.05


def test_folds_hold_out_every_label_once():
    labels = np.arange(50) % 3
    folds = quality.split_folds(labels, 4, np.random.default_rng(0))
    assert sorted(np.concatenate([held for _, held in folds])) == list(range(50))
    assert all(not set(train) & set(held) for train, held in folds)


def test_measure_gives_accuracy_per_class_and_calibration():
    truth = np.array([0] * 6 + [1] * 4)
    predicted = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1, 0])
    confidence = np.array([0.95] * 5 + [0.65] * 5)
    found = quality.measure(predicted, truth, confidence, n_classes=3, measured_on="ten labels")
    assert found.accuracy.right == 6 and found.per_class[0].right == 3
    assert found.per_class[1] is None and found.per_class[2] is None  # four labels and none say too little
    assert [(one.n, one.accuracy) for one in found.bins] == [(5, 0.6), (5, 0.6)]
    assert found.ece == pytest.approx((0.05 + 0.35) / 2)
    assert found.to_json()["bins"][0]["n"] == 5


def test_confidence_one_falls_into_the_last_bin():
    (only,) = quality.reliability(np.array([True]), np.array([1.0]))
    assert (only.low, only.high) == pytest.approx((0.9, 1.0))


def test_nothing_held_out_gives_no_number():
    none = np.array([], dtype=int)
    assert quality.measure(none, none, none.astype(float), n_classes=2, measured_on="") is None


def test_labels_needed_for_a_narrower_interval():
    assert quality.labels_needed(0.8, 0.05) == 246
    share = quality.wilson(197, 246)
    assert (share.high - share.low) / 2 == pytest.approx(0.05, abs=0.002)
