"""The paper's values as they stand in its tables, and defaults that always fit."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from semiprune_core.coresets import CoresetRequest
from semiprune_core.coresets.build import choose_coreset
from semiprune_core.errors import InvalidSettingError, UnknownNameError
from semiprune_core.methods import METHODS
from semiprune_core.records import Evidence
from semiprune_core.selection.beta import beta_parameters
from semiprune_core.selection.defaults import (
    AIMED_DOUBT,
    CUT_DOUBT,
    LEARNED_FROM,
    PAPER_BETA,
    PAPER_CUTOFFS,
    PAPER_RATIOS,
    SHAKY_FROM,
    TRIED_TO,
    Basis,
    default_knobs,
    learned_from,
    paper_beta,
    paper_cutoff,
)

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"


@pytest.mark.parametrize(
    "dataset, ratio, cutoff",
    [
        ("food101", 0.9, 0.8),
        ("sun397", 0.8, 0.2),
        ("cifar10", 0.5, 0.0),
        ("imagenet1k", 0.8, 0.5),
        ("caltech101", 0.7, 0.4),
    ],
)
def test_the_papers_cutoffs(dataset, ratio, cutoff):
    assert paper_cutoff(dataset, ratio) == cutoff


@pytest.mark.parametrize("dataset", list(PAPER_CUTOFFS))
def test_the_papers_cutoffs_never_exceed_the_ratio_and_rise_between_its_ratios(dataset):
    values = [paper_cutoff(dataset, percent / 100) for percent in range(100)]
    assert all(0 <= cutoff <= percent / 100 for percent, cutoff in enumerate(values))
    assert values == sorted(values)
    assert len(PAPER_CUTOFFS[dataset]) == len(PAPER_RATIOS)


def test_the_papers_beta_values():
    assert paper_beta("cifar100-c") == (70, 4.0)
    assert paper_beta("cifar10") == (30, 5.5)
    assert set(PAPER_BETA) == set(PAPER_CUTOFFS)


def test_a_data_set_the_paper_does_not_have_is_named():
    for ask in (paper_beta, lambda name: paper_cutoff(name, 0.5)):
        with pytest.raises(UnknownNameError, match="no values for 'mnist'. It has: food101"):
            ask("mnist")


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("n_images, n_epochs", [(1, 1), (6000, 20), (6000, 200), (50_000, None), (1_281_167, 90)])
def test_defaults_are_legal_everywhere(method, n_images, n_epochs):
    for percent in range(100):
        found = default_knobs(method, percent / 100, Basis(n_images, n_epochs))
        assert 0 <= found.selector.get("cutoff", 0) <= percent / 100
        beta_parameters(0.3, percent / 100, found.selector.get("c_d", 1.0))
        assert (found.scores.get("dual_epochs") or 1) <= (n_epochs or 1_000)


def test_small_pools_and_short_runs_get_their_own_values():
    assert default_knobs("semi_aum_cutoff", 0.9, Basis(6_000, 20)).selector == {"cutoff": 0.3}
    assert default_knobs("semi_aum_cutoff", 0.7, Basis(30_000, 20)).selector == {"cutoff": 0.1}
    assert default_knobs("semi_aum_cutoff", 0.9, Basis(50_000, 200)).selector == {"cutoff": 0.7}
    assert default_knobs("semi_dual_beta", 0.9, Basis(6_000, 20)).selector == {"c_d": 3.0}
    assert default_knobs("semi_dual_beta", 0.7, Basis(6_000, 20)).selector == {"c_d": 2.0}
    assert default_knobs("semi_dual_beta", 0.7, Basis(50_000, 200)).scores == {"dual_epochs": 30, "gamma": 1.0}
    assert default_knobs("random", 0.7, Basis(50_000, 200)).selector == {}
    too_small = Basis(12_000, 200)
    assert default_knobs("semi_aum_cutoff", 0.7, too_small).selector == {"cutoff": 0.1}


def pool(low, high, **changes):
    return dataclasses.replace(Basis.learned(np.linspace(low, high, 6_000), 30), **changes)


def cutoff(basis, ratio):
    return default_knobs("semi_aum_cutoff", ratio, basis).selector["cutoff"]


@pytest.mark.parametrize("ratio", PAPER_RATIOS)
def test_the_cutoff_is_the_share_that_was_hardly_learned(ratio):
    learned_from = LEARNED_FROM["accuracy"][PAPER_RATIOS.index(ratio)]
    share = (learned_from + 0.2) / 1.2  # of evenly spread values from -0.2 to 1
    assert cutoff(pool(-0.2, 1.0), ratio) == pytest.approx(min(share, ratio - 0.1), abs=0.026)  # steps of 0.05
    assert cutoff(pool(0.6, 1.0), ratio) == 0.0
    assert cutoff(pool(-1.0, -0.5), ratio) == pytest.approx(ratio - 0.1), "some of the easy end is always dropped"


def test_the_cutoff_grows_with_the_ratio_and_with_the_share_of_images_that_were_not_learned():
    for basis in (pool(-0.2, 1.0), pool(-0.6, 0.9), pool(-0.2, 1.0, aim="clean")):
        values = [cutoff(basis, percent / 100) for percent in range(100)]
        assert values == sorted(values)
        assert all(value <= percent / 100 for percent, value in enumerate(values))
    assert all(cutoff(pool(-0.6, 0.9), ratio) >= cutoff(pool(-0.2, 1.0), ratio) for ratio in PAPER_RATIOS)


def test_clean_labels_want_more_hard_images_left_out():
    usual, clean = pool(-0.2, 1.0), pool(-0.2, 1.0, aim="clean")
    assert all(cutoff(clean, ratio) > cutoff(usual, ratio) for ratio in PAPER_RATIOS)
    with pytest.raises(InvalidSettingError, match="aim"):
        Basis(10, aim="speed")


def test_no_gain_is_promised_where_nothing_was_tried():
    assert "1 to 2 points above Random" in default_knobs("semi_dual_beta", 0.7, Basis(6_000, 20)).why
    assert "from 1 point below" in default_knobs("semi_dual_beta", 0.9, Basis(6_000, 20)).why
    assert "never on so large a pool" in default_knobs("semi_dual_beta", 0.7, Basis(2 * TRIED_TO + 1, 20)).why
    assert "Not tried" in default_knobs("semi_dual_beta", 0.3, Basis(6_000, 20)).why
    for method in ("semi_el2n", "elfs", "fully_supervised"):
        assert "not tried" in default_knobs(method, 0.7, Basis(6_000, 20)).why


def trials(name):
    """What was tried on a pool, with the accuracy of each seed above Random's."""
    found = pd.read_csv(RESULTS / f"defaults_{name}.csv", dtype={"knob": str}, keep_default_na=False)
    random = found[found["method"] == "random"].set_index(["pruning_ratio", "seed"])["test_accuracy"]
    at = pd.MultiIndex.from_frame(found[["pruning_ratio", "seed"]])
    return found.assign(gain=100 * (found["test_accuracy"] - random.loc[at].to_numpy()))


@pytest.mark.parametrize("method, knob", [("semi_aum_cutoff", "cutoff"), ("semi_dual_beta", "c_d")])
@pytest.mark.parametrize("n", [3_000, 6_000, 12_000])
def test_the_starting_values_did_well_in_the_trials(n, method, knob):
    rows = trials(f"fashion_{n}")
    rows = rows[rows["method"] == method]
    values = rows["knob"].str.split("=").str[-1].astype(float)
    for ratio, gains in rows.groupby(["pruning_ratio", values])["gain"].mean().groupby(level=0):
        chosen = gains[ratio, default_knobs(method, ratio, Basis(n, 30)).selector[knob]]
        assert chosen > gains.max() - 1.0  # about what two seeds can tell
        assert chosen > (0.5 if ratio < SHAKY_FROM else -1.0)


def test_the_starting_values_were_above_random_on_pools_up_to_the_largest():
    rows = pd.read_csv(RESULTS / "sizes_fashion.csv")
    assert rows["n"].max() == TRIED_TO
    accuracy = rows.pivot_table(index=["n", "pruning_ratio", "seed"], columns="method", values="test_accuracy")
    gains = accuracy.sub(accuracy["random"], axis=0).groupby(level=["n", "pruning_ratio"]).mean()
    assert (gains.loc[[12_000, TRIED_TO], ["semi_aum_cutoff", "semi_dual_beta"]] > 0.005).all(axis=None)


def test_the_starting_cutoffs_did_no_worse_than_random_on_cifar10():
    rows = trials("cifar10_12k_6000")
    rows = rows[rows["method"] == "semi_aum_cutoff"].assign(aum_from=lambda one: one["aum_from"].astype(float))
    for ratio, some in rows.groupby("pruning_ratio"):
        far = (some["aum_from"] - learned_from(ratio, "accuracy")).abs()
        nearest = some[far == far.min()]["gain"]
        assert nearest.mean() > -nearest.std(ddof=1)  # the spread of two seeds
        assert nearest.mean() > some["gain"].max() - 3.0


def test_a_ratio_outside_its_range_is_refused():
    with pytest.raises(InvalidSettingError, match="pruning_ratio"):
        default_knobs("random", 1.0, Basis(10))


def on_features(doubt, n=2_000, **changes):
    """A scoring run on features that doubted the labels so much: probabilities that fall evenly to their hard end."""
    prob = np.clip(1 - 2 * doubt * np.linspace(1, 0, n), 0, 1)
    basis = Basis.learned(2 * prob - 1, 40).on_features(prob, 1 - prob)
    return dataclasses.replace(basis, **changes)


def test_the_doubt_is_one_minus_the_mean_probability():
    assert on_features(0.2).doubt == pytest.approx(0.2, abs=1e-3)


@pytest.mark.parametrize("ratio, times", list(zip(PAPER_RATIOS, CUT_DOUBT)))
def test_the_cutoff_of_a_run_on_features_grows_with_its_doubt(ratio, times):
    for doubt in (0.05, 0.1, 0.2, 0.3):
        assert cutoff(on_features(doubt), ratio) == pytest.approx(min(times * doubt, ratio - 0.1), abs=0.026)


@pytest.mark.parametrize("ratio", (0.5, 0.7, 0.8, 0.9))
def test_c_d_of_a_run_on_features_puts_the_aimed_share_below_the_mean_that_is_drawn_from(ratio):
    basis = on_features(0.2)
    knobs = default_knobs("semi_dual_beta", ratio, basis)
    alpha, beta = beta_parameters(basis.mu_d, ratio, knobs.selector["c_d"])
    aimed = dict(zip(PAPER_RATIOS, AIMED_DOUBT))[ratio] * 0.2
    share = float(np.mean(np.array(basis.prob) < alpha / (alpha + beta)))
    assert share == pytest.approx(aimed, abs=0.05) or knobs.selector["c_d"] in (1.0, 12.0)
    assert knobs.scores == {"dual_epochs": 40, "gamma": 1.0} and "doubted the labels (20%)" in knobs.why


@pytest.mark.parametrize("method", ("semi_aum_cutoff", "semi_dual_beta", "elfs"))
@pytest.mark.parametrize("doubt", (0.0, 0.01, 0.2, 0.5))
def test_starting_values_of_runs_on_features_are_legal_everywhere(method, doubt):
    for aim in ("accuracy", "clean"):
        for percent in range(100):
            found = default_knobs(method, percent / 100, on_features(doubt, aim=aim)).selector
            assert 0 <= found.get("cutoff", 0) <= percent / 100 and 1 <= found.get("c_d", 1) <= 12


@pytest.mark.parametrize("method", ["semi_aum_cutoff", "semi_dual_beta"])
def test_no_class_disappears_with_the_starting_values_of_a_run_on_features(method):
    """One class is learned at once: its AUM is high and its DUAL nothing, and without the least share it goes."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [1800, 200])
    prob = np.where(labels == 0, rng.uniform(0.2, 1, 2000), 0.999)
    evidence = Evidence(
        2000, {"aum": 2 * prob - 1, "dual": prob * (1 - prob)}, mean_prob=prob, labels=labels, human_mask=labels < 0
    )
    basis = Basis.learned(evidence.scores["aum"], 40).on_features(prob, evidence.scores["dual"])
    request = CoresetRequest(method=method, pruning_ratio=0.8)
    kept = choose_coreset(evidence, request, basis).indices
    assert (labels[kept] == 1).sum() >= 0.75 * 200 * 0.2
    free = choose_coreset(evidence, request.replace(class_share=0.0), basis).indices
    assert (labels[free] == 1).sum() < 10


def test_the_least_share_of_a_class_is_for_runs_on_features_alone():
    request = CoresetRequest(pruning_ratio=0.7)
    assert request.options(on_features(0.2))["class_share"] == 0.75
    assert request.options(Basis(6_000, 20))["class_share"] == 0
    assert request.replace(class_balanced=True).options(on_features(0.2))["class_share"] == 0
    assert request.replace(class_share=0.2).options(on_features(0.2))["class_share"] == 0.2
