"""How sure a lead is: on noise of seeds and of compared images the interval holds 0 as often as it says."""

import numpy as np
import pytest

from semiprune_core.results.lead import Waver, half_interval, image_waver, packed, seed_waver, unpacked
from semiprune_core.results.search import RANDOM, best_values
from semiprune_core.search import trial_table
from semiprune_core.trials import Trial
from tests.support.effort import FULL

AUM = "semi_aum_cutoff"
N_DRAWS = 1000 if FULL else 200


@pytest.mark.parametrize("n", [1, 7, 8, 150])
def test_right_answers_survive_packing(n):
    right = np.random.default_rng(n).random(n) < 0.7
    assert unpacked(packed(right), n).tolist() == right.tolist()


def test_images_waver_as_a_plain_mean_does_where_seeds_agree():
    lead = np.array([1, 0, 0, -1, 1, 1, 0, 0], float)
    waver = image_waver(np.stack([lead, lead, lead]))
    assert waver.variance == pytest.approx(lead.var(ddof=1) / 8) and waver.freedom == 7


def test_what_is_left_beside_seeds_and_images_counts_once():
    """Noise of single answers alone: over many draws both parts together are the variance of the mean, not twice."""
    rng = np.random.default_rng(3)
    parts, means = [], []
    for _ in range(2000):
        leads = rng.normal(size=(3, 40))
        seeds = leads.mean(axis=1).var(ddof=1) / 3
        parts.append(seeds + leads.mean(axis=0).var(ddof=1) / 40 - seeds_left(leads))
        means.append(leads.mean())
    assert np.mean(parts) == pytest.approx(np.var(means), rel=0.1)


def seeds_left(leads):
    """The slow twin: what is left of a two-way table, by its sum of squares, as a variance of the mean."""
    n_seeds, n_images = leads.shape
    total = 0.0
    for seed in range(n_seeds):
        for image in range(n_images):
            left = leads[seed, image] - leads[seed].mean() - leads[:, image].mean() + leads.mean()
            total += left**2
    return total / ((n_seeds - 1) * (n_images - 1)) / (n_seeds * n_images)


def test_the_variance_of_images_is_that_of_the_slow_twin():
    rng = np.random.default_rng(5)
    leads = rng.integers(-1, 2, 20) * (rng.random((3, 20)) < 0.8)  # images on which all seeds go the same way, mostly
    by_hand = leads.mean(axis=0).var(ddof=1) / 20 - seeds_left(leads)
    assert image_waver(leads).variance == pytest.approx(by_hand) and by_hand > 0


def test_one_cause_alone_gives_students_interval():
    assert half_interval([Waver(0.04, 1)]) == pytest.approx(12.706205 * 0.2)
    assert half_interval([Waver(0.04, 1), Waver(0.0, 149)]) == pytest.approx(12.706205 * 0.2)
    assert half_interval([]) == 0.0


def test_seeds_never_waver_by_less_than_one_image():
    assert seed_waver(np.array([[0.5, 0.5]]), np.array([0.4, 0.4]), resolution=0.01).variance == 0.01**2 / 2


def small_search(rng, *, n=150, n_values=6, n_seeds=3, lead=0.0, kept=True):
    """Probes on ``n`` images: values that are as good as Random on all images there are, but not on these ones.

    An image is hard or easy for all; each coreset gets some wrong by itself. Values have no chance in them: their
    answers are the same with every seed.
    """
    easy = rng.beta(4, 1, n)
    trials = []

    def add(method, seed, right, **knobs):
        result = {"n_train": 10, "n_test": n, "n_correct": int(right.sum()), "right": packed(right) if kept else None}
        trials.append((Trial(method=method, pruning_ratio=0.8, seed=seed, knobs=knobs), result))

    for seed in range(n_seeds):
        add(RANDOM, seed, rng.random(n) < easy)
    for number in range(n_values):
        right = rng.random(n) < np.clip(easy + (lead if number else 0.0), 0, 1)
        for seed in range(n_seeds):
            add(AUM, seed, right, cutoff=number / 10)
    return trial_table(trials)


def share_of(verdict, **options):
    rng = np.random.default_rng(11)
    return np.mean([best_values(small_search(rng, **options), None)[0].verdict == verdict for _ in range(N_DRAWS)])


def test_a_lead_that_the_compared_images_gave_by_chance_is_not_taken():
    """At most one search of twenty, and by the seeds alone (answers not kept) one of four and more."""
    most = 0.05 + 3 * np.sqrt(0.05 * 0.95 / N_DRAWS)
    assert share_of("better") <= most
    assert share_of("better", kept=False) > 0.25


def test_a_lead_that_is_there_is_taken_where_the_images_suffice():
    assert share_of("better", n=1500, lead=0.15) > 0.9
