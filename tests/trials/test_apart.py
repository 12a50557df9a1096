"""Tuning and testing never meet: by construction, whatever the seeds, the fractions and the labels."""

import numpy as np
import pytest

from semiprune_core.errors import ConflictError
from semiprune_core.labeling.drawing import ranks
from semiprune_core.trials import Trial, TrialBook
from semiprune_core.trials.apart import hold_out, keep_to_test, part_to_compare, part_to_test

N = 6000
IDS = ranks(np.arange(N, dtype=np.uint64), 7)


def test_before_there_were_halves_every_compared_image_was_tested():
    every = np.arange(N)
    compared, tested = hold_out(every, every, 0.1, seed=0), hold_out(every, every, 0.2, seed=0)
    assert compared.sum() == (compared & tested).sum() == 600


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_no_image_is_both_compared_and_tested(seed, share):
    rng = np.random.default_rng(seed)
    duplicate_of, every = np.arange(N), np.arange(N)
    duplicate_of[4000:5000] = rng.integers(0, 4000, 1000)
    labeled = np.flatnonzero(rng.random(N) < share)
    tested = part_to_test(labeled, IDS, duplicate_of, 0.2)
    n_pictures = len(np.unique(duplicate_of[labeled]))
    assert len(np.unique(duplicate_of[tested])) == round(0.2 * n_pictures)
    for validation in (0.1, 0.5):
        compared = part_to_compare(every, IDS, duplicate_of, validation, seed)
        assert compared.any() and not (compared & tested).any()
    assert (
        part_to_compare(every, IDS, duplicate_of, 0.1, seed) == part_to_compare(every, IDS, duplicate_of, 0.1, seed)
    ).all()


def test_copies_stay_together_and_another_seed_compares_on_other_images():
    duplicate_of = np.arange(100)
    duplicate_of[50:] = np.arange(50)  # every picture twice
    for held in (
        part_to_test(np.arange(100), IDS[:100], duplicate_of, 0.2),
        part_to_compare(np.arange(100), IDS[:100], duplicate_of, 0.2, seed=3),
    ):
        assert held.sum() == 20 and (held[:50] == held[50:]).all()
    again = part_to_compare(np.arange(100), IDS[:100], duplicate_of, 0.2, seed=4)
    assert (held != again).any()


def test_those_who_are_alike_are_on_one_side():
    together = np.arange(N) // 10 * 10
    every = np.arange(N)
    tested = part_to_test(every, IDS, every, 0.2, together)
    compared = part_to_compare(every, IDS, every, 0.1, 0, together)
    assert not set(together[tested]) & set(together[compared]) and not (tested & compared).any()
    assert tested.sum() == 1200 and len(set(together[tested])) < 400, "whole groups before the next"
    assert not (tested & part_to_compare(every, IDS, every, 0.5, 0)).any(), "also where the search knew of no group"


def test_images_that_were_added_move_no_other_one_to_the_other_half():
    before = part_to_test(np.arange(3000), IDS[:3000], np.arange(3000), 0.2)
    compared = part_to_compare(np.arange(N), IDS, np.arange(N), 0.5, 0)
    assert not (before & compared[:3000]).any()


def test_trials_that_were_tested_otherwise_are_not_continued(tmp_path):
    book = TrialBook(tmp_path / "b.jsonl")
    keep_to_test(tmp_path, book, "a")
    keep_to_test(tmp_path, book, "b")  # nothing was tested yet
    book.add(Trial(method="random", pruning_ratio=0.5, seed=0), {"n_correct": 3})
    keep_to_test(tmp_path, book, "b")
    with pytest.raises(ConflictError, match="Start a new one"):
        keep_to_test(tmp_path, book, "a")
