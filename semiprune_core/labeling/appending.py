"""Saving events: one transaction that decides about each of them, and the rows of what holds now beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from semiprune_core.labeling import chain, schema
from semiprune_core.labeling.events import (
    BY_HAND,
    UNDOABLE,
    Ack,
    Event,
    EventRow,
    Held,
    Place,
    held_of,
    place_of,
    replay,
)
from semiprune_core.labeling.schema import in_chunks, signed, unsigned

if TYPE_CHECKING:
    from semiprune_core.labeling.store import LabelStore


PAST = {"undo": "undone", "redo": "redone"}


def select_current(project: str) -> sa.Select[Any]:
    """What holds now in a project, in rows for :func:`held_of_row`."""
    table = schema.current
    columns = [column for column in table.c if column.name != "project"]
    return sa.select(*columns).where(table.c.project == project)


def held_of_row(row: Sequence[Any]) -> Held:
    """What a row of :func:`select_current` says."""
    return Held(unsigned(row[0]), *row[1:])


def current_row(project: str, held: Held) -> dict[str, Any]:
    """What holds on one place, as the row to write."""
    return {
        "project": project,
        "image_id": signed(held.image_id),
        "round": held.round,
        "holder": held.holder,
        "version": held.version,
        "event_id": held.event_id,
        "seq": held.seq,
        "annotator": held.annotator,
        "action": held.action,
        "class_id": held.class_id,
        "source": held.source,
        "saved_ms": held.saved_ms,
    }


def derive_again(connection: Connection, project: str) -> None:
    """Derive what holds now, and what is undone, anew from the events."""
    query = sa.select(schema.events).where(schema.events.c.project == project).order_by(schema.events.c.seq)
    held, taken_back = replay(connection.execute(query).mappings())
    for table in (schema.current, schema.undone):
        connection.execute(table.delete().where(table.c.project == project))
    schema.insert(connection, schema.current, [current_row(project, state) for state in held.values()])
    names = [{"project": project, "event_id": event_id} for event_id in sorted(taken_back)]
    schema.insert(connection, schema.undone, names)


class Append:
    """One append transaction: reads what it needs at once, decides in memory, writes at once."""

    def __init__(self, store: LabelStore, connection: Connection, events: Sequence[Event]) -> None:
        self.project = store.project
        self.connection = connection
        self.events = events
        self.head = schema.lock_project(connection, self.project)
        self.saved_ms = store.now_ms
        self.class_ids = {entry.class_id for entry in store.classes.read(connection)}
        self.held: dict[Place, Held] = {}
        self.changed: set[Place] = set()
        self.rows: list[dict[str, Any]] = []
        self.last_row: dict[str, Any] = {}

    def run(self) -> list[Ack]:
        images = sorted({signed(event.image_id) for event in self.events if event.image_id is not None})
        self._load(images)
        saved = self._saved_before([event.event_id for event in self.events])
        acks = []
        for event in self.events:
            if event.event_id in saved:
                ack = self._already(event, saved[event.event_id])
            elif event.action in ("undo", "redo"):
                ack = self._undo_or_redo(event)
            else:
                ack = self._decide(event)
            if ack.status == "saved":
                saved[event.event_id] = self.last_row
            acks.append(ack)
        self._flush()
        return acks

    # --- one event ---------------------------------------------------------------------------------------------

    def _already(self, event: Event, row: EventRow) -> Ack:
        """A repeated id changes nothing, unless it is another event under a used name: that is refused."""
        same = row["action"] == event.action and row["annotator"] == event.annotator
        if event.image_id is not None:
            same = same and row["image_id"] == signed(event.image_id) and row["class_id"] == event.class_id
        if not same:
            return Ack(event.event_id, "refused", reason="Another event with this id was saved earlier.")
        held = self.held.get(_place_of_event(event)) if event.image_id is not None else None
        return Ack(event.event_id, "already", held.version if held else event.event_id, held)

    def _decide(self, event: Event) -> Ack:
        if event.class_id is not None and event.class_id not in self.class_ids:
            return Ack(event.event_id, "refused", reason=f"There is no class with the number {event.class_id}.")
        place = _place_of_event(event)
        now = self.held.get(place)
        version = now.version if now else ""
        stale = event.expected_version is not None and event.expected_version != version and not event.force
        if stale and not (now and now.action == event.action and now.class_id == event.class_id):
            return Ack(event.event_id, "conflict", version, now)
        row = self._add(event, None)
        self.held[place] = held_of(place, event.event_id, row)
        self.changed.add(place)
        return Ack(event.event_id, "saved", event.event_id, self.held[place], touched=(self.held[place],))

    def _undo_or_redo(self, event: Event) -> Ack:
        self._flush()  # the target may be part of this very append
        target = self._target(event)
        if target is None:
            return Ack(event.event_id, "refused", reason=f"There is nothing to {event.action}.")
        meant = self._group_of(target)
        ids = [row["event_id"] for row in meant]
        taken_back = self._taken_back(ids)
        meant = [row for row in meant if (row["event_id"] in taken_back) == (event.action == "redo")]
        if not meant:
            return Ack(event.event_id, "refused", reason=f"This was already {PAST[event.action]}.")
        self._load(sorted({row["image_id"] for row in meant}))
        if event.action == "undo" and len(ids) == 1 and not event.force:
            now = self.held[place_of(target)]
            if now.event_id != target["event_id"]:
                return Ack(event.event_id, "conflict", now.version, now)
        self._add(event, target["event_id"])
        names = [{"project": self.project, "event_id": row["event_id"]} for row in meant]
        if event.action == "undo":
            schema.upsert(self.connection, schema.undone, names)
        else:
            for part in in_chunks([name["event_id"] for name in names]):
                self.connection.execute(
                    schema.undone.delete().where(
                        schema.undone.c.project == self.project, schema.undone.c.event_id.in_(part)
                    )
                )
        self._flush()
        touched = self._fold_again({place_of(row) for row in meant}, event.event_id)
        return Ack(event.event_id, "saved", event.event_id, touched[0], touched=tuple(touched))

    def _target(self, event: Event) -> EventRow | None:
        """The event meant: the named one if it is the annotator's own, else the last that can be undone or redone."""
        table, undone = schema.events, schema.undone
        mine = sa.select(table).where(table.c.project == self.project, table.c.annotator == event.annotator)
        if event.target is not None:
            named = mine.where(table.c.event_id == event.target, table.c.action.in_(UNDOABLE))
            return self.connection.execute(named).mappings().first()
        is_undone = sa.exists().where(undone.c.project == self.project, undone.c.event_id == table.c.event_id)
        by_hand = mine.where(table.c.action.in_(UNDOABLE), table.c.source.in_(BY_HAND))
        if event.action == "undo":
            last = by_hand.where(~is_undone).order_by(table.c.seq.desc()).limit(1)
            return self.connection.execute(last).mappings().first()
        newest = self.connection.execute(
            by_hand.with_only_columns(table.c.seq).order_by(table.c.seq.desc()).limit(1)
        ).scalar()
        still = sa.exists().where(undone.c.project == self.project, undone.c.event_id == table.c.target)
        undo = mine.where(table.c.action == "undo", table.c.seq > (newest or 0), still)
        last_undo = self.connection.execute(undo.order_by(table.c.seq.desc()).limit(1)).mappings().first()
        if last_undo is None:
            return None
        return self.connection.execute(mine.where(table.c.event_id == last_undo["target"])).mappings().first()

    def _group_of(self, target: EventRow) -> list[EventRow]:
        if not target["group_id"]:
            return [target]
        table = schema.events
        query = sa.select(table).where(
            table.c.project == self.project,
            table.c.group_id == target["group_id"],
            table.c.annotator == target["annotator"],
            table.c.action.in_(UNDOABLE),
        )
        return list(self.connection.execute(query.order_by(table.c.seq)).mappings())

    def _fold_again(self, places: set[Place], version: str) -> list[Held]:
        """What holds on these places after their undone events changed."""
        table, undone = schema.events, schema.undone
        is_undone = sa.exists().where(undone.c.project == self.project, undone.c.event_id == table.c.event_id)
        last: dict[Place, EventRow] = {}
        for part in in_chunks(sorted({place[0] for place in places})):
            query = (
                sa.select(table)
                .where(table.c.project == self.project, table.c.image_id.in_(part), ~is_undone)
                .order_by(table.c.seq)
            )
            for row in self.connection.execute(query).mappings():
                last[place_of(row)] = row
        for place in places:
            self.held[place] = held_of(place, version, last.get(place))
        self.changed |= places
        return [self.held[place] for place in sorted(places)]

    # --- reading and writing at once ---------------------------------------------------------------------------

    def _load(self, images: Sequence[int]) -> None:
        for part in in_chunks(images):
            query = select_current(self.project).where(schema.current.c.image_id.in_(part))
            for row in self.connection.execute(query):
                self.held.setdefault((row[0], row[1], row[2]), held_of_row(row))

    def _saved_before(self, event_ids: Sequence[str]) -> dict[str, EventRow]:
        table = schema.events
        rows: dict[str, EventRow] = {}
        for part in in_chunks(event_ids):
            query = sa.select(table).where(table.c.project == self.project, table.c.event_id.in_(part))
            rows.update((row["event_id"], row) for row in self.connection.execute(query).mappings())
        return rows

    def _taken_back(self, event_ids: Sequence[str]) -> set[str]:
        table = schema.undone
        undone: set[str] = set()
        for part in in_chunks(event_ids):
            query = sa.select(table.c.event_id).where(table.c.project == self.project, table.c.event_id.in_(part))
            undone.update(self.connection.execute(query).scalars())
        return undone

    def _add(self, event: Event, target: str | None) -> dict[str, Any]:
        row: dict[str, Any] = {
            "project": self.project,
            "seq": self.head.seq + 1,
            "event_id": event.event_id,
            "image_id": None if event.image_id is None else signed(event.image_id),
            "round": event.round,
            "holder": event.holder,
            "annotator": event.annotator,
            "action": event.action,
            "class_id": event.class_id,
            "target": target,
            "group_id": event.group_id,
            "source": event.source,
            "drawing_id": event.drawing_id,
            "lead_time_ms": event.lead_time_ms,
            "made_ms": event.made_ms,
            "saved_ms": self.saved_ms,
            "expected_version": event.expected_version,
            "forced": event.force,
            "actor": event.actor,
        }
        row["link"] = chain.link_of_event(self.head.link, row)
        self.head = schema.Head(self.head.seq + 1, row["link"])
        self.rows.append(row)
        self.last_row = row
        return row

    def _flush(self) -> None:
        if self.rows:
            self.connection.execute(schema.events.insert(), self.rows)
            schema.set_head(self.connection, self.project, self.head)
            self.rows = []
        if self.changed:
            changed = [current_row(self.project, self.held[place]) for place in sorted(self.changed)]
            schema.upsert(self.connection, schema.current, changed)
            self.changed = set()


def _place_of_event(event: Event) -> Place:
    assert event.image_id is not None
    return signed(event.image_id), event.round, event.holder
