"""What a table of trials says, against numbers worked out by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from semiprune_core.errors import InvalidDataError
from semiprune_core.evaluation.view import COLUMNS, half_interval, paired_difference, share, summary, view_of
from tests.support.trial_tables import TITLES, fake_trials, table, trial


def semi(rows, **options):
    return view_of(table(*rows), titles={**TITLES, "semi_aum_cutoff": "Semi-AUM"}, **options)


def five_seeds(differences, base=0.80, full=0.875):
    """Random at ``base`` and Semi-AUM so much above it, one seed each; the full data at ``full``."""
    rows = [("full", 0.0, 0, full)] if full else []
    for seed, difference in enumerate(differences):
        level = base + 0.01 * seed
        rows += [("random", 0.8, seed, level), ("semi_aum_cutoff", 0.8, seed, level + difference)]
    return semi(rows)


def test_mean_deviation_and_interval_by_hand():
    cell = semi([("random", 0.5, 0, 0.70), ("random", 0.5, 1, 0.72), ("random", 0.5, 2, 0.77)]).cell("random", 0.5)
    assert cell.mean == pytest.approx(0.73) and cell.n == 3
    assert cell.sd == pytest.approx(math.sqrt((0.03**2 + 0.01**2 + 0.04**2) / 2))
    assert cell.half == pytest.approx(4.302653 * cell.sd / math.sqrt(3), rel=1e-6)  # t(0.975, 2) from a table


@pytest.mark.parametrize("n", [2, 3, 5, 20])
def test_the_paired_interval_equals_its_slow_twin(n):
    rng = np.random.default_rng(n)
    of, base = rng.random(n), rng.random(n)
    found = paired_difference(dict(enumerate(of)), dict(enumerate(base)), n_test=10_000)
    twin = stats.ttest_rel(of, base).confidence_interval(0.95)
    assert (found.mean - found.half, found.mean + found.half) == pytest.approx((twin.low, twin.high))


def test_only_common_seeds_are_paired():
    found = paired_difference({0: 0.5, 1: 0.9, 7: 0.1}, {1: 0.8, 0: 0.6, 5: 0.0}, n_test=100)
    assert found.n == 2 and found.mean == pytest.approx(0.0)
    assert paired_difference({0: 0.5}, {1: 0.5}, n_test=100) is None


def test_fewer_than_two_seeds_have_no_interval():
    assert half_interval([]) is None and half_interval([0.3]) is None
    found = paired_difference({0: 0.5}, {0: 0.4}, n_test=100)
    assert found.half is None and found.verdict == "unknown"


def test_equal_differences_on_few_test_images_prove_nothing():
    of, base = {0: 7 / 12, 1: 8 / 12}, {0: 6 / 12, 1: 7 / 12}
    few = paired_difference(of, base, n_test=12)
    assert few.mean == pytest.approx(1 / 12) and few.verdict == "unclear"
    assert few.half == pytest.approx(12.706205 / 12 / math.sqrt(2), rel=1e-6)  # t(0.975, 1), a deviation of one image
    assert paired_difference(of, base, n_test=12_000).verdict == "above"


@pytest.mark.parametrize(
    "differences, verdict",
    [((0.02, 0.03, 0.04), "above"), ((-0.02, -0.03, -0.04), "below"), ((0.02, -0.03, 0.04), "unclear")],
)
def test_the_verdict_goes_by_the_interval(differences, verdict):
    assert five_seeds(differences).cell("semi_aum_cutoff", 0.8).difference.verdict == verdict


def test_marks_share_ties_as_printed_and_skip_what_sees_more_labels():
    view = semi(
        [
            ("random", 0.5, 0, 0.70),
            ("a", 0.5, 0, 0.8001),
            ("b", 0.5, 0, 0.8004),
            ("c", 0.5, 0, 0.75),
            ("oracle", 0.5, 0, 0.99),
        ],
        unranked={"oracle"},
    )
    assert view.marks(0.5) == {"a": "best", "b": "best", "c": "second"}
    assert view.leader(0.5) == "b"


def test_one_method_alone_is_not_marked():
    assert semi([("random", 0.5, 0, 0.70)]).marks(0.5) == {}
    assert semi([("random", 0.5, 0, 0.70)]).marks(0.9) == {}


UNEVEN = [
    ("random", 0.8, 0, 0.80),
    ("random", 0.8, 1, 0.70),
    ("semi_aum_cutoff", 0.8, 0, 0.81),
    ("semi_aum_cutoff", 0.8, 1, 0.72),
    ("semi_dual_beta", 0.8, 0, 0.805),
]


def test_methods_are_ranked_by_the_seeds_they_share():
    view = semi(UNEVEN)  # the mean of DUAL is the highest, and on its only seed AUM is better
    assert view.standing(0.8) == pytest.approx({"random": 0.80, "semi_aum_cutoff": 0.81, "semi_dual_beta": 0.805})
    assert view.marks(0.8) == {"semi_aum_cutoff": "best", "semi_dual_beta": "second"}
    assert view.leader(0.8) == "semi_aum_cutoff" and view.sentence().startswith("At 80% pruning Semi-AUM")
    assert summary(view).set_index("method").loc["semi_aum_cutoff", "mark"] == "best"
    assert view.has_uneven_seeds and not semi(UNEVEN[:-1]).has_uneven_seeds
    assert not semi(UNEVEN, unranked=["semi_dual_beta"]).has_uneven_seeds


def test_a_method_that_shares_no_seed_is_shown_and_not_ranked():
    view = semi([*UNEVEN[:-1], ("semi_dual_beta", 0.8, 7, 0.99)])
    assert view.cell("semi_dual_beta", 0.8).mean == 0.99
    assert view.standing(0.8) == pytest.approx({"random": 0.75, "semi_aum_cutoff": 0.765})
    assert view.leader(0.8) == "semi_aum_cutoff" and "semi_dual_beta" not in view.marks(0.8)


def test_the_leader_of_nothing_comparable_is_still_somebody():
    apart = semi([("random", 0.8, 1, 0.5), ("random", 0.8, 2, 0.5), ("semi_aum_cutoff", 0.8, 0, 0.6)])
    assert apart.marks(0.8) == {} and apart.leader(0.8) == "semi_aum_cutoff"
    oracle = semi([("random", 0.8, 0, 0.5), ("oracle", 0.8, 0, 0.9)], unranked=["oracle"])
    assert oracle.marks(0.8) == {} and oracle.leader(0.8) == "oracle"
    assert semi([("random", 0.8, 0, 0.5)]).leader(0.8) == "random" and semi([]).leader(0.8) is None


def test_everything_equal_is_all_best():
    assert set(semi([("random", 0.5, 0, 0.7), ("a", 0.5, 0, 0.7)]).marks(0.5).values()) == {"best"}


def test_the_sentence_of_the_issue():
    differences = [0.033, 0.049, 0.041, 0.036, 0.046]  # mean 0.041, deviation 0.00667; t(0.975, 4) = 2.776
    view = five_seeds(differences, full=0.897)  # 0.861 of 0.897
    assert 100 * 2.776 * np.std(differences, ddof=1) / math.sqrt(5) == pytest.approx(0.8, abs=0.05)
    assert view.sentence() == (
        "At 80% pruning Semi-AUM keeps 96% of full accuracy, 4.1 ± 0.8 points above random (5 seeds)."
    )


@pytest.mark.parametrize(
    "view, said",
    [
        (
            five_seeds([0.03, -0.02, 0.01]),
            "keeps 93% of full accuracy, 0.7 ± 6.3 points above random (3 seeds): that may be chance, the interval "
            "contains zero.",
        ),
        (five_seeds([-0.05, -0.04, -0.06]), "keeps 87% of full accuracy, 5.0 ± 2.5 points below random (3 seeds)."),
        (
            five_seeds([0.02]),
            "keeps 94% of full accuracy, 2.0 points above random, from one seed: this may be chance. "
            "Run more seeds to find out.",
        ),
        (
            five_seeds([0.02, 0.03, 0.01], full=None),
            "reaches 83.0% accuracy, 2.0 ± 2.5 points above random (3 seeds): that may be chance, the interval "
            "contains zero.",
        ),
        (
            semi([("full", 0.0, 0, 0.8), ("semi_aum_cutoff", 0.8, 0, 0.6), ("semi_aum_cutoff", 0.8, 1, 0.6)]),
            "keeps 75% of full accuracy (2 seeds). Random was not run there, so it is unknown whether it does as well.",
        ),
        (
            semi([("random", 0.8, 1, 0.5), ("semi_aum_cutoff", 0.8, 0, 0.6)]),
            "reaches 60.0% accuracy (1 seed). It shares no seed with Random, so the two cannot be compared.",
        ),
    ],
)
def test_the_sentence_never_says_more_than_is_known(view, said):
    assert view.sentence(0.8, "semi_aum_cutoff") == f"At 80% pruning Semi-AUM {said}"


def test_the_sentence_without_another_method_or_without_anything():
    assert semi([("random", 0.5, 0, 0.7)]).sentence().endswith("(1 seed). No other method was run there.")
    assert semi([("full", 0.0, 0, 0.9)]).sentence() == (
        "Training on all images reaches 90.0% accuracy (1 seed). No coreset has been trained yet."
    )
    assert semi([]).sentence() == "No training has finished yet."
    assert semi([("random", 0.5, 0, 0.7)]).sentence(0.3) == "At 30% pruning nothing was measured."


def ranked(levels, noise, **options):
    """Methods at ``levels`` at ratio 0.8 over three seeds, equally far apart but for the second, which wavers."""
    rows = [(name, 0.8, seed, level + 0.01 * seed) for name, level in levels.items() for seed in range(3)]
    wavering = list(levels)[1]
    return semi([(n, r, s, value + noise * (s - 1) * (n == wavering)) for n, r, s, value in rows], **options)


def test_rivals_that_may_be_as_good_are_named_and_better_ones_first():
    levels = {"random": 0.5, "semi_dual_beta": 0.69, "semi_aum_cutoff": 0.70, "zcore": 0.6, "fully_supervised": 0.9}
    view = ranked(levels, noise=0.05, unranked=["fully_supervised"])
    assert view.rivals_sentence() == "Not clearly different with these seeds: Semi-DUAL+Beta."
    assert view.rivals_sentence(0.8, "zcore") == (
        "Better, beyond chance: Semi-AUM. Not clearly different with these seeds: Semi-DUAL+Beta."
    )
    against = view.against("zcore", 0.8)
    assert list(against) == ["semi_dual_beta", "semi_aum_cutoff"]
    assert against["semi_aum_cutoff"].mean == pytest.approx(0.1) and against["semi_dual_beta"].verdict == "unclear"


def test_without_rivals_or_with_one_seed_nothing_is_said_of_them():
    assert ranked({"random": 0.5, "semi_dual_beta": 0.69, "semi_aum_cutoff": 0.7}, noise=0.0).rivals_sentence() == ""
    assert five_seeds([0.02, 0.03]).rivals_sentence() == ""
    alone = [("random", 0.8, 0, 0.5), ("a", 0.8, 0, 0.6), ("b", 0.8, 0, 0.7)]
    assert semi(alone).rivals_sentence() == "" == semi([]).rivals_sentence()
    assert semi(alone).rivals_sentence(0.3) == "" == semi(alone).rivals_sentence(0.8, "random")


@pytest.mark.parametrize(
    "value, said", [(0.9649, "96%"), (0.997, "99.7%"), (1.0, "100%"), (1.0041, "100.4%"), (1.2, "120%")]
)
def test_a_share_near_all_is_not_rounded_to_all(value, said):
    assert share(value) == said


def test_the_first_sentence_is_about_the_ratio_nearest_80_with_a_rival():
    rows = [("random", ratio, 0, 0.5) for ratio in (0.5, 0.7, 0.8, 0.9)] + [
        ("a", ratio, 0, 0.6) for ratio in (0.5, 0.7)
    ]
    assert semi(rows).usual_ratio() == 0.7


def test_missing_cells_stay_missing_and_planned_ones_keep_their_place():
    view = semi(
        [("random", 0.3, 0, 0.8), ("a", 0.9, 0, 0.5)], methods=("full", "b", "a", "random"), ratios=(0.3, 0.5, 0.9)
    )
    assert view.methods == ("random", "b", "a") and view.ratios == (0.3, 0.5, 0.9)
    assert view.cell("a", 0.3) is None and view.cell("a", 0.9).difference is None
    assert [cell.pruning_ratio for cell in view.row("random")] == [0.3]


def test_a_trial_that_failed_leaves_its_note_and_a_repeated_one_counts_once():
    rows = [
        trial("random", 0.5, 0, 0.1),
        trial("random", 0.5, 0, 0.7),
        trial("random", 0.5, 1, None, note="A class has no image left."),
        trial("a", 0.5, 1, None, note="A class has no image left."),
    ]
    view = view_of(pd.DataFrame(rows, columns=list(COLUMNS)))
    assert view.cell("random", 0.5).by_seed == {0: 0.7}
    assert view.notes == ("A class has no image left.",)
    assert view.methods == ("random", "a") and view.cell("a", 0.5) is None


def test_ratios_that_differ_by_rounding_are_one():
    view = semi([("random", 0.7, 0, 0.8), ("random", 1 - 0.3, 1, 0.9), ("random", 0.7000000001, 2, 0.7)])
    assert view.ratios == (0.7,) and view.cell("random", 0.7).n == 3


def test_an_accuracy_of_zero_on_the_full_data_gives_no_share():
    assert semi([("full", 0.0, 0, 0.0), ("random", 0.5, 0, 0.1)]).cell("random", 0.5).share_of_full is None


def test_the_summary_has_a_row_for_each_cell_and_says_what_it_does_not_know():
    found = summary(five_seeds([0.02]))
    assert found["method"].tolist() == ["full", "random", "semi_aum_cutoff"]
    last = found.iloc[-1]
    assert last["difference_to_random"] == pytest.approx(0.02) and last["n_common_seeds"] == 1
    assert math.isnan(last["sd"]) and math.isnan(last["difference_half_interval_95"])
    assert last["share_of_full"] == pytest.approx(0.82 / 0.875) and last["mark"] == "best"
    assert summary(semi([])).empty


def test_another_table_is_refused_by_the_column_it_lacks():
    with pytest.raises(InvalidDataError, match="no column minutes"):
        view_of(fake_trials().drop(columns="minutes"))


def test_minutes_of_a_cell_are_of_one_training_and_of_the_view_of_all():
    view = view_of(
        pd.DataFrame(
            [
                trial("random", 0.5, 0, 0.7, minutes=2),
                trial("random", 0.5, 1, 0.7, minutes=4),
                trial("full", 0, 0, 0.8, minutes=9),
            ],
            columns=list(COLUMNS),
        )
    )
    assert view.cell("random", 0.5).minutes == 3 and view.minutes == 15 and view.n_trials == 3


def test_a_trial_that_was_not_trained_again_costs_nothing_and_cheapens_nothing():
    rows = [trial("random", 0.5, 0, 0.7, minutes=2.0), trial("random", 0.5, 1, 0.7, minutes=0.0)]
    view = view_of(pd.DataFrame(rows, columns=list(COLUMNS)))
    assert view.cell("random", 0.5).minutes == 2.0 and view.minutes == 2.0
