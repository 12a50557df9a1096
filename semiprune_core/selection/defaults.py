"""The paper's own values, and values to start from where nothing was searched yet.

The tables are those of the paper's appendix "Hyperparameters for Selection Methods". They were tuned on pools of 8,000
to 1.3 million images whose scoring runs had 90 or 200 epochs, and they do not carry over to small pools or short runs:
at r = 0.7 their median cutoff, 0.4, loses 3.4 points to Random on 6,000 Fashion-MNIST images, and c_D = 5 gains next to
nothing. What was tried instead, ``benchmarks/defaults.py`` (a tenth labeled, scoring run of 30 epochs, coresets trained
with true labels), points above Random, mean of 2 seeds; behind a cutoff the AUM of the first image that it keeps:

    r      pool              Semi-AUM, by cutoff                                     Semi-DUAL, by c_D
    0.5    Fashion  6,000    0: +1.6           0.1: +1.0         0.2: -0.6           2: +1.9
    0.7    Fashion  3,000    0: -2.0           0.1 (0.11): +2.3                      2: +2.3    3: +0.4
           Fashion  6,000                      0.1: +1.8         0.2: +0.9           2: +2.0    3: +1.8    5: +0.3
           Fashion 12,000    0: -1.9           0.1: +1.8                             2: +0.8    3: -0.5
           CIFAR-10 6,000    0.1 (-0.16): -6.3 0.4 (0.29): -1.1  0.5 (0.40): -0.4    2: -0.4    3: -1.7
    0.8    Fashion  3,000    0.1 (0.11): -1.6  0.2 (0.37): +1.9                      2: +1.9    3: +0.4
           Fashion  6,000    0.1: +0.6         0.2: +1.3         0.3: +0.0           2: +1.6    3: +1.4    5: -0.4
           Fashion 12,000    0.1: +0.7         0.2: +1.1                             2: +1.9    3: +1.7
           CIFAR-10 6,000    0.2 (0.04): -7.3  0.5 (0.40): +1.6  0.6 (0.51): +1.2    2: -0.1    3: -0.5
    0.9    Fashion  3,000    0.2 (0.37): -5.5  0.3 (0.55): +1.6                      2: +0.6    3: +2.5
           Fashion  6,000                      0.3: -0.7         0.4: -1.0           2: -0.8    3: -0.0    5: -0.8
           Fashion 12,000    0.2: +0.3         0.3: +0.5                             2: +0.7    3: +1.7
           CIFAR-10 6,000    0.3 (0.18): -5.6  0.6 (0.51): +0.5  0.7 (0.62): +1.6    2: +0.3    3: +0.6

The best cutoffs of the two data sets have little in common, but the AUM where they begin has: about 0.1 to 0.4 at
0.7, 0.4 at 0.8 and 0.55 to 0.6 at 0.9. So the default cutoff is the share of images below such a mark: images that
the scoring run hardly learned. The share of wrong pseudo-labels does not tell: with 30 labels for 3,000 Fashion-MNIST
images, 30% of them wrong, small cutoffs were best as with 19%. Whether the coreset is then trained on with true
labels or with its pseudo-labels makes no difference to that either: at r = 0.7 on the 3,000 images, with the
pseudo-labels as they are, a cutoff of 0.1 was 0.6 above Random and one of 0.5, with a third of the wrong labels, 4.8
below, and 2.5 below with balanced classes (one seed). Large cutoffs are for those who want few wrong labels (the aim
``clean``).

Scoring runs on pretrained features (``start`` is frozen) have values of their own. What suits them depends on how far
the run believes its labels: with the doubt d, one minus the mean probability of all images, cutoffs of 0.8 d at
r = 0.7, d at 0.8 and 1.8 d at 0.9 do well on pools as unlike as three classes (d = 0.08), ten (0.18) and fifty (0.46),
where no fixed cutoff and no fixed AUM does. Beta sampling does well where a share of 1.2 d, 1.4 d and 2.1 d of the
images lies below the distribution's mean; c_D follows from that. A class that the encoder tells apart at a glance has
next to no hard images and would disappear, so each class keeps three quarters of its share at least.
``benchmarks/frozen_defaults.py``, docs/probes.md.

All trials from scratch are in ``benchmarks/results/defaults_*.csv``. Two seeds on two data sets, and the best was
chosen on these very trials, so the gains are a little flattering: search your own. How these values then did on
Fashion-MNIST pools of 3,000, 12,000 and 60,000 images is in ``benchmarks/results/sizes_fashion.csv``
(``benchmarks/sizes.py``, 3 seeds).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from semiprune_core.checks import check_choice, check_range
from semiprune_core.errors import UnknownNameError
from semiprune_core.records import Evidence, FloatArray
from semiprune_core.selection.beta import difficult_mean

Row = TypeVar("Row")
PAPER_RATIOS = (0.3, 0.5, 0.7, 0.8, 0.9)
PAPER_CUTOFFS: dict[str, tuple[float, ...]] = {  # Semi-AUM+Cutoff, by pruning ratio
    "food101": (0.1, 0.3, 0.5, 0.6, 0.8),
    "sun397": (0.1, 0.1, 0.1, 0.2, 0.2),
    "cifar100-c": (0.1, 0.2, 0.4, 0.5, 0.7),
    "tiny-imagenet-c": (0.2, 0.4, 0.6, 0.7, 0.8),
    "cifar100-lt-0.1": (0.1, 0.4, 0.5, 0.6, 0.8),
    "caltech101": (0.0, 0.1, 0.4, 0.5, 0.6),
    "cifar10": (0.0, 0.0, 0.1, 0.2, 0.4),
    "cifar100": (0.1, 0.2, 0.4, 0.6, 0.7),
    "imagenet1k": (0.1, 0.3, 0.5, 0.5, 0.7),
}
PAPER_BETA: dict[str, tuple[int, float]] = {  # Semi-DUAL+Beta: (T, c_D)
    "food101": (30, 5.0),
    "sun397": (30, 5.0),
    "cifar100-c": (70, 4.0),
    "tiny-imagenet-c": (50, 6.0),
    "cifar100-lt-0.1": (30, 6.0),
    "caltech101": (30, 5.0),
    "cifar10": (30, 5.5),
    "cifar100": (30, 4.0),
    "imagenet1k": (60, 11.0),
}
PAPER_MIN_IMAGES, PAPER_MIN_EPOCHS = 50_000, 90
"""Most of the paper's pools are as large, and all of its runs as long; smaller pools get what was tried here."""
ACCURACY, CLEAN = AIMS = ("accuracy", "clean")
SHORT_CUTOFFS = (0.0, 0.0, 0.1, 0.2, 0.3)  # by PAPER_RATIOS, for smaller pools and shorter runs of unknown AUM
LEARNED_FROM = {ACCURACY: (-0.1, 0.1, 0.3, 0.42, 0.58), CLEAN: (0.3, 0.5, 0.78, 0.82, 0.85)}
"""By PAPER_RATIOS: images of a lower AUM are dropped, as they were not learned well enough to be of use."""
CUTOFF_STEP = 0.05
EASY_LEFT = 0.1
"""However little was learned, this share of the pool goes at the easy end, as with the paper's largest cutoffs."""
N_QUANTILES = 101
SHORT_C_DS = (2.0, 2.0, 2.0, 2.0, 3.0)
TRIED, TRIED_FROM, TRIED_TO = ("semi_aum_cutoff", "semi_dual_beta"), 0.5, 60_000
"""The methods, the lowest ratio and the largest pool of the trials; beyond 12,000 images starting values alone."""
SHAKY_FROM = 0.85
"""From this ratio on the gain was small, or none, on one of the pools."""
SCORED_EPOCHS = 30  # T: the median of the paper's table
BY_CUTOFF = (
    "semi_aum_cutoff",
    "semi_el2n",
    "semi_forgetting",
    "elfs",
    "elfs_self",
    "cluster_el2n",
    "cluster_forgetting",
)
BY_BETA = ("semi_dual_beta", "fully_supervised")
FROZEN = "frozen"
CUT_DOUBT = (0.1, 0.4, 0.8, 1.0, 1.8)
"""By PAPER_RATIOS, for frozen runs: the cutoff in units of the doubt, which is one minus the mean probability."""
AIMED_DOUBT = (0.5, 0.7, 1.2, 1.4, 2.1)
"""The same for Beta sampling: the share of images that lie below the mean of the distribution that is drawn from."""
CLASS_SHARE = 0.75
"""For frozen runs: of each class at least this part of its share is kept, as an easy class would else disappear."""
MOST_C_D = 12.0
CLEAN_FACTOR = 1.5


@dataclass(frozen=True)
class Defaults:
    """Where to start: ``selector`` knobs, fields of ``ScoreSettings`` in ``scores``, ``why``, for the page, and the
    part of its share that is kept of each class at least (``SelectionOptions.class_share``)."""

    selector: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)
    why: str = ""
    class_share: float = 0.0


def paper_cutoff(dataset: str, pruning_ratio: float) -> float:
    """The paper's cutoff of a data set; between its ratios interpolated, from 0 at ratio 0.

    >>> paper_cutoff("cifar100", 0.9)
    0.7
    """
    return _cutoff_at(_known(dataset, PAPER_CUTOFFS), pruning_ratio)


def paper_beta(dataset: str) -> tuple[int, float]:
    """The paper's (T, c_D) of a data set.

    >>> paper_beta("imagenet1k")
    (60, 11.0)
    """
    return _known(dataset, PAPER_BETA)


@dataclass(frozen=True)
class Basis:
    """What starting values depend on: the pool's size, the length of the scoring run, how well it learned the images
    (``aum``, see :meth:`learned`), and the aim: accuracy after training on the coreset, or few wrong labels in it.

    A run of unknown length (None) counts as short. ``start`` is where the scoring run began; on features also
    ``prob``, quantiles of the mean probability, and ``mu_d``, that of the images with the highest DUAL.
    """

    n_images: int
    n_epochs: int | None = None
    aum: tuple[float, ...] = ()
    aim: str = ACCURACY
    start: str = "scratch"
    prob: tuple[float, ...] = ()
    mu_d: float | None = None

    def __post_init__(self) -> None:
        check_choice("aim", self.aim, AIMS)

    @classmethod
    def learned(cls, aum: FloatArray, n_epochs: int | None) -> Basis:
        """That of a pool whose images have these values of AUM (N,)."""
        return cls(len(aum), n_epochs, _quantiles(aum))

    def on_features(self, mean_prob: FloatArray, dual: FloatArray) -> Basis:
        """That of a scoring run on features, which gave the images these mean probabilities and DUAL (N,)."""
        mu_d = difficult_mean(Evidence(len(dual), {"dual": dual}, mean_prob=mean_prob))
        return replace(self, start=FROZEN, prob=_quantiles(mean_prob), mu_d=mu_d)

    @property
    def doubt(self) -> float:
        """How little the scoring run believed in the labels: one minus the mean probability."""
        return 1 - float(np.mean(self.prob))

    @property
    def like_paper(self) -> bool:
        return self.n_images >= PAPER_MIN_IMAGES and (self.n_epochs or 0) >= PAPER_MIN_EPOCHS

    def share_below(self, aum: float) -> float:
        """The share of the images that were learned less well than ``aum``."""
        return float(np.interp(aum, self.aum, np.linspace(0, 1, len(self.aum))))


def _quantiles(values: FloatArray) -> tuple[float, ...]:
    return tuple(np.round(np.quantile(values, np.linspace(0, 1, N_QUANTILES)), 4).tolist())


def has_aims(method: str) -> bool:
    """Whether the starting values of a method depend on the aim."""
    return method in BY_CUTOFF


def default_knobs(method: str, pruning_ratio: float, basis: Basis) -> Defaults:
    """What to use for ``method`` in a project that was never searched.

    Baselines that choose the same way start from the same values. Methods without such knobs get none.

    >>> default_knobs("semi_aum_cutoff", 0.7, Basis(6_000, 20)).selector
    {'cutoff': 0.1}
    >>> default_knobs("semi_aum_cutoff", 0.7, Basis.learned(np.linspace(-0.5, 0.8, 6_000), 20)).selector
    {'cutoff': 0.5}
    >>> default_knobs("semi_dual_beta", 0.7, Basis(50_000, 200)).selector
    {'c_d': 5.0}
    """
    check_range("pruning_ratio", pruning_ratio, low=0, high=1, high_open=True)
    if basis.prob and method in (*BY_CUTOFF, *BY_BETA):
        return _frozen_knobs(method, pruning_ratio, basis)
    why = _why(method, pruning_ratio, basis)
    if method in BY_CUTOFF:
        return Defaults({"cutoff": _default_cutoff(pruning_ratio, basis)}, {}, why)
    if method in BY_BETA:
        c_d = float(np.median([c_d for _, c_d in PAPER_BETA.values()]))
        if not basis.like_paper:
            c_d = round(float(np.interp(pruning_ratio, PAPER_RATIOS, SHORT_C_DS)), 2)
        scored = None if basis.n_epochs is None else min(SCORED_EPOCHS, basis.n_epochs)
        return Defaults({"c_d": c_d}, {"dual_epochs": scored, "gamma": 1.0}, why)
    return Defaults()


def _frozen_knobs(method: str, pruning_ratio: float, basis: Basis) -> Defaults:
    """For a scoring run on features: how much of the hard end goes follows from the doubt; T is the whole run."""
    if method in BY_CUTOFF:
        doubted = float(np.interp(pruning_ratio, PAPER_RATIOS, CUT_DOUBT)) * basis.doubt
        doubted *= CLEAN_FACTOR if basis.aim == CLEAN else 1
        cutoff = max(0.0, min(round(doubted / CUTOFF_STEP) * CUTOFF_STEP, pruning_ratio - EASY_LEFT))
        return Defaults({"cutoff": round(cutoff, 4)}, {}, _why_frozen(method, pruning_ratio, basis), CLASS_SHARE)
    scores = {"dual_epochs": basis.n_epochs, "gamma": 1.0}
    knobs = {"c_d": _aimed_c_d(pruning_ratio, basis)}
    return Defaults(knobs, scores, _why_frozen(method, pruning_ratio, basis), CLASS_SHARE)


def _aimed_c_d(pruning_ratio: float, basis: Basis) -> float:
    """c_D with which the Beta distribution's mean has the aimed share of the images below it.

    Its mean is 1 - (1 - mu_D)(1 - r^c_D), solved for c_D.
    """
    share = min(float(np.interp(pruning_ratio, PAPER_RATIOS, AIMED_DOUBT)) * basis.doubt, 1.0)
    mean = float(np.interp(share, np.linspace(0, 1, len(basis.prob)), basis.prob))
    power = 1 - (1 - mean) / max(1 - (basis.mu_d or 0.0), 1e-9)
    if pruning_ratio <= 0 or power <= pruning_ratio**MOST_C_D:
        return MOST_C_D
    return round(max(1.0, float(np.log(min(power, 1.0)) / np.log(pruning_ratio))), 1)


def _default_cutoff(pruning_ratio: float, basis: Basis) -> float:
    if basis.like_paper:
        medians = np.median(np.array(list(PAPER_CUTOFFS.values())), axis=0).tolist()
        return _cutoff_at(tuple(medians), pruning_ratio)
    if not basis.aum:
        return _cutoff_at(SHORT_CUTOFFS, pruning_ratio)
    share = basis.share_below(learned_from(pruning_ratio, basis.aim))
    cutoff = round(share / CUTOFF_STEP) * CUTOFF_STEP
    return round(max(0.0, min(cutoff, pruning_ratio - EASY_LEFT)), 4)


def learned_from(pruning_ratio: float, aim: str) -> float:
    """The AUM from which on images are worth keeping at a ratio."""
    return float(np.interp(pruning_ratio, PAPER_RATIOS, LEARNED_FROM[aim]))


def _why(method: str, pruning_ratio: float, basis: Basis) -> str:
    """What speaks for a starting value, and how much to rely on it."""
    if basis.like_paper:
        return "The median of the paper's values for pools and runs of this size; few classes want smaller ones."
    if method not in TRIED:
        return "Taken over from another method for such pools and runs, not tried with this one. Search first."
    below = f"AUM below {learned_from(pruning_ratio, basis.aim):.2f}"
    if method in BY_CUTOFF and basis.aim == CLEAN:
        cost = "In trials this cost 4 points of accuracy and more, half of that with balanced classes."
        return f"Leaves out where wrong labels gather ({below}). {cost}"
    said = f"Leaves out what the scoring run hardly learned ({below}). " if method in BY_CUTOFF and basis.aum else ""
    if pruning_ratio < TRIED_FROM:
        return said + "Not tried at so low a ratio. Search to be sure."
    on_fashion = "from 1 point below to 2 above" if pruning_ratio >= SHAKY_FROM else "1 to 2 points above"
    said += f"In trials {on_fashion} Random on Fashion-MNIST, from 1 below to 2 above on CIFAR-10"
    is_larger = basis.n_images > 2 * TRIED_TO
    careful = is_larger or pruning_ratio >= SHAKY_FROM
    return f"{said}{', never on so large a pool' if is_larger else ''}. Search {'first' if careful else 'to be sure'}."


def _why_frozen(method: str, pruning_ratio: float, basis: Basis) -> str:
    """What speaks for a starting value of a run on features."""
    if method not in TRIED:
        return "Taken over from another method for runs on features, not tried with this one. Search first."
    words = f"Follows from how much the scoring run doubted the labels ({basis.doubt:.0%})."
    if method in BY_CUTOFF and basis.aim == CLEAN:
        return f"{words} Leaves out half as much again, where wrong labels gather."
    if pruning_ratio < TRIED_FROM:
        return f"{words} Not tried at so low a ratio. Search to be sure."
    return f"{words} In trials by probe from 3 points below Random to 9 above, 1 above on average. Search to be sure."


def _cutoff_at(cutoffs: tuple[float, ...], pruning_ratio: float) -> float:
    """Interpolate between the paper's ratios; beyond the last one the easy end stays as wide as it was there."""
    check_range("pruning_ratio", pruning_ratio, low=0, high=1, high_open=True)
    cutoff = float(np.interp(pruning_ratio, (0.0, *PAPER_RATIOS), (0.0, *cutoffs)))
    return round(min(cutoff, pruning_ratio), 4)


def _known(dataset: str, table: dict[str, Row]) -> Row:
    if dataset not in table:
        raise UnknownNameError(f"The paper has no values for '{dataset}'. It has: {', '.join(table)}.")
    return table[dataset]
