"""What may be asked of every selector: class balance, human labels kept, at least k per class, no duplicates.

The selector itself stays what it is. The options decide which images it sees, how many it picks from which part of
them, and what is in before it starts; the budget is met exactly in any case.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from semiprune_core.checks import check_range
from semiprune_core.errors import InvalidSettingError, MissingStepError
from semiprune_core.records import BoolArray, Evidence, IntArray, coreset_size
from semiprune_core.selection.base import SELECTORS, Selector, equal_shares, interleave, split_groups
from semiprune_core.settings import Settings


@dataclass(frozen=True, kw_only=True)
class SelectionOptions(Settings):
    """Options that go with every selector.

    ``class_balanced``: equal shares for all (pseudo-)classes; a class with too few images gives all of them and the
    others share what is left. ``same_annotation_budget``: the images a person labeled are in first and count, the
    selector chooses among the others (the paper's appendix on equal annotation budgets). ``keep_human``: the selector
    judges the whole pool, then images a person labeled replace its last choices where it left them out.
    ``min_per_class``: at least so many of each class, or all of a smaller one. ``class_share``: of each class at least
    this part of what a random coreset would hold of it, so that no class disappears. ``drop_duplicates``: of
    images with the same content only one may be kept, the one a person labeled if there is one, otherwise the first.
    ``one_of_each``: the same of near-duplicates that have the same label; it is in the JSON only where it is on.
    """

    class_balanced: bool = False
    keep_human: bool = False
    same_annotation_budget: bool = False
    min_per_class: int = 0
    class_share: float = 0.0
    drop_duplicates: bool = False
    one_of_each: bool = False

    def check(self) -> None:
        check_range("min_per_class", self.min_per_class, low=0)
        check_range("class_share", self.class_share, low=0, high=1)

    def to_json(self) -> dict[str, Any]:
        values = super().to_json()
        return values if self.one_of_each else {name: values[name] for name in values if name != "one_of_each"}

    @property
    def by_class(self) -> bool:
        """Whether the images' classes matter."""
        return self.class_balanced or self.min_per_class > 0 or self.class_share > 0


@dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen: ``indices``, best first; the ``knobs``, defaults included; and what was ``derived`` from them.

    Equal evidence, knobs, options and seed give the same choice; ``derived`` (mu_D, for example) is there to be shown.
    """

    indices: IntArray
    knobs: dict[str, Any]
    derived: dict[str, Any]


def complete_knobs(name: str, function: Selector, knobs: Mapping[str, Any]) -> dict[str, Any]:
    """The knobs with the function's defaults for those not given; an unknown one is refused.

    >>> complete_knobs("top", SELECTORS["top"], {"keep": "easiest"})
    {'keep': 'easiest', 'score': 'aum', 'higher_is': None}
    """
    known = knob_defaults(function)
    for knob in knobs:
        if knob not in known:
            raise InvalidSettingError(
                f"'{name}' has no setting '{knob}'. It has: {', '.join(known) or 'none'}. Remove it or rename it."
            )
    return {**known, **knobs}


def knob_defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """All keyword-only arguments with their defaults, also those that are no knobs for a person."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "rng"}


def choose(
    evidence: Evidence,
    selector: str,
    *,
    pruning_ratio: float,
    rng: np.random.Generator,
    options: SelectionOptions,
    knobs: Mapping[str, Any],
) -> Choice:
    """Exactly ``coreset_size(N, r)`` positions, best first, and what they were chosen with."""
    function, facts = SELECTORS[selector], SELECTORS.facts(selector)
    complete = complete_knobs(selector, function, knobs)
    budget = coreset_size(evidence.n_images, pruning_ratio)
    must = _must_keep(evidence, options)
    allowed = _allowed(evidence, must, options)
    _check_room(budget, pruning_ratio, must, allowed)
    floor = _Floor.of(evidence, options, must, allowed, budget)
    floor.check(evidence.n_images, budget, pruning_ratio, int(must.sum()))

    first = options.same_annotation_budget
    n_seen, n_chosen = int(allowed.sum()), budget
    if first:
        n_seen, n_chosen = n_seen - int(must.sum()), budget - int(must.sum())
    full = complete
    if "whole" in facts:
        full = facts["whole"](evidence, n_seen, n_chosen, pruning_ratio, complete)
    pick = partial(_pick, evidence, partial(function, rng=rng, **full), must=must, must_first=first)

    if options.class_balanced:
        parts = floor.members
        sizes = np.array([len(part) for part in parts], dtype=np.int64)
        shares = equal_shares(sizes, budget, at_least=floor.wanted)
        chosen = interleave([pick(part, int(share)) for part, share in zip(parts, shares, strict=True)])
    else:
        chosen = pick(np.flatnonzero(allowed), budget)
        if options.by_class:
            chosen = _lift_small_classes(chosen, floor, must, pick)
    return Choice(
        chosen.astype(np.int64),
        {knob: value for knob, value in complete.items() if value is not None},
        {knob: value for knob, value in full.items() if value != complete[knob]},
    )


@dataclass(frozen=True, eq=False)
class _Floor:
    """The classes among the allowed images, and how many of each have to be kept.

    ``members``: positions by class; ``wanted`` (K,): at least so many, images that must be kept included. What
    ``class_share`` asks for shrinks where the rest leaves too little room.
    """

    members: Sequence[IntArray]
    wanted: IntArray
    each: int

    @classmethod
    def of(
        cls, evidence: Evidence, options: SelectionOptions, must: BoolArray, allowed: BoolArray, budget: int
    ) -> _Floor:
        if not options.by_class:
            return cls([], np.zeros(0, dtype=np.int64), 0)
        if evidence.labels is None:
            raise MissingStepError("Balancing classes needs a label for every image. Make the pseudo-labels first.")
        positions = np.flatnonzero(allowed)
        members: list[IntArray] = [positions[group] for group in split_groups(evidence.labels[positions])]
        sizes = np.array([len(part) for part in members], dtype=np.int64)
        forced = np.array([must[part].sum() for part in members], dtype=np.int64)
        wanted = np.maximum(np.minimum(options.min_per_class, sizes), forced)
        return cls(members, wanted + _shares_above(wanted, sizes, options.class_share, budget), options.min_per_class)

    def check(self, n_images: int, budget: int, pruning_ratio: float, n_must: int) -> None:
        need = int(self.wanted.sum())
        if need <= budget:
            return
        each = f" with at least {self.each} each" if self.each > 1 else ""
        human = f", {n_must} of them labeled by a person," if n_must else ""
        raise InvalidSettingError(
            f"Pruning ratio {pruning_ratio:g} leaves {budget} images{human} for {len(self.members)} classes{each}. "
            f"Lower it to {_highest_ratio(n_images, need):g} or less, or merge classes."
        )


def _shares_above(wanted: IntArray, sizes: IntArray, class_share: float, budget: int) -> IntArray:
    """(K,) how many more than ``wanted`` the class shares ask for, as far as the budget has room for them.

    >>> _shares_above(np.array([0, 30, 0]), np.array([50, 40, 10]), 0.5, 60).tolist()
    [15, 0, 3]
    """
    shares = np.floor(class_share * budget * sizes / max(int(sizes.sum()), 1) + 1e-9)
    above, room = np.maximum(shares - wanted, 0), max(budget - int(wanted.sum()), 0)
    return np.floor(above * min(1.0, room / max(float(above.sum()), 1.0))).astype(np.int64)


def _must_keep(evidence: Evidence, options: SelectionOptions) -> BoolArray:
    if not (options.keep_human or options.same_annotation_budget):
        return np.zeros(evidence.n_images, dtype=bool)
    if evidence.human_mask is None:
        raise MissingStepError("Keeping human labels needs to know which images a person labeled. Label some first.")
    return np.asarray(evidence.human_mask, dtype=bool)


def _allowed(evidence: Evidence, must: BoolArray, options: SelectionOptions) -> BoolArray:
    """(N,) True for the images that may be kept: all, or one of each."""
    allowed = np.ones(len(must), dtype=bool)
    if options.drop_duplicates:
        if evidence.duplicate_of is None:
            raise MissingStepError("Dropping duplicates needs to know them. Open the evidence together with its pool.")
        allowed &= _one_of_each(evidence, must, evidence.duplicate_of)
    if options.one_of_each:
        if evidence.alike is None:
            raise MissingStepError("Keeping one of each needs to know the near-duplicates. Scan the pool first.")
        allowed &= _one_of_each(evidence, must, _alike_with_one_label(evidence, evidence.alike))
    return allowed


def _alike_with_one_label(evidence: Evidence, alike: IntArray) -> IntArray:
    """(N,) groups of near-duplicates, those of different labels apart: a mirrored sign may be another sign."""
    if evidence.labels is None:
        return alike
    return np.unique(np.stack([alike, evidence.labels]), axis=1, return_inverse=True)[1].ravel()


def _one_of_each(evidence: Evidence, must: BoolArray, groups: IntArray) -> BoolArray:
    """(N,) True for one image of each group: one labeled by a person before others, then the first.

    What must be kept stays, even if a person labeled the same content twice.
    """
    human = evidence.human_mask if evidence.human_mask is not None else np.zeros(evidence.n_images, dtype=bool)
    order = np.lexsort((~np.asarray(human, dtype=bool), groups))  # stable: then by position
    group = groups[order]
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = group[1:] != group[:-1]
    allowed = must.copy()
    allowed[order[is_first]] = True
    return allowed


def _check_room(budget: int, pruning_ratio: float, must: BoolArray, allowed: BoolArray) -> None:
    n, n_must, n_allowed = len(must), int(must.sum()), int(allowed.sum())
    if n_must > budget:
        raise InvalidSettingError(
            f"{n_must} images were labeled by a person, but pruning ratio {pruning_ratio:g} leaves {budget} images. "
            f"Lower it to {_highest_ratio(n, n_must):g} or less, or do not keep all human-labeled images."
        )
    if n_allowed < budget:
        lowest = math.ceil(1e4 * (1 - n_allowed / n)) / 1e4
        raise InvalidSettingError(
            f"Without duplicates there are {n_allowed} images, but pruning ratio {pruning_ratio:g} keeps {budget}. "
            f"Raise it to {lowest:g} or more, or keep duplicates."
        )


def _highest_ratio(n: int, need: int) -> float:
    """A pruning ratio in hundredths, rounded down, that leaves at least ``need`` of ``n`` images."""
    return (100 * (n - need) // n) / 100


def take_evidence(evidence: Evidence, positions: IntArray) -> Evidence:
    """The evidence about some images alone. Duplicates are settled before, and their positions mean nothing here."""
    if len(positions) == evidence.n_images:
        return evidence  # positions rise, so this is everything

    def rows(array: Any) -> Any:
        return None if array is None else array[positions]

    return dataclasses.replace(
        evidence,
        n_images=len(positions),
        scores={name: values[positions] for name, values in evidence.scores.items()},
        mean_prob=rows(evidence.mean_prob),
        labels=rows(evidence.labels),
        human_mask=rows(evidence.human_mask),
        duplicate_of=None,
        alike=None,
        features=rows(evidence.features),
    )


def _pick(
    evidence: Evidence, select: Selector, part: IntArray, budget: int, *, must: BoolArray, must_first: bool
) -> IntArray:
    """``budget`` positions of ``part`` (rising positions), with everything in it that must be kept."""
    forced = part[must[part]]
    if must_first:
        others = part[~must[part]]
        return np.concatenate([forced, others[select(take_evidence(evidence, others), budget - len(forced))]])
    chosen = part[select(take_evidence(evidence, part), budget)]
    left_out = np.setdiff1d(forced, chosen, assume_unique=True)
    if not len(left_out):
        return chosen
    replaceable = np.flatnonzero(~must[chosen])
    return np.concatenate([np.delete(chosen, replaceable[len(replaceable) - len(left_out) :]), left_out])


def _lift_small_classes(chosen: IntArray, floor: _Floor, must: BoolArray, pick: Any) -> IntArray:
    """Bring every class to what is wanted of it; in exchange the last choices of classes with more than that go."""
    is_chosen = np.zeros(len(must), dtype=bool)
    is_chosen[chosen] = True
    spare = np.zeros(len(must), dtype=bool)
    rank = np.empty(len(must), dtype=np.int64)
    rank[chosen] = np.arange(len(chosen))
    added = []
    for part, wanted in zip(floor.members, floor.wanted, strict=True):
        mine = part[is_chosen[part]]
        if len(mine) < wanted:
            added.append(pick(part[~is_chosen[part]], int(wanted) - len(mine)))
            continue
        best_first = mine[np.lexsort((rank[mine], ~must[mine]))]
        spare[best_first[wanted:]] = True
    if not added:
        return chosen
    extra = np.concatenate(added)
    replaceable = np.flatnonzero(spare[chosen])
    return np.concatenate([np.delete(chosen, replaceable[len(replaceable) - len(extra) :]), extra])
