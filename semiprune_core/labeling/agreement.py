"""Agreement between annotators: raw, Cohen's kappa for two, Fleiss' kappa for any number; and what to settle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from semiprune_core.labeling import schema
from semiprune_core.labeling.classes import resolve_merges
from semiprune_core.labeling.events import FIRST_ROUND, Ack, Event
from semiprune_core.labeling.schema import unsigned
from semiprune_core.records import IntArray

if TYPE_CHECKING:
    from semiprune_core.labeling.store import LabelStore


@dataclass(frozen=True)
class Agreement:
    """Over the ``n_images`` that at least two annotators labeled; None where it cannot be said.

    ``raw`` is the share of agreeing pairs, ``kappa`` corrects it for chance: Cohen's when two people took part,
    Fleiss' otherwise (``kind``).
    """

    n_images: int
    annotators: tuple[str, ...]
    raw: float | None
    kappa: float | None
    kind: str


@dataclass(frozen=True)
class Disagreement:
    """An image to settle: who said which class. ``version`` is the settle round's, to be named when settling."""

    image_id: int
    votes: Mapping[str, int]
    version: str = ""


def cohen_kappa(first: IntArray, second: IntArray) -> float | None:
    """Agreement of two raters' labels (M,) beyond chance (Cohen 1960); None when chance alone would agree fully."""
    if not len(first):
        return None
    n_classes = int(max(first.max(), second.max())) + 1
    p_first = np.bincount(first, minlength=n_classes) / len(first)
    p_second = np.bincount(second, minlength=n_classes) / len(second)
    return _beyond_chance(float((first == second).mean()), float(p_first @ p_second))


def fleiss_kappa(counts: IntArray) -> float | None:
    """Agreement beyond chance (Fleiss 1971) of ``counts`` (M, C): how many raters gave image i the class j.

    Images may have different numbers of raters (at least two): each weighs the same in the observed agreement, each
    label the same in the chance one.
    """
    if not len(counts):
        return None
    raters = counts.sum(axis=1)
    pairs = (counts * (counts - 1)).sum(axis=1) / (raters * (raters - 1))
    shares = counts.sum(axis=0) / counts.sum()
    return _beyond_chance(float(pairs.mean()), float((shares**2).sum()))


def _beyond_chance(observed: float, chance: float) -> float | None:
    return None if chance >= 1 else (observed - chance) / (1 - chance)


def vote_counts(votes: Mapping[int, Mapping[str, int]]) -> IntArray:
    """(M, C) from votes per image, classes numbered in ascending order."""
    numbers = {class_id: j for j, class_id in enumerate(sorted({c for v in votes.values() for c in v.values()}))}
    counts = np.zeros((len(votes), len(numbers)), dtype=np.int64)
    for row, given in enumerate(votes.values()):
        for class_id in given.values():
            counts[row, numbers[class_id]] += 1
    return counts


def agreement(store: LabelStore) -> Agreement:
    """How well the annotators agree on what several of them labeled."""
    with store.database.read() as connection:
        votes = _votes(store, connection)
    names = tuple(sorted({name for given in votes.values() for name in given}))
    kind = "cohen" if len(names) == 2 else "fleiss"
    if not votes:
        return Agreement(0, names, None, None, kind)
    counts = vote_counts(votes)
    raters = counts.sum(axis=1)
    raw = float(((counts * (counts - 1)).sum(axis=1) / (raters * (raters - 1))).mean())
    if kind == "cohen":
        first, second = (np.array([given[name] for given in votes.values()]) for name in names)
        return Agreement(len(votes), names, raw, cohen_kappa(first, second), kind)
    return Agreement(len(votes), names, raw, fleiss_kappa(counts), kind)


def disagreements(store: LabelStore) -> list[Disagreement]:
    """Images whose annotators disagree and which nobody settled or reviewed, by image id."""
    undecided = {int(image_id) for image_id in store.labels().disputed_ids}
    with store.database.read() as connection:
        votes = _votes(store, connection)
    versions = {held.image_id: held.version for held in store.held(undecided) if held.round == "settle"}
    chosen = sorted(image_id for image_id in votes if image_id in undecided)
    return [Disagreement(image_id, votes[image_id], versions.get(image_id, "")) for image_id in chosen]


def settle(
    store: LabelStore, image_id: int, class_id: int, *, annotator: str, event_id: str, expected_version: str = ""
) -> Ack:
    """Decide a disagreement; the votes stay in the history."""
    event = Event(
        event_id=event_id,
        annotator=annotator,
        action="settle",
        image_id=image_id,
        class_id=class_id,
        expected_version=expected_version,
    )
    return store.append([event])[0]


def _votes(store: LabelStore, connection: Connection) -> dict[int, dict[str, int]]:
    """First labels of people, merged classes resolved, of the images with at least two of them."""
    table = schema.current
    mine = sa.and_(
        table.c.project == store.project,
        table.c.round == FIRST_ROUND,
        table.c.class_id.is_not(None),
        table.c.source != "reference",
    )
    several = sa.select(table.c.image_id).where(mine).group_by(table.c.image_id).having(sa.func.count() > 1)
    query = sa.select(table.c.image_id, table.c.holder, table.c.class_id).where(mine, table.c.image_id.in_(several))
    into = resolve_merges(store.classes.read(connection))
    votes: dict[int, dict[str, int]] = {}
    for image, holder, class_id in connection.execute(query.order_by(table.c.image_id, table.c.holder)):
        votes.setdefault(unsigned(image), {})[holder] = into.get(class_id, class_id)
    return votes
