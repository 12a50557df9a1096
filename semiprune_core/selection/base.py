"""What a selector is: from evidence to the positions of the images to keep.

A selector is a function ``(evidence, budget, *, rng, **knobs) -> (budget,)`` that returns exactly ``budget`` different
positions, best first, the same ones for the same evidence, knobs and state of ``rng``. Images that are equal to it are
told apart by chance, never by position: pools come sorted by class, and "the first of the equal ones" were one class.

Knobs that a person may set are declared in its signature (:mod:`semiprune_core.knobs`); those that several selectors
share stand here. Facts given at registration:

    title     for people
    explain   one sentence for the page
    needs     the scores (or ``mean_prob``) it looks at, unless a knob names another score
    nested    True when, with all else equal, a smaller budget gives a part of what a larger one gives
    whole     optional: a :class:`Whole`, which turns knobs that speak of the whole pool into ones that mean the same
              for any part of it (one class, the images not labeled by a person)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Protocol

import numpy as np

from semiprune_core.checks import check_choice, check_range
from semiprune_core.errors import InvalidSettingError, MissingStepError
from semiprune_core.knobs import PRUNING_RATIO, SCORE_NAMES, Knob, knobs_of
from semiprune_core.records import Evidence, FloatArray, IntArray, coreset_size
from semiprune_core.registry import Registry
from semiprune_core.scores import EASIER, HARDER, SCORES

Selector = Callable[..., IntArray]


def _check_selector(name: str, selector: Selector) -> None:
    knobs_of(selector)  # raises for knobs that are declared wrongly


SELECTORS: Registry[Selector] = Registry("selector", required=("explain", "needs", "nested"), check=_check_selector)
DEFAULT_CUTOFF = 0.1  # see defaults.py for the evidence

CUTOFF = Knob(
    "The share of the pool dropped at the hard end, where wrong labels gather.",
    low=0,
    high=PRUNING_RATIO,
    shown=(0.0, 0.95),
    step=0.01,
)
ScoreName = Annotated[str, Knob("The score that a plain selector goes by.", choices=SCORE_NAMES)]


class Whole(Protocol):
    def __call__(
        self, evidence: Evidence, n_seen: int, budget: int, pruning_ratio: float, knobs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The knobs for any part, when ``budget`` of the ``n_seen`` images that are left to choose from are kept."""


def column(evidence: Evidence, name: str) -> FloatArray:
    """One (N,) column of the evidence by name."""
    found = evidence.mean_prob if name == "mean_prob" else None
    if found is None:
        found = evidence.scores.get(name)
    if found is None:
        title = SCORES.title(name) if name in SCORES else name
        raise MissingStepError(f"This selection needs the score {title} ('{name}'). Compute the scores first.")
    return found


def easiness(evidence: Evidence, score: str, higher_is: str | None = None) -> FloatArray:
    """(N,) the score, turned so that larger means easier. ``higher_is`` speaks for scores outside the registry."""
    if higher_is is None:
        higher_is = SCORES.facts(score)["higher_is"]
    check_choice("higher_is", higher_is, (EASIER, HARDER))
    values = column(evidence, score)
    return values if higher_is == EASIER else -values


def check_budget(evidence: Evidence, budget: int) -> None:
    check_range("budget", budget, low=0, high=evidence.n_images)


def ordered(keys: FloatArray, rng: np.random.Generator) -> IntArray:
    """(N,) positions by rising key, equal keys in random order.

    >>> ordered(np.array([3.0, 1.0, 2.0]), np.random.default_rng(0)).tolist()
    [1, 2, 0]
    """
    chance = rng.random(len(keys))
    order = np.argsort(keys)
    rising = keys[order]
    return np.lexsort((chance, keys)) if (rising[1:] == rising[:-1]).any() else order


def equal_shares(capacity: IntArray, budget: int, at_least: IntArray | None = None) -> IntArray:
    """Split ``budget`` over groups as equally as their sizes allow (water-filling), adding up exactly.

    ``capacity`` (K,) is the size of each group, ``at_least`` (K,) what it must get in any case. The few images left
    over by whole numbers go one each to the largest groups that can take one.

    >>> equal_shares(np.array([2, 50, 50]), 20).tolist()
    [2, 9, 9]
    >>> equal_shares(np.array([9, 9, 9]), 10, at_least=np.array([7, 0, 0])).tolist()
    [7, 2, 1]
    """
    capacity = np.asarray(capacity, dtype=np.int64)
    floor = np.zeros_like(capacity) if at_least is None else np.asarray(at_least, dtype=np.int64)
    if not floor.sum() <= budget <= capacity.sum() or (floor > capacity).any():
        raise InvalidSettingError(
            f"{budget} images cannot be split over groups that hold {capacity.sum()} and must get {floor.sum()}."
        )
    low, high = 0, int(capacity.max(initial=0))  # the water level: the highest one that the budget can fill
    while low < high:
        level = (low + high + 1) // 2
        if np.clip(level, floor, capacity).sum() <= budget:
            low = level
        else:
            high = level - 1
    shares: IntArray = np.clip(low, floor, capacity)
    left = budget - int(shares.sum())
    room = np.flatnonzero((shares < capacity) & (shares == low))
    largest = room[np.argsort(-capacity[room], kind="stable")]
    shares[largest[:left]] += 1
    return shares


def interleave(groups: Sequence[IntArray]) -> IntArray:
    """One order from several: the first of each group, then the second of each, and so on.

    >>> interleave([np.array([1, 2, 3]), np.array([9])]).tolist()
    [1, 9, 2, 3]
    """
    if not groups:
        return np.empty(0, dtype=np.int64)
    rank = np.concatenate([np.arange(len(group)) for group in groups])
    return np.concatenate(groups)[np.argsort(rank, kind="stable")].astype(np.int64)


def split_groups(keys: IntArray) -> list[IntArray]:
    """The positions of each distinct key, keys rising, positions rising within a key."""
    if not len(keys):
        return []
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)


def hard_end(n_images: int, budget: int, cutoff: float | None, hard_share: float | None = None) -> int:
    """How many of the hardest images are dropped before the first one is kept.

    ``cutoff`` is a share of all images; None is 0.1, or less where the budget leaves less to drop. ``hard_share``, when
    given, is used instead: which share of the images that are *dropped* come from the hard end; it means the same for
    a part of the pool, whatever its own budget.

    >>> hard_end(10, 3, cutoff=0.2), hard_end(10, 3, cutoff=0.7), hard_end(10, 10, cutoff=None)
    (2, 7, 0)
    """
    dropped = n_images - budget
    if hard_share is not None:
        check_range("hard_share", hard_share, low=0, high=1)
        return round(hard_share * dropped)
    if cutoff is None:
        return min(round(DEFAULT_CUTOFF * n_images), dropped)
    check_range("cutoff", cutoff, low=0, high=1, high_open=True)
    if cutoff * n_images >= dropped + 1:  # less than one image too many is rounding: a cutoff of r is legal
        raise InvalidSettingError(
            f"A cutoff of {cutoff:g} drops {round(cutoff * n_images)} of {n_images} images and leaves too few for "
            f"a coreset of {budget}. Set the cutoff to {(100 * dropped // n_images) / 100:g} or less."
        )
    return min(round(cutoff * n_images), dropped)


def whole_cutoff(
    evidence: Evidence, n_seen: int, budget: int, pruning_ratio: float, knobs: Mapping[str, Any]
) -> dict[str, Any]:
    """A cutoff of the images to choose from as a share of those that are dropped (see :func:`hard_end`).

    The cutoff has to fit the whole pool. Where duplicates have left less to drop, all of that goes at the hard end.
    """
    if knobs["hard_share"] is not None:
        return dict(knobs)
    hard_end(evidence.n_images, coreset_size(evidence.n_images, pruning_ratio), knobs["cutoff"])
    cutoff = DEFAULT_CUTOFF if knobs["cutoff"] is None else knobs["cutoff"]
    dropped = n_seen - budget
    start = min(round(cutoff * n_seen), dropped)
    return {**knobs, "hard_share": start / dropped if dropped else 0.0}
