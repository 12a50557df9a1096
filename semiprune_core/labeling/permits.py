"""Which events whoever acts may save: their own, and of the rounds that overrule others only with the role for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from semiprune_core.errors import ForbiddenError
from semiprune_core.labeling import schema
from semiprune_core.labeling.events import BY_HAND, FIRST_ROUND, FLAG_ROUND, REVIEW_ROUND, SETTLE_ROUND, Event
from semiprune_core.project import rights

if TYPE_CHECKING:
    from semiprune_core.labeling.store import LabelStore


def check_events(store: LabelStore, events: Sequence[Event]) -> None:
    """Refuse events under another name, and those that need a role which whoever acts has not."""
    if rights.acting() is None:
        return
    for event in events:
        rights.check_own(event.annotator if event.actor is None else event.actor)
    for act in {_act_of(event) for event in events}:
        if act == "review" and not rights.allows(act, store.project):
            reviewed = [event for event in events if _act_of(event) == act]
            act = "label" if _are_drawn_on_purpose(store, reviewed) else act  # further images are everybody's
        rights.check(act, store.project)
    if not rights.allows("review", store.project):
        _check_targets(store, [event for event in events if event.action in ("undo", "redo")])


def _check_targets(store: LabelStore, events: Sequence[Event]) -> None:
    """Taking back, or bringing back, needs the right to have done it: a role may have been lowered since."""
    table = schema.events
    for event in events:
        mine = (table.c.project == store.project) & (table.c.annotator == event.annotator)
        query = sa.select(table.c.round, table.c.image_id).where(mine, table.c.event_id == event.target)
        with store.database.read() as connection:
            target = connection.execute(query).first()
        if target is not None and target.round not in (FIRST_ROUND, FLAG_ROUND):
            image = np.array([schema.unsigned(target.image_id)], dtype=np.uint64)
            if target.round == SETTLE_ROUND or not np.isin(image, purposeful_ids(store)).all():
                raise ForbiddenError("This overruled others, and taking it back needs the role to do so.")
        elif target is None and event.target is None:
            raise ForbiddenError("Name what to take back.")


def purposeful_ids(store: LabelStore) -> np.ndarray:
    """(K,) uint64: images of open drawings that are not uniform: these are labeled with a suggestion in view."""
    with store.database.read() as connection:
        drawings = store.drawings.read_open(connection)
    ids = [drawing.ids for drawing in drawings if not drawing.uniform]
    uniform = [drawing.ids for drawing in drawings if drawing.uniform]
    empty = np.empty(0, np.uint64)
    return np.setdiff1d(np.concatenate([empty, *ids]), np.concatenate([empty, *uniform]))


def _act_of(event: Event) -> str:
    if event.source not in BY_HAND or event.actor is not None:  # a file speaks for others; who brought it is named
        return "import labels"
    return {SETTLE_ROUND: "settle", REVIEW_ROUND: "review"}.get(event.round, "label")


def _are_drawn_on_purpose(store: LabelStore, events: Sequence[Event]) -> bool:
    images = np.array([event.image_id for event in events if event.image_id is not None], dtype=np.uint64)
    return len(images) == len(events) and bool(np.isin(images, purposeful_ids(store)).all())
