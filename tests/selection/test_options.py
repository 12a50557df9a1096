"""Options by hand: balance, human labels, at least k per class, duplicates, and what is said when they cannot be."""

import dataclasses

import numpy as np
import pytest

from semiprune_core.errors import InvalidSettingError, MissingStepError
from semiprune_core.methods import select_coreset
from semiprune_core.records import Evidence
from semiprune_core.selection.options import SelectionOptions


def evidence_of(labels, *, aum=None, human=None, duplicate_of=None):
    labels = np.asarray(labels)
    n = len(labels)
    return Evidence(
        n,
        {"aum": np.arange(n) / n if aum is None else np.asarray(aum, float)},
        labels=labels,
        human_mask=None if human is None else np.isin(np.arange(n), human),
        duplicate_of=None if duplicate_of is None else np.asarray(duplicate_of),
    )


def pick(evidence, name="top", ratio=0.5, **rest):
    return select_coreset(evidence, name, pruning_ratio=ratio, seed=0, **rest).indices.tolist()


def test_balanced_classes_get_equal_shares_and_small_ones_give_all():
    labels = [0] * 20 + [1] * 15 + [2]
    evidence = evidence_of(labels)
    chosen = pick(evidence, ratio=0.5, class_balanced=True)  # 18 of 36
    assert np.bincount(evidence.labels[chosen]).tolist() == [9, 8, 1]


def test_balanced_choices_are_the_selectors_own_within_each_class():
    evidence = evidence_of([0, 1, 0, 1, 0, 1, 0, 1])
    assert pick(evidence, class_balanced=True) == [0, 1, 2, 3]
    assert pick(evidence, class_balanced=True, keep="easiest") == [6, 7, 4, 5]


def test_balanced_cutoff_drops_at_both_ends_of_every_class():
    """Pool: 30 of 40 dropped, 20 at the hard end. A class that drops 15 drops 10 there, one that drops none, none."""
    labels = np.repeat([0, 1], 20)
    evidence = evidence_of(labels)
    chosen = np.array(pick(evidence, "cutoff", ratio=0.75, cutoff=0.5, class_balanced=True))
    assert sorted(chosen[chosen < 20].tolist()) == list(range(10, 15))
    assert sorted(chosen[chosen >= 20].tolist()) == list(range(30, 35))
    small = evidence_of([0] * 36 + [1] * 4)
    assert set(range(36, 40)) <= set(pick(small, "cutoff", ratio=0.75, cutoff=0.5, class_balanced=True))


def test_same_annotation_budget_puts_human_labels_first_and_counts_them():
    evidence = evidence_of([0] * 10, human=[7, 9])
    assert pick(evidence, same_annotation_budget=True) == [7, 9, 0, 1, 2]


def test_same_annotation_budget_cuts_among_the_others():
    evidence = evidence_of([0] * 10, human=[0, 1])
    assert pick(evidence, "cutoff", cutoff=0.25, same_annotation_budget=True) == [0, 1, 4, 5, 6]


def test_kept_human_labels_replace_the_last_choices():
    evidence = evidence_of([0] * 10, human=[1, 8])
    assert pick(evidence, keep_human=True) == [0, 1, 2, 3, 8]
    assert pick(evidence_of([0] * 10, human=[]), keep_human=True) == [0, 1, 2, 3, 4]


def test_human_labels_may_fill_the_whole_budget_but_not_more():
    assert pick(evidence_of([0] * 10, human=range(5, 10)), keep_human=True) == [5, 6, 7, 8, 9]
    for option in ("keep_human", "same_annotation_budget"):
        with pytest.raises(InvalidSettingError, match=r"6 images were labeled by a person.* leaves 5.* to 0.4 or less"):
            pick(evidence_of([0] * 10, human=range(6)), **{option: True})


def test_balance_counts_human_labels():
    evidence = evidence_of([0] * 10 + [1] * 10, human=range(7))
    chosen = pick(evidence, class_balanced=True, same_annotation_budget=True)
    assert np.bincount(evidence.labels[chosen]).tolist() == [7, 3]


def test_at_least_k_per_class_lifts_small_classes_at_the_cost_of_the_last_choices():
    labels = [0] * 6 + [1] * 4 + [2] * 2
    assert pick(evidence_of(labels), min_per_class=1) == [0, 1, 2, 3, 6, 10]
    assert pick(evidence_of(labels), min_per_class=2) == [0, 1, 6, 7, 10, 11]


def test_a_class_with_one_image_keeps_it_and_is_asked_for_no_more():
    labels = [0] * 9 + [1]
    assert pick(evidence_of(labels), min_per_class=3) == [0, 1, 2, 3, 9]
    assert 9 in pick(evidence_of(labels), class_balanced=True)


def test_lifting_classes_never_removes_a_human_label():
    labels = [0] * 8 + [1] * 2
    chosen = pick(evidence_of(labels, human=[4, 7]), keep_human=True, min_per_class=2)
    assert sorted(chosen) == [0, 4, 7, 8, 9]


def test_too_few_images_for_the_classes_says_which_ratio_would_do():
    labels = np.repeat(np.arange(10), 6)
    with pytest.raises(InvalidSettingError) as error:
        pick(evidence_of(labels), ratio=0.9, min_per_class=1)
    assert str(error.value) == (
        "Pruning ratio 0.9 leaves 6 images for 10 classes. Lower it to 0.83 or less, or merge classes."
    )
    assert len(pick(evidence_of(labels), ratio=0.83, min_per_class=1)) == 10
    with pytest.raises(InvalidSettingError, match="10 classes with at least 2 each. Lower it to 0.66 or less"):
        pick(evidence_of(labels), ratio=0.8, min_per_class=2)


def test_human_labels_and_classes_that_do_not_fit_together_are_counted():
    labels = np.repeat(np.arange(10), 6)
    with pytest.raises(
        InvalidSettingError, match="leaves 12 images, 5 of them labeled by a person, for 10 .* to 0.76 or"
    ):
        pick(evidence_of(labels, human=range(5)), ratio=0.8, min_per_class=1, keep_human=True)
    assert len(pick(evidence_of(labels, human=range(5)), ratio=0.76, min_per_class=1, keep_human=True)) == 14


def test_of_duplicates_the_human_labeled_one_stays_otherwise_the_first():
    evidence = evidence_of([0] * 8, duplicate_of=[0, 0, 0, 3, 3, 5, 6, 7], human=[4])
    assert pick(evidence, ratio=0.375, drop_duplicates=True) == [0, 4, 5, 6, 7]
    unlabeled = evidence_of([0] * 8, duplicate_of=[0, 0, 0, 3, 3, 5, 6, 7])
    assert pick(unlabeled, ratio=0.375, drop_duplicates=True) == [0, 3, 5, 6, 7]


def test_of_near_duplicates_with_the_same_label_one_stays():
    evidence = dataclasses.replace(
        evidence_of([0, 0, 1, 1, 1, 0, 0, 1], human=[4]), alike=np.array([0, 0, 0, 3, 3, 5, 6, 7])
    )
    assert pick(evidence, ratio=0.25, one_of_each=True) == [0, 2, 4, 5, 6, 7]
    with pytest.raises(InvalidSettingError, match="Without duplicates there are 6 images"):
        pick(evidence, ratio=0.1, one_of_each=True)
    with pytest.raises(MissingStepError, match="Scan the pool first"):
        pick(evidence_of([0] * 4), one_of_each=True)


def test_an_option_that_came_later_leaves_no_trace_where_it_is_off():
    assert "one_of_each" not in SelectionOptions().to_json()
    assert SelectionOptions.from_json({"one_of_each": True}).to_json()["one_of_each"] is True


def test_a_content_labeled_twice_stays_twice_when_human_labels_are_kept():
    evidence = evidence_of([0] * 4, duplicate_of=[0, 0, 0, 3], human=[1, 2])
    assert pick(evidence, ratio=0.25, drop_duplicates=True, keep_human=True) == [1, 2, 3]


def test_too_few_different_images_says_which_ratio_would_do():
    evidence = evidence_of([0] * 10, duplicate_of=[0] * 8 + [8, 9])
    with pytest.raises(InvalidSettingError, match="Without duplicates there are 3 images, .* keeps 5. Raise it to 0.7"):
        pick(evidence, drop_duplicates=True)
    assert len(pick(evidence, ratio=0.7, drop_duplicates=True)) == 3


def test_a_cutoff_that_fits_the_pool_fits_without_its_duplicates():
    evidence = evidence_of([0] * 10, duplicate_of=[0, 0, 0, 0, 4, 5, 6, 7, 8, 9])
    assert pick(evidence, "cutoff", ratio=0.4, cutoff=0.4, drop_duplicates=True) == [4, 5, 6, 7, 8, 9]
    with pytest.raises(InvalidSettingError, match="cutoff of 0.6"):
        pick(evidence, "cutoff", ratio=0.4, cutoff=0.6, drop_duplicates=True)


@pytest.mark.parametrize(
    "option, said",
    [
        ({"class_balanced": True}, "pseudo-labels"),
        ({"min_per_class": 1}, "pseudo-labels"),
        ({"keep_human": True}, "a person labeled"),
        ({"same_annotation_budget": True}, "a person labeled"),
        ({"drop_duplicates": True}, "duplicates"),
    ],
)
def test_an_option_without_its_evidence_says_what_is_missing(option, said):
    with pytest.raises(MissingStepError, match=said):
        pick(Evidence(4, {"aum": np.arange(4.0)}), **option)


def test_a_class_is_sampled_with_the_pools_own_beta_distribution():
    rng = np.random.default_rng(0)
    dual, prob, labels = rng.random(60), rng.random(60), rng.integers(0, 3, 60)
    evidence = Evidence(60, {"dual": dual}, mean_prob=prob, labels=labels)
    balanced = select_coreset(evidence, "beta", pruning_ratio=0.8, seed=0, class_balanced=True)
    derived = balanced.settings["derived"]
    assert derived["pruning_ratio"] == 0.8
    assert derived["mu_d"] == pytest.approx(prob[np.argsort(-dual)[:10]].mean())


def test_negative_min_per_class_is_refused():
    with pytest.raises(InvalidSettingError, match="min_per_class"):
        pick(evidence_of([0, 1]), min_per_class=-1)


def test_each_class_keeps_a_part_of_its_share_and_the_rest_is_the_selectors_own():
    evidence = evidence_of([0] * 20 + [1] * 20)  # the hardest half is all of the first class
    assert np.bincount(evidence.labels[pick(evidence)]).tolist() == [20]
    chosen = pick(evidence, class_share=0.6)  # 6 of the 10 that chance would keep of the second
    assert np.bincount(evidence.labels[chosen]).tolist() == [14, 6]
    assert sorted(chosen) == [*range(14), *range(20, 26)]  # the hardest of each


def test_shares_of_classes_give_way_to_what_must_be_kept():
    evidence = evidence_of([0] * 20 + [1] * 20, human=range(17))
    chosen = pick(evidence, class_share=1.0, keep_human=True)
    assert len(chosen) == 20 and {*range(17)} <= {*chosen}
    assert np.bincount(evidence.labels[chosen]).tolist() == [17, 3]


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_outside_its_range_is_refused(share):
    with pytest.raises(InvalidSettingError, match="class_share"):
        pick(evidence_of([0, 1]), class_share=share)
