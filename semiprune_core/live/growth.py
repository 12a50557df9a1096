"""How accuracy grows with the number of labels, and what more of them are likely to bring.

Heads are fitted on random parts of the labels and answer for the uniformly drawn labels outside: errors at several
sizes, each measured on labels that were not learned from. Through them goes a curve ``a + b m^-c`` with ``a, b >= 0``,
fitted anew for many resamples of the labels and of the parts. How far the curves differ, together with the luck of the
very labels there are, is how unsure the outlook is (docs/label.md says how often it was right).

Where every answer is right or all sizes do alike, a resample has nothing to differ in. So each one also holds an image
that was not seen, wrong up to a random number of labels and right from there on, with a random weight, one on average:
from n labels nothing is claimed that one more image in n could overturn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semiprune_core.learning.frozen import FrozenPool, FrozenResult, FrozenSettings
from semiprune_core.learning.frozen.experts import Span, log_probs, penalty_path, propagated, together
from semiprune_core.learning.shares import drawn_counts, image_weights
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import UNLABELED, BoolArray, FloatArray, IntArray

SHARES = (0.15, 0.3, 0.5, 0.75)
"""Parts of the uniformly drawn labels that heads are fitted on."""
REPEATS = 4
LEAST = 6
"""Labels in the smallest part."""
EXPONENTS = (0.15, 0.25, 0.35, 0.5, 0.7, 1.0)
LUCK = 0.25
"""Variance of a head's accuracy between sets of n labels, in that of n answers; from the draws of docs/label.md."""
DRAWN_FROM = 0.3
"""Of the labels; further back the curve is so steep that its present would not be seen."""
DRAWS = 400
"""Resamples that the interval stands on."""


@dataclass(frozen=True, eq=False)
class Growth:
    """Answers at ``sizes`` (P,) labels in several repeats: ``held`` and ``right`` (P, R, n), n labels that measure."""

    sizes: FloatArray
    held: np.ndarray
    right: np.ndarray

    @property
    def accuracy(self) -> FloatArray:
        """(P,) the share of right answers at each size."""
        return self.right.sum((1, 2)) / self.held.sum((1, 2))


@dataclass(frozen=True, eq=False)
class Outlook:
    """What ``n_more`` labels are likely to add to the accuracy, with a 95% interval; and the curve, to be drawn.

    ``at`` (K,) numbers of labels, ``value``, ``low`` and ``high`` (K,) accuracies there; the interval is about the
    shape of the curve, as seen from its present end.
    """

    n_more: int
    gain: float
    gain_low: float
    gain_high: float
    at: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray


def grow(
    pool: FrozenPool,
    labels: IntArray,
    fitted: FrozenResult,
    *,
    groups: IntArray,
    n_classes: int,
    settings: FrozenSettings,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> Growth:
    """Errors at several numbers of labels, from ``labels`` (N,) and the cross-fit ``fitted`` on all of them.

    Penalty and powers are those of the whole fit. Labels that do not measure are learned from at every size.
    """
    labeled = np.flatnonzero(labels != UNLABELED)
    classes, alike = labels[labeled], groups[labeled]
    measured = np.flatnonzero(np.isin(labeled, fitted.out_of_fold.positions))
    others = np.setdiff1d(np.arange(len(labeled)), measured)
    span = Span.of(pool.rows[labeled])
    n = len(measured)
    wanted = sorted({max(LEAST, round(share * n)) for share in SHARES})
    held = np.zeros((len(wanted) + 1, REPEATS, n), bool)
    right = np.zeros_like(held)
    for repeat in range(REPEATS):
        order = _by_group(alike[measured], rng)
        for place, size in enumerate(wanted):
            if progress is not None and progress.should_stop():
                raise Stopped
            train = np.concatenate([measured[order[:size]], others])
            outside = np.flatnonzero(~np.isin(alike[measured], alike[train]))
            if not len(outside):
                continue
            asked = measured[outside]
            uniform = np.isin(train, measured)
            answers = _answers(pool, span, labeled, classes, train, uniform, asked, n_classes, settings, fitted.facts)
            held[place, repeat, outside] = True
            right[place, repeat, outside] = answers == classes[asked]
    held[-1], right[-1] = True, fitted.out_of_fold.right  # both are in the order of the pool
    sizes = np.array([*wanted, n * (1 - 1 / max(int(fitted.facts["n_folds"]), 2))], float)
    use = held.any((1, 2))
    return Growth(sizes[use], held[use], right[use])


def _by_group(groups: IntArray, rng: np.random.Generator) -> IntArray:
    """A random order in which near-duplicates stand beside each other."""
    _, member = np.unique(groups, return_inverse=True)
    return np.argsort(rng.permutation(member.max() + 1)[member], kind="stable")


def _answers(
    pool: FrozenPool,
    span: Span,
    labeled: IntArray,
    classes: IntArray,
    train: IntArray,
    uniform: BoolArray,
    asked: IntArray,
    n_classes: int,
    settings: FrozenSettings,
    facts: object,
) -> IntArray:
    """The class of each of ``asked`` by heads fitted on ``train``, both places among the labeled images.

    ``uniform`` says which of ``train`` were drawn uniformly.
    """
    assert isinstance(facts, dict)
    if len(np.unique(classes[train])) == 1:
        return np.full(len(asked), classes[train[0]])
    found = []
    if settings.head != "propagation":
        mine = classes[train]
        weights = image_weights(mine, drawn_counts(mine, uniform, n_classes))
        (head,) = penalty_path(span.labeled[train], mine, n_classes, [float(facts["penalty"])], weights)
        found.append(log_probs(head.logits(span.labeled[asked])))
    if settings.head != "logistic":
        arrived = propagated(pool, labeled[train], classes[train], n_classes, alpha=settings.alpha)
        found.append(arrived[labeled[asked]])
    return together(found, np.asarray(facts["powers"], float)).argmax(1)


def outlook(growth: Growth, n_labels: int, n_more: int, *, now: float, rng: np.random.Generator) -> Outlook:
    """What ``n_more`` labels beside ``n_labels`` are likely to bring; ``now`` is the accuracy with those there are."""
    errors = _resampled(growth, n_labels, rng)
    at = np.unique(np.concatenate([np.linspace(DRAWN_FROM * n_labels, n_labels, 12), [n_labels + n_more / 2]]))
    at = np.append(at, n_labels + n_more)
    curves = 1 - _fitted(growth.sizes / n_labels, errors, at / n_labels)  # (B, K)
    present = int(np.flatnonzero(at == n_labels)[0])
    steps = curves - curves[:, [present]] + _luck(now, n_labels, at, rng)  # seen from today
    gain_low, gain, gain_high = (float(value) for value in np.quantile(steps[:, -1], (0.025, 0.5, 0.975)))
    low, middle, high = np.clip(now + np.quantile(steps, (0.025, 0.5, 0.975), axis=0), 0, 1)
    return Outlook(n_more, gain, gain_low, gain_high, at, middle, low, high)


def _luck(now: float, n_labels: int, at: FloatArray, rng: np.random.Generator) -> FloatArray:
    """(B, K) what more labels change because these ones happened to be good or bad ones, nothing up to today.

    A head's accuracy differs between sets of n labels by about ``LUCK`` of the variance of n answers; of that the share
    of the labels that are new is drawn again.
    """
    p = (now * n_labels + 1) / (n_labels + 2)
    new = np.maximum(1 - n_labels / at, 0)
    return rng.normal(size=(DRAWS, 1)) * np.sqrt(LUCK * p * (1 - p) / n_labels * new)


def _resampled(growth: Growth, n_labels: int, rng: np.random.Generator) -> FloatArray:
    """(B, P) errors of resampled labels and repeats, each with one image more than was seen."""
    _, n_repeats, n = growth.held.shape
    images = rng.multinomial(n, np.full(n, 1 / n), size=DRAWS).astype(float)
    repeats = rng.multinomial(n_repeats, np.full(n_repeats, 1 / n_repeats), size=DRAWS).astype(float)
    held = np.einsum("br,prj,bj->bp", repeats, growth.held.astype(float), images, optimize=True) / n_repeats
    wrong = np.einsum("br,prj,bj->bp", repeats, (growth.held & ~growth.right).astype(float), images, optimize=True)
    weight = rng.exponential(size=(DRAWS, 1))
    learned_at = n_labels * np.exp(rng.uniform(np.log(0.1), np.log(2), (DRAWS, 1)))
    unseen = weight * (growth.sizes < learned_at) * held / n
    return (wrong / n_repeats + unseen) / np.maximum(held * (1 + weight / n), 1e-9)


def _fitted(sizes: FloatArray, errors: FloatArray, at: FloatArray) -> FloatArray:
    """(B, K) errors at ``at`` (K,) of the best curves ``a + b m^-c``, a and b at least 0, through ``errors`` (B, P)."""
    best = np.full(len(errors), np.inf)
    found = np.zeros((len(errors), len(at)))
    mean = errors.mean(1, keepdims=True)
    for exponent in EXPONENTS:
        x = sizes**-exponent
        b = ((errors - mean) @ (x - x.mean())) / ((x - x.mean()) ** 2).sum()
        a = mean[:, 0] - b * x.mean()
        flat, floorless = b < 0, a < 0
        b = np.where(floorless, errors @ x / (x @ x), np.where(flat, 0, b))
        a = np.where(floorless, 0, np.where(flat, mean[:, 0], a))
        loss = ((errors - a[:, None] - np.outer(b, x)) ** 2).sum(1)
        better = loss < best
        best[better] = loss[better]
        found[better] = (a[:, None] + np.outer(b, at**-exponent))[better]
    return found
