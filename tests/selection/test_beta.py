"""Beta sampling: parameters and density against the paper and scipy, the draw against exact probabilities."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from semiprune_core.errors import InvalidDataError, InvalidSettingError
from semiprune_core.records import Evidence
from semiprune_core.selection.beta import beta_log_density, beta_parameters, difficult_mean, select_beta


def evidence_of(dual, mean_prob):
    return Evidence(len(dual), {"dual": np.asarray(dual, float)}, mean_prob=np.asarray(mean_prob, float))


@pytest.mark.parametrize("mu_d", [0.1, 0.4, 0.9])
@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("c_d", [1.0, 4.0, 11.0])
def test_parameters_are_the_papers(mu_d, ratio, c_d):
    alpha, beta = beta_parameters(mu_d, ratio, c_d)
    assert beta == pytest.approx(16 * (1 - mu_d) * (1 - ratio**c_d))
    assert alpha == pytest.approx(16 - beta)


def test_the_mean_goes_from_mu_d_to_one():
    means = [alpha / (alpha + beta) for alpha, beta in (beta_parameters(0.3, r, 4) for r in (0.0, 0.5, 0.9, 0.999))]
    assert means[0] == pytest.approx(0.3)
    assert means == sorted(means) and means[-1] > 0.997


def test_parameters_pinned_by_hand():
    assert beta_parameters(0.25, 0.0, 5) == (4.0, 12.0)
    assert beta_parameters(0.25, 0.5, 2) == (7.0, 9.0)
    assert beta_parameters(0.5, 0.999, 1)[1] == pytest.approx(0.008)
    assert beta_parameters(0.25, 0.5, 2, concentration=4) == (1.75, 2.25)


@pytest.mark.parametrize("mu_d, ratio", [(0.0, 0.0), (1.0, 0.0), (1.0, 0.9), (0.5, 1 - 1e-16)])
def test_the_ends_still_leave_a_distribution(mu_d, ratio):
    alpha, beta = beta_parameters(mu_d, ratio, 1.0)
    assert alpha > 0 and beta > 0
    assert np.isfinite(beta_log_density(np.array([0.1, 0.5, 0.9]), alpha, beta)).all()


@pytest.mark.parametrize(
    "wrong",
    [(-0.1, 0.5, 5.0), (1.1, 0.5, 5.0), (0.5, 1.0, 5.0), (0.5, 0.5, 0.9), (0.5, 0.5, 5.0, 0.0), (0.5, math.nan, 5.0)],
)
def test_parameters_outside_the_paper_are_refused(wrong):
    with pytest.raises(InvalidSettingError):
        beta_parameters(*wrong)


@pytest.mark.parametrize("alpha, beta", [(0.5, 0.5), (1, 1), (2, 5), (15.9, 0.1), (4, 12)])
def test_density_equals_scipys(alpha, beta):
    x = np.linspace(0.01, 0.99, 50)
    np.testing.assert_allclose(beta_log_density(x, alpha, beta), stats.beta.logpdf(x, alpha, beta), rtol=1e-9)


def test_density_at_the_ends():
    ends = np.array([0.0, 1.0])
    assert beta_log_density(ends, 2, 0.5).tolist() == [-np.inf, np.inf]
    assert beta_log_density(ends, 0.5, 2).tolist() == [np.inf, -np.inf]
    assert beta_log_density(ends, 1, 1).tolist() == [0, 0]


def test_mu_d_is_the_mean_probability_of_the_ten_highest_dual_scores():
    dual = np.arange(30.0)
    mean_prob = np.where(dual >= 20, 0.25, 0.9)
    mean_prob[29] = 0.35
    assert difficult_mean(evidence_of(dual, mean_prob)) == pytest.approx(0.26)
    assert difficult_mean(evidence_of(dual[:4], mean_prob[:4])) == pytest.approx(0.9)


def test_mu_d_does_not_change_with_the_seed_when_scores_are_tied():
    assert difficult_mean(evidence_of(np.ones(30), np.linspace(0, 1, 30))) == pytest.approx(
        np.linspace(0, 1, 30)[:10].mean()
    )


def exact_inclusion(weights, k):
    """The chance of each image to be among the first k of draws without replacement, by going through all orders."""
    chance = np.zeros(len(weights))
    for order in itertools.permutations(range(len(weights)), k):
        probability, left = 1.0, sum(weights)
        for i in order:
            probability *= weights[i] / left
            left -= weights[i]
        chance[list(order)] += probability
    return chance


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_the_draw_has_the_chances_of_drawing_one_by_one(budget):
    dual, prob = np.array([0.05, 0.1, 0.2, 0.15, 0.3]), np.array([0.2, 0.5, 0.6, 0.8, 0.4])
    evidence = evidence_of(dual, prob)
    alpha, beta = beta_parameters(0.5, 0.5, 2, concentration=6)
    expected = exact_inclusion((stats.beta.pdf(prob, alpha, beta) * dual).tolist(), budget)
    rng, rounds = np.random.default_rng(0), 8000
    count = np.zeros(5)
    for _ in range(rounds):
        knobs = {"mu_d": 0.5, "pruning_ratio": 0.5, "c_d": 2, "concentration": 6}
        count[select_beta(evidence, budget, rng=rng, **knobs)] += 1
    spread = np.sqrt(expected * (1 - expected) / rounds)
    assert (np.abs(count / rounds - expected) <= 4 * spread + 1e-12).all()


def test_images_without_weight_come_last_and_nearest_to_the_mean_first():
    dual = [0.0, 0.2, 0.0, 0.1, 0.0]
    prob = [0.1, 0.5, 0.7, 0.6, 0.4]
    order = select_beta(evidence_of(dual, prob), 5, rng=np.random.default_rng(0), mu_d=0.7, pruning_ratio=0.0)
    assert set(order[:2]) == {1, 3}
    assert order[2:].tolist() == [2, 4, 0]


def test_images_at_a_pole_come_first():
    """At r near 1 beta_r falls below 1 and the density at probability 1 is infinite."""
    dual, prob = [0.1, 0.2, 0.3, 0.0], [0.9, 1.0, 0.0, 1.0]
    for seed in range(20):
        order = select_beta(evidence_of(dual, prob), 4, rng=np.random.default_rng(seed), pruning_ratio=0.999)
        assert order[0] == 1  # a pole with weight; image 3 has a pole and no DUAL, image 2 a density of 0
        assert order[1] == 0
        assert set(order[2:]) == {2, 3}


def test_weights_far_below_the_smallest_float_still_rank():
    prob = np.full(6, 1e-40)
    prob[:3] = 1e-20
    evidence = evidence_of(np.full(6, 1e-300), prob)
    for seed in range(20):
        chosen = select_beta(evidence, 3, rng=np.random.default_rng(seed), mu_d=0.9, pruning_ratio=0.9)
        assert set(chosen) == {0, 1, 2}  # density ratio 1e-20^14: nobody else has a chance


def test_more_pruning_keeps_easier_images():
    rng = np.random.default_rng(4)
    prob = rng.random(4000)
    evidence = evidence_of(0.2 * (1 - prob) * prob + 0.01, prob)
    kept = [prob[select_beta(evidence, 400, rng=rng, pruning_ratio=r, mu_d=0.3)].mean() for r in (0.0, 0.8, 0.95)]
    assert kept[0] < kept[1] < kept[2]


def test_the_ratio_comes_from_the_budget_when_it_is_not_given():
    evidence = evidence_of(np.linspace(0.1, 0.2, 20), np.linspace(0.1, 0.9, 20))
    one = select_beta(evidence, 5, rng=np.random.default_rng(1))
    other = select_beta(evidence, 5, rng=np.random.default_rng(1), pruning_ratio=0.75)
    assert one.tolist() == other.tolist()


def test_c_d_below_one_and_impossible_probabilities_are_refused():
    evidence = evidence_of([0.1, 0.2], [0.5, 0.6])
    with pytest.raises(InvalidSettingError, match="c_d must be at least 1, got 0.5"):
        select_beta(evidence, 1, rng=np.random.default_rng(0), c_d=0.5)
    with pytest.raises(InvalidDataError, match=r"Mean probabilities must lie in \[0, 1\]"):
        select_beta(evidence_of([0.1, 0.2], [0.5, 1.6]), 1, rng=np.random.default_rng(0))
