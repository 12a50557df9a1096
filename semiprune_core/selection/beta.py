"""Beta sampling (Cho et al. 2025): draw by DUAL, shifted towards easier images the more is pruned.

The weight of an image is the density of Beta(alpha_r, beta_r) at its mean probability times its DUAL score,

    beta_r = C (1 - mu_D) (1 - r^c_D),     alpha_r = C - beta_r,     C = 16,

where mu_D is the mean probability of the ten images with the highest DUAL score. The mean of the distribution moves
from mu_D at r = 0 to 1 at r -> 1.

Drawing k images one after the other without replacement, each time with probabilities proportional to the weights of
those that are left, is the same as adding an independent Gumbel variable to every log weight and keeping the k largest
sums. (The largest of log w_i + G_i is i with probability w_i / sum w; given that, the others are again independent
Gumbels about their log weights, cut off at the same value, so their order is the same experiment on the rest.) So the
draw is exact, needs logarithms only, and one sort does it; no weight is too small or too large for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

from semiprune_core.checks import check_range
from semiprune_core.errors import InvalidDataError
from semiprune_core.knobs import Knob
from semiprune_core.records import Evidence, FloatArray, IntArray
from semiprune_core.selection.base import SELECTORS, check_budget, column, ordered

TOP = 10  # images that say where difficult ones lie
CONCENTRATION = 16.0
SMALLEST = 1e-9  # of both parameters, so that mu_D = 0 or 1 and r -> 1 still leave a distribution


def beta_parameters(
    mu_d: float, pruning_ratio: float, c_d: float, concentration: float = CONCENTRATION
) -> tuple[float, float]:
    """(alpha_r, beta_r) of the paper for mu_D, r, c_D >= 1 and C > 0.

    >>> beta_parameters(0.25, 0.5, 1.0)
    (10.0, 6.0)
    """
    check_range("mu_d", mu_d, low=0, high=1)
    check_range("pruning_ratio", pruning_ratio, low=0, high=1, high_open=True)
    check_range("c_d", c_d, low=1)
    check_range("concentration", concentration, low=0, low_open=True)
    beta = concentration * (1 - mu_d) * (1 - pruning_ratio**c_d)
    beta = min(max(beta, SMALLEST), max(concentration - SMALLEST, SMALLEST))
    return max(concentration - beta, SMALLEST), beta


def beta_log_density(x: FloatArray, alpha: float, beta: float) -> FloatArray:
    """Logarithm of the Beta density at ``x`` in [0, 1]; -inf where it is 0, +inf where it has a pole.

    >>> np.exp(beta_log_density(np.array([0.0, 0.5, 1.0]), 2.0, 2.0)).round(6).tolist()
    [0.0, 1.5, 0.0]
    """
    check_range("alpha", alpha, low=0, low_open=True)
    check_range("beta", beta, low=0, low_open=True)
    x = np.asarray(x, dtype=np.float64)
    return np.asarray(xlogy(alpha - 1, x) + xlog1py(beta - 1, -x) - betaln(alpha, beta))


def difficult_mean(evidence: Evidence) -> float:
    """mu_D: the mean probability of the ten images with the highest DUAL score (of all, where there are fewer).

    >>> difficult_mean(Evidence(2, {"dual": np.array([0.3, 0.1])}, mean_prob=np.array([0.25, 0.75])))
    0.5
    """
    dual, mean_prob = column(evidence, "dual"), _probabilities(evidence)
    k = min(TOP, len(dual))
    if k == 0:
        return 0.5
    near = np.flatnonzero(dual >= np.partition(dual, len(dual) - k)[len(dual) - k])  # the top ten and their equals
    top = near[np.argsort(-dual[near], kind="stable")[:k]]
    return float(mean_prob[top].mean())


def whole_beta(
    evidence: Evidence, n_seen: int, budget: int, pruning_ratio: float, knobs: Mapping[str, Any]
) -> dict[str, Any]:
    """mu_D and r belong to the whole pool: a class or another part of it is sampled with the same distribution."""
    known = {"mu_d": difficult_mean(evidence), "pruning_ratio": pruning_ratio}
    return {**knobs, **{name: value for name, value in known.items() if knobs[name] is None}}


@SELECTORS.register(
    "beta",
    title="Beta sampling",
    explain="Draws images by DUAL times a Beta density over their mean probability, "
    "which moves towards easy images as more is pruned.",
    paper="arXiv:2502.06905",
    needs=("dual", "mean_prob"),
    nested=False,
    whole=whole_beta,
)
def select_beta(
    evidence: Evidence,
    budget: int,
    *,
    rng: np.random.Generator,
    c_d: Annotated[
        float,
        Knob(
            "How long Beta sampling prefers hard images as more is pruned; at least 1.",
            title="c_D",
            low=1,
            shown=(1.0, 15.0),
            step=0.1,
        ),
    ] = 5.0,
    concentration: float = CONCENTRATION,
    mu_d: float | None = None,
    pruning_ratio: float | None = None,
) -> IntArray:
    """(budget,) positions in the order they were drawn. ``concentration`` is C; mu_D and r follow from the evidence.

    Images at a pole of the density come first, ordered among themselves by a draw by DUAL. Images without weight (a
    DUAL score of 0, or a density of 0) are drawn only when all others are; then those nearest to the distribution's
    mean come first.

    >>> evidence = Evidence(3, {"dual": np.array([0.0, 0.2, 0.1])}, mean_prob=np.array([0.5, 0.5, 0.4]))
    >>> sorted(select_beta(evidence, 2, rng=np.random.default_rng(0)).tolist())
    [1, 2]
    """
    check_budget(evidence, budget)
    if budget == 0:
        return np.empty(0, dtype=np.int64)
    if mu_d is None:
        mu_d = difficult_mean(evidence)
    if pruning_ratio is None:
        pruning_ratio = 1 - budget / evidence.n_images
    alpha, beta = beta_parameters(mu_d, pruning_ratio, c_d, concentration)
    mean_prob, dual = _probabilities(evidence), column(evidence, "dual").astype(np.float64)
    chance = rng.gumbel(size=evidence.n_images)
    with np.errstate(divide="ignore"):
        log_dual = np.log(np.maximum(dual, 0.0))
    log_density = beta_log_density(mean_prob, alpha, beta)
    weightless = np.isneginf(log_dual) | np.isneginf(log_density)
    pole = np.isposinf(log_density) & ~weightless
    keys = log_dual + chance  # among the images at a pole
    rest = ~pole & ~weightless
    keys[rest] += log_density[rest]
    keys[weightless] = -np.abs(mean_prob[weightless] - alpha / (alpha + beta))
    order = ordered(-keys, rng)
    if not rest.all():
        tier = np.where(pole, 0, np.where(weightless, 2, 1))
        order = order[np.argsort(tier[order], kind="stable")]
    return order[:budget]


def _probabilities(evidence: Evidence) -> FloatArray:
    """(N,) the mean probabilities as float64 in [0, 1]."""
    values = column(evidence, "mean_prob").astype(np.float64)
    if len(values) and not -1e-6 <= values.min() <= values.max() <= 1 + 1e-6:
        raise InvalidDataError(
            f"Mean probabilities must lie in [0, 1], these reach from {values.min():g} to {values.max():g}. "
            "Compute the scores anew."
        )
    return np.clip(values, 0.0, 1.0)
