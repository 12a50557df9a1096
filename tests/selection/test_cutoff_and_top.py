"""Cutoff, ends and bins, by hand."""

import numpy as np
import pytest

from semiprune_core.errors import InvalidSettingError, UnknownNameError
from semiprune_core.records import Evidence, coreset_size
from semiprune_core.selection.base import equal_shares, hard_end, interleave
from semiprune_core.selection.cutoff import select_cutoff
from semiprune_core.selection.stratified import select_stratified
from semiprune_core.selection.top import select_top


def rng():
    return np.random.default_rng(0)


def by_aum(values):
    return Evidence(len(values), {"aum": np.asarray(values, dtype=float)})


@pytest.mark.parametrize("cutoff, kept", [(0.0, [0, 1, 2]), (0.2, [1, 2, 3]), (0.4, [2, 3, 4])])
def test_cutoff_keeps_a_full_budget_at_both_ends(cutoff, kept):
    assert select_cutoff(by_aum(np.arange(5.0)), 3, rng=rng(), cutoff=cutoff).tolist() == kept


def test_cutoff_equals_its_slow_twin():
    generator = np.random.default_rng(1)
    for n in (1, 5, 50, 133):
        aum = generator.normal(size=n)
        for ratio in (0.0, 0.3, 0.5, 0.9):
            for cutoff in (0.0, ratio / 2, ratio):
                budget = coreset_size(n, ratio)
                from_hard = sorted(range(n), key=lambda i: aum[i])
                start = min(round(cutoff * n), n - budget)
                expected = from_hard[start : start + budget]
                assert select_cutoff(by_aum(aum), budget, rng=rng(), cutoff=cutoff).tolist() == expected


@pytest.mark.parametrize("n", range(1, 60))
def test_a_cutoff_equal_to_the_ratio_is_always_legal_and_keeps_the_easiest(n):
    for ratio in (0.0, 0.1, 0.25, 0.5, 0.7, 0.9, 0.99):
        budget = coreset_size(n, ratio)
        kept = select_cutoff(by_aum(np.arange(n)), budget, rng=rng(), cutoff=ratio)
        assert len(kept) == budget
        assert n - budget - 1 <= (kept.min() if budget else n)


def test_a_cutoff_that_leaves_too_few_says_what_fits():
    with pytest.raises(InvalidSettingError, match=r"cutoff of 0.5 drops 50 of 100 .* coreset of 70. .* to 0.3 or less"):
        select_cutoff(by_aum(np.arange(100)), 70, rng=rng(), cutoff=0.5)
    assert len(select_cutoff(by_aum(np.arange(100)), 70, rng=rng(), cutoff=0.3)) == 70


@pytest.mark.parametrize("cutoff", [-0.1, 1.0, float("nan")])
def test_a_cutoff_outside_its_range_is_refused(cutoff):
    with pytest.raises(InvalidSettingError, match="cutoff"):
        select_cutoff(by_aum(np.arange(5)), 1, rng=rng(), cutoff=cutoff)


def test_cutoff_turns_scores_where_higher_is_harder():
    evidence = Evidence(5, {"el2n": np.arange(5.0), "own": np.arange(5.0)})
    assert select_cutoff(evidence, 2, rng=rng(), cutoff=0.2, score="el2n").tolist() == [3, 2]
    assert select_cutoff(evidence, 2, rng=rng(), cutoff=0.2, score="own", higher_is="easier").tolist() == [1, 2]
    with pytest.raises(UnknownNameError, match="own"):
        select_cutoff(evidence, 2, rng=rng(), cutoff=0.2, score="own")
    with pytest.raises(InvalidSettingError, match="higher_is"):
        select_cutoff(evidence, 2, rng=rng(), cutoff=0.2, score="own", higher_is="better")


@pytest.mark.parametrize("keep, kept", [("hardest", [0, 3]), ("easiest", [1, 2])])
def test_top_keeps_one_end(keep, kept):
    assert select_top(by_aum([0.1, 0.9, 0.8, 0.2]), 2, rng=rng(), keep=keep).tolist() == kept


def test_top_refuses_an_end_it_does_not_know():
    with pytest.raises(InvalidSettingError, match="hardest, easiest"):
        select_top(by_aum([1, 2]), 1, rng=rng(), keep="best")


def ccs_shares(counts, budget):
    """The allocation of the coverage-centric paper, as a loop: smallest bin first, an equal share of what is left."""
    shares, left = {}, budget
    for position, (bin_number, count) in enumerate(sorted(counts.items(), key=lambda item: item[1])):
        shares[bin_number] = min(count, left // (len(counts) - position))
        left -= shares[bin_number]
    return shares


@pytest.mark.parametrize("budget", [0, 1, 5, 30, 80, 119, 120])
def test_stratified_takes_what_the_papers_loop_takes_from_each_bin(budget):
    aum = np.random.default_rng(2).beta(5, 1, 120)
    bins = np.minimum(((aum - aum.min()) / (aum.max() - aum.min()) * 10).astype(int), 9)
    chosen = select_stratified(by_aum(aum), budget, rng=rng(), n_bins=10)
    counts = {number: int((bins == number).sum()) for number in set(bins.tolist())}
    expected = sorted(share for share in ccs_shares(counts, budget).values())
    assert sorted(int((bins[chosen] == number).sum()) for number in counts) == expected


def test_stratified_never_takes_what_the_cutoff_drops():
    chosen = select_stratified(by_aum(np.arange(100)), 30, rng=rng(), cutoff=0.4)
    assert chosen.min() >= 40


def test_shares_are_equal_as_far_as_sizes_allow():
    generator = np.random.default_rng(3)
    for _ in range(300):
        capacity = generator.integers(0, 12, generator.integers(1, 7))
        at_least = generator.integers(0, capacity + 1)
        budget = int(generator.integers(at_least.sum(), capacity.sum() + 1))
        shares = equal_shares(capacity, budget, at_least)
        assert shares.sum() == budget and (shares <= capacity).all() and (shares >= at_least).all()
        can_give, can_take = shares > at_least, shares < capacity
        if can_give.any() and can_take.any():  # no image could move to a poorer group
            assert shares[can_give].max() <= shares[can_take].min() + 1


def test_shares_that_cannot_be_are_refused():
    for budget, at_least in ((7, [0, 0]), (1, [2, 0]), (5, [4, 0])):
        with pytest.raises(InvalidSettingError, match="cannot be split"):
            equal_shares(np.array([3, 3]), budget, np.array(at_least))


def test_interleave_of_nothing_is_empty():
    assert interleave([]).tolist() == [] and interleave([np.array([], dtype=int)]).tolist() == []


def test_a_share_of_what_is_dropped_means_the_same_for_any_part():
    assert hard_end(100, 30, None, hard_share=0.5) == 35
    assert hard_end(10, 10, None, hard_share=0.5) == 0
