"""The label store of one project: events in, current labels out.

A label is saved when the transaction is committed, and only then acknowledged. Events are never changed; what holds
now is kept beside them in the same transaction and always equals a replay of the events (:meth:`LabelStore.rebuild`).
"""

from __future__ import annotations

import hashlib
import itertools
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from semiprune_core.errors import InvalidDataError, WorkspaceError
from semiprune_core.files import canonical_json
from semiprune_core.labeling import schema
from semiprune_core.labeling.classes import ClassSheet, LabelClass, resolve_merges
from semiprune_core.labeling.database import URL_VARIABLE, Database, shared_postgresql
from semiprune_core.labeling.events import (
    BY_HAND,
    REVIEW_ROUND,
    SETTLE_ROUND,
    UNDOABLE,
    Ack,
    Event,
    Held,
    Place,
    event_from_json,
    held_of,
    replay,
)
from semiprune_core.labeling.schema import in_chunks, signed, unsigned, unsigned_array
from semiprune_core.records import UNLABELED, BoolArray, IntArray

if TYPE_CHECKING:
    from semiprune_core.labeling.drawing import Drawing, Drawings
    from semiprune_core.labeling.leases import Leases
    from semiprune_core.workspace import Project

MAX_APPEND = 5_000
REFERENCE, FIRST, SETTLED, REVIEWED = range(4)
"""How much a label weighs; settled and reviewed ones weigh the same, and the later of them counts."""
Clock = Callable[[], float]
"""Seconds since 1970."""


def open_store(project: Project) -> LabelStore:
    """The label store of a project: its ``labels.sqlite``, or the database of ``SEMIPRUNE_DATABASE_URL``."""
    url = os.environ.get(URL_VARIABLE)
    database = shared_postgresql(url) if url else Database.sqlite(project.folder / "labels.sqlite")
    return LabelStore(database, project.name)


def has_store(project: Project) -> bool:
    """Whether anything was ever written to the project's label store; asking does not make one."""
    return bool(os.environ.get(URL_VARIABLE)) or (project.folder / "labels.sqlite").is_file()


def copy_labels(source: Project, target: Project) -> None:
    """Copy a project's classes, drawings and events, as they are, into the empty store of another; leases stay."""
    first, second = open_store(source), open_store(target)
    tables = [table for table in schema.metadata.sorted_tables if table is not schema.leases]
    with first.database.read() as connection:
        rows = {
            table: [
                {**row, "project": second.project}
                for row in connection.execute(sa.select(table).where(table.c.project == first.project)).mappings()
            ]
            for table in tables
        }

    def work(connection: Connection) -> None:
        for table in tables:
            for start in range(0, len(rows[table]), MAX_APPEND):
                connection.execute(table.insert(), rows[table][start : start + MAX_APPEND])

    second.database.write(work)


def forget_project(project: Project) -> None:
    """Remove a project's labels, classes and drawings from a shared database, in one transaction.

    Without one there is nothing to do: ``labels.sqlite`` goes with the project's folder.
    """
    if not os.environ.get(URL_VARIABLE):
        return
    store = open_store(project)

    def work(connection: Connection) -> None:
        schema.lock_project(connection, store.project)
        for table in schema.metadata.sorted_tables:
            connection.execute(table.delete().where(table.c.project == store.project))

    store.database.write(work)


@dataclass(frozen=True, eq=False)
class Labels:
    """What people decided so far: one settled class per image.

    ``ids`` (M,) uint64 ascending, ``class_ids`` (M,), ``by_person_mask`` (M,) False for reference labels,
    ``seqs`` (M,) number of the deciding event; ``disputed_ids`` (K,) images whose annotators disagree and which
    nobody settled: they have no label until then.
    """

    ids: np.ndarray
    class_ids: IntArray
    by_person_mask: BoolArray
    seqs: IntArray
    disputed_ids: np.ndarray


@dataclass(frozen=True, eq=False)
class LabelsSnapshot:
    """The labels a job pins. ``ids`` (M,) uint64 ascending, ``labels`` (M,) indices into ``class_names``.

    ``uniform_mask`` (M,) is True where the image was drawn uniformly *and* labeled without a suggestion in view:
    only those may serve unbiased estimates. ``hash`` covers all of it.
    """

    ids: np.ndarray
    labels: IntArray
    uniform_mask: BoolArray
    class_names: tuple[str, ...]
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256(canonical_json(list(self.class_names)).encode())
        for array, kind in ((self.ids, np.uint64), (self.labels, np.int64), (self.uniform_mask, np.uint8)):
            digest.update(np.ascontiguousarray(array, dtype=kind).tobytes())
        object.__setattr__(self, "hash", digest.hexdigest())

    def __len__(self) -> int:
        return len(self.ids)

    def on_pool(self, ids: np.ndarray, duplicate_of: IntArray) -> tuple[IntArray, BoolArray]:
        """Labels (N,) for every image of a pool, -1 for none, and the uniform mask (N,).

        Images with the same content have one label: that of the first among them if it has one, else that of the
        first copy that has one. So a picture is never labeled on one side and unlabeled on the other.
        """
        labels = np.full(len(ids), UNLABELED, dtype=np.int64)
        uniform = np.zeros(len(ids), dtype=bool)
        if len(self.ids):
            place = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
            known = self.ids[place] == ids
            labels[known] = self.labels[place[known]]
            uniform[known] = self.uniform_mask[place[known]]
        labeled = np.flatnonzero(labels != UNLABELED)[::-1]  # backwards, so that the first one is written last
        chosen = np.full(len(ids), -1, dtype=np.int64)
        chosen[duplicate_of[labeled]] = labeled
        chosen = chosen[duplicate_of]
        has = chosen >= 0
        labels[has], uniform[has] = labels[chosen[has]], uniform[chosen[has]]
        return labels, uniform


class LabelStore:
    """Events, classes, drawings and leases of one project. Cheap to open; safe for threads and processes."""

    def __init__(self, database: Database, project: str, *, clock: Clock = time.time) -> None:
        if not 1 <= len(project) <= 64:
            raise WorkspaceError("A project's name in the label store has 1 to 64 characters.")
        self.database = database
        self.project = project
        self.clock = clock
        schema.migrate(database)

    @classmethod
    def sqlite(cls, path: str | Path, project: str, *, clock: Clock = time.time) -> LabelStore:
        return cls(Database.sqlite(path), project, clock=clock)

    @property
    def now_ms(self) -> int:
        return int(self.clock() * 1000)

    @cached_property
    def classes(self) -> ClassSheet:
        return ClassSheet(self)

    @cached_property
    def drawings(self) -> Drawings:
        from semiprune_core.labeling.drawing import Drawings

        return Drawings(self)

    @cached_property
    def leases(self) -> Leases:
        from semiprune_core.labeling.leases import Leases

        return Leases(self)

    # --- writing -----------------------------------------------------------------------------------------------

    def append(self, events: Sequence[Event]) -> list[Ack]:
        """Save events, in order, in one transaction; one answer per event. Sending them again changes nothing."""
        if len(events) > MAX_APPEND:
            raise InvalidDataError(f"At most {MAX_APPEND} events can be saved at once, got {len(events)}.")
        if not events:
            return []
        return self.database.write(lambda connection: _Append(self, connection, events).run())

    def append_json(self, items: Sequence[Any], *, annotator: str) -> list[dict[str, Any]]:
        """What a browser posted, and the answers to send back; a malformed item is refused, the others are saved."""
        if not isinstance(items, list) or len(items) > MAX_APPEND:
            raise InvalidDataError(f"Label events come as a list of at most {MAX_APPEND}.")
        answers: list[dict[str, Any] | None] = []
        events: list[Event] = []
        for item in items:
            try:
                events.append(event_from_json(item, annotator=annotator))
                answers.append(None)
            except InvalidDataError as error:
                event_id = item.get("event_id") if isinstance(item, Mapping) else None
                named = event_id if isinstance(event_id, str) else ""
                answers.append(Ack(named[:64], "refused", reason=str(error)).to_json())
        acks = iter(self.append(events))
        return [answer if answer is not None else next(acks).to_json() for answer in answers]

    def rebuild(self) -> None:
        """Derive what holds now anew from the events."""

        def work(connection: Connection) -> None:
            schema.lock_project(connection, self.project)
            held, taken_back = replay(self._event_rows(connection))
            for table in (schema.current, schema.undone):
                connection.execute(table.delete().where(table.c.project == self.project))
            if held:
                connection.execute(schema.current.insert(), [_current_row(self.project, one) for one in held.values()])
            if taken_back:
                rows = [{"project": self.project, "event_id": event_id} for event_id in sorted(taken_back)]
                connection.execute(schema.undone.insert(), rows)

        self.database.write(work)

    # --- reading -----------------------------------------------------------------------------------------------

    @property
    def last_seq(self) -> int:
        """The number of the last event: grows with every change of the labels, so it may key a cache."""
        query = sa.select(schema.projects.c.last_seq).where(schema.projects.c.project == self.project)
        with self.database.read() as connection:
            return int(connection.execute(query).scalar() or 0)

    def events(self, *, after: int = 0, limit: int | None = None) -> list[dict[str, Any]]:
        """Rows of ``label_events`` in order, image ids unsigned; for history, audits and replays."""
        with self.database.read() as connection:
            rows = [dict(row) for row in self._event_rows(connection, after=after, limit=limit)]
        for row in rows:
            row["image_id"] = None if row["image_id"] is None else unsigned(row["image_id"])
        return rows

    def _event_rows(
        self, connection: Connection, *, after: int = 0, limit: int | None = None
    ) -> Iterable[Mapping[str, Any]]:
        table = schema.events
        query = sa.select(table).where(table.c.project == self.project, table.c.seq > after).order_by(table.c.seq)
        return connection.execute(query.limit(limit)).mappings()

    def held(self, image_ids: Iterable[int] | None = None, *, annotator: str | None = None) -> list[Held]:
        """What holds now: on these images (all where None), by this annotator (all where None)."""
        base = _select_current(self.project)
        if annotator is not None:
            base = base.where(schema.current.c.holder.in_([annotator, ""]))
        with self.database.read() as connection:
            if image_ids is None:
                return [_held(row) for row in connection.execute(base)]
            numbers = [signed(int(image_id)) for image_id in image_ids]
            found: list[Held] = []
            for part in in_chunks(numbers):
                rows = connection.execute(base.where(schema.current.c.image_id.in_(part)))
                found.extend(_held(row) for row in rows)
            return found

    def recent(self, annotator: str, n: int = 10) -> list[Held]:
        """The annotator's latest decisions that still hold, newest first."""
        query = (
            _select_current(self.project)
            .where(schema.current.c.annotator == annotator, schema.current.c.action.in_(("label", "skip", "settle")))
            .order_by(schema.current.c.seq.desc())
            .limit(n)
        )
        with self.database.read() as connection:
            return [_held(row) for row in connection.execute(query)]

    def flagged_ids(self) -> np.ndarray:
        """(K,) uint64, ascending: images somebody flagged."""
        table = schema.current
        query = sa.select(table.c.image_id).where(table.c.project == self.project, table.c.action == "flag").distinct()
        with self.database.read() as connection:
            return np.sort(unsigned_array(connection.execute(query).scalars().all()))

    def labels(self, *, blind: bool = False) -> Labels:
        """The settled label of every labeled image.

        A settled disagreement or a review, whichever came last, wins over first labels. First labels count when all
        annotators agree; reference labels only where no person has said anything. ``blind=True`` leaves reviews out.
        """
        with self.database.read() as connection:
            return self.labels_in(connection, blind=blind)

    def labels_in(self, connection: Connection, *, blind: bool = False) -> Labels:
        """:meth:`labels` inside a transaction."""
        rows, into = self._label_rows(connection), resolve_merges(self.classes.read(connection))
        return _settle(rows[rows[:, 3] < REVIEWED] if blind else rows, into)

    def _label_rows(self, connection: Connection) -> np.ndarray:
        """(R, 4) of every label that holds: image id (signed), class id, seq, and how much it weighs."""
        table = schema.current
        weight = sa.case(
            (table.c.round == REVIEW_ROUND, REVIEWED),
            (table.c.round == SETTLE_ROUND, SETTLED),
            (table.c.source != "reference", FIRST),
            else_=REFERENCE,
        )
        query = sa.select(table.c.image_id, table.c.class_id, table.c.seq, weight).where(
            table.c.project == self.project, table.c.class_id.is_not(None)
        )
        rows = connection.execute(query).fetchall()
        values = np.fromiter(itertools.chain.from_iterable(rows), dtype=np.int64, count=4 * len(rows))
        return values.reshape(-1, 4)

    def snapshot(self) -> LabelsSnapshot:
        """The labels as they are now, for a job to pin."""
        with self.database.read() as connection:
            sheet = self.classes.read(connection)
            rows, into = self._label_rows(connection), resolve_merges(sheet)
            uniform = self._uniform_ids(connection)
        labels, blind = _settle(rows, into), _settle(rows[rows[:, 3] < REVIEWED], into)
        same = np.isin(labels.ids, blind.ids)
        where = np.searchsorted(blind.ids, labels.ids[same])
        same[same] = blind.seqs[where] == labels.seqs[same]
        return self._snapshot_of(labels, np.isin(labels.ids, uniform) & same, sheet)

    def uniform_labels(self) -> LabelsSnapshot:
        """Labels of uniformly drawn images as given before any review: the base of unbiased estimates.

        A review looks at the model's doubtful images with its answer in view, so its corrections are left out here;
        the image itself stays in, with its first label, because leaving it out would bias the estimate too.
        """
        with self.database.read() as connection:
            sheet = self.classes.read(connection)
            blind = self.labels_in(connection, blind=True)
            uniform = self._uniform_ids(connection)
        keep = np.isin(blind.ids, uniform)
        kept = Labels(
            blind.ids[keep], blind.class_ids[keep], blind.by_person_mask[keep], blind.seqs[keep], blind.disputed_ids
        )
        return self._snapshot_of(kept, np.ones(len(kept.ids), dtype=bool), sheet)

    def _uniform_ids(self, connection: Connection) -> np.ndarray:
        """Drawn images whose labels may serve unbiased estimates, uint64.

        All of a uniform drawing, as a rule. Where it came upon images that had been drawn or decided for another
        reason, their labels are there before their turn, and the rest of that part is not: from there on only the
        images up to the first undecided one count, in the drawing's order. That order is random, so what it begins
        with is a uniform sample at any time, and all of it is once the drawing is finished.
        """
        drawings = self.drawings.read(connection)
        decided, first_ms = self._decided(connection), self._decided_before(connection, drawings)
        parts = [np.empty(0, np.uint64)]
        for seed in sorted({one.seed for one in drawings if one.uniform}):
            ids, sure = _uniform_order(drawings, seed, first_ms)
            waiting = np.flatnonzero(~np.isin(ids, decided))
            parts.append(ids[: max(sure, int(waiting[0]) if len(waiting) else len(ids))])
        return np.unique(np.concatenate(parts))

    def _decided(self, connection: Connection) -> np.ndarray:
        table = schema.current
        query = sa.select(table.c.image_id).where(
            table.c.project == self.project, table.c.action.in_(("label", "skip", "settle"))
        )
        return unsigned_array(connection.execute(query.distinct()).scalars().all())

    def _decided_before(self, connection: Connection, drawings: Sequence[Drawing]) -> dict[int, int]:
        """When (ms) images were first decided, of those decided before the latest uniform drawing was made."""
        last = max((one.saved_ms for one in drawings if one.uniform), default=0)
        table = schema.events
        first = sa.func.min(table.c.saved_ms)
        query = (
            sa.select(table.c.image_id, first)
            .where(table.c.project == self.project, table.c.action.in_(("label", "skip", "settle")))
            .group_by(table.c.image_id)
            .having(first < last)
        )
        return {unsigned(image): int(when) for image, when in connection.execute(query)}

    def _snapshot_of(self, labels: Labels, uniform: BoolArray, sheet: Sequence[LabelClass]) -> LabelsSnapshot:
        shown = [one for one in sheet if one.merged_into is None]
        index = {one.class_id: number for number, one in enumerate(shown)}
        lookup = np.full(max(index, default=0) + 1, UNLABELED, dtype=np.int64)
        for class_id, number in index.items():
            lookup[class_id] = number
        return LabelsSnapshot(labels.ids, lookup[labels.class_ids], uniform, tuple(one.name for one in shown))


def _uniform_order(drawings: Sequence[Drawing], seed: int, decided_ms: Mapping[int, int]) -> tuple[np.ndarray, int]:
    """The images (M,) of a seed's uniform drawings in order, and how many of them met no image from elsewhere.

    From elsewhere: in an earlier drawing that was not uniform, or decided earlier without being in a uniform one.
    """
    others: set[int] = set()
    uniform: set[int] = set()
    ids, sure, is_sure = np.empty(0, np.uint64), 0, True
    for one in drawings:  # oldest first; a larger drawing begins with the smaller one of its seed
        if one.uniform and one.seed == seed and len(one) > len(ids):
            new = one.ids[len(ids) :].tolist()
            early = {image for image in new if decided_ms.get(image, one.saved_ms) < one.saved_ms} - uniform
            is_sure = is_sure and not early and others.isdisjoint(new)
            ids = one.ids
            sure = len(ids) if is_sure else sure
        (uniform if one.uniform else others).update(one.ids.tolist())
    return ids, sure


def _settle(rows: np.ndarray, into: Mapping[int, int]) -> Labels:
    """Settled labels from rows (image, class, seq, weight): the heaviest decide; of the settled, the latest does."""
    ids = np.ascontiguousarray(rows[:, 0]).view(np.uint64)
    if not len(rows):
        empty = np.empty(0, dtype=np.int64)
        return Labels(ids, empty, empty.astype(bool), empty, ids)
    lookup = np.arange(int(rows[:, 1].max()) + 1)
    for class_id, target in into.items():
        if class_id < len(lookup):
            lookup[class_id] = target
    class_ids, seqs, ranks = lookup[rows[:, 1]], rows[:, 2], np.minimum(rows[:, 3], SETTLED)
    order = np.lexsort((seqs, ranks, ids))
    ids, class_ids, seqs, ranks = ids[order], class_ids[order], seqs[order], ranks[order]
    last = np.flatnonzero(np.append(ids[1:] != ids[:-1], True))  # the deciding event of each image
    starts = np.append(0, last[:-1] + 1)
    of_image = np.repeat(np.arange(len(last)), last - starts + 1)
    top = last[of_image]
    differs = (ranks == ranks[top]) & (class_ids != class_ids[top]) & (ranks[top] < SETTLED)
    disputed = np.zeros(len(last), dtype=bool)
    disputed[of_image[differs]] = True
    chosen = last[~disputed]
    return Labels(ids[chosen], class_ids[chosen], ranks[chosen] > 0, seqs[chosen], ids[last[disputed]])


def _select_current(project: str) -> sa.Select[Any]:
    table = schema.current
    columns = [column for column in table.c if column.name != "project"]
    return sa.select(*columns).where(table.c.project == project)


def _held(row: Sequence[Any]) -> Held:
    return Held(unsigned(row[0]), *row[1:])


def _current_row(project: str, held: Held) -> dict[str, Any]:
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


class _Append:
    """One append transaction: reads what it needs at once, decides in memory, writes at once."""

    def __init__(self, store: LabelStore, connection: Connection, events: Sequence[Event]) -> None:
        self.project = store.project
        self.connection = connection
        self.events = events
        self.seq = schema.lock_project(connection, self.project)
        self.saved_ms = store.now_ms
        self.class_ids = {one.class_id for one in store.classes.read(connection)}
        self.held: dict[Place, Held] = {}
        self.changed: set[Place] = set()
        self.rows: list[dict[str, Any]] = []
        self.last_row: dict[str, Any] = {}

    def run(self) -> list[Ack]:
        images = sorted({signed(event.image_id) for event in self.events if event.image_id is not None})
        self._load(images)
        known = self._known([event.event_id for event in self.events])
        acks = []
        for event in self.events:
            if event.event_id in known:
                ack = self._already(event, known[event.event_id])
            elif event.action in ("undo", "redo"):
                ack = self._undo_or_redo(event)
            else:
                ack = self._decide(event)
            if ack.status == "saved":
                known[event.event_id] = self.last_row
            acks.append(ack)
        self._flush()
        return acks

    # --- one event ---------------------------------------------------------------------------------------------

    def _already(self, event: Event, row: Mapping[str, Any]) -> Ack:
        """A repeated id changes nothing, unless it is another event under a used name: that is refused."""
        same = row["action"] == event.action and row["annotator"] == event.annotator
        if event.image_id is not None:
            same = same and row["image_id"] == signed(event.image_id) and row["class_id"] == event.class_id
        if not same:
            return Ack(event.event_id, "refused", reason="Another event was saved under this event id before.")
        held = self.held.get(_place_of(event)) if event.image_id is not None else None
        return Ack(event.event_id, "already", held.version if held else event.event_id, held)

    def _decide(self, event: Event) -> Ack:
        if event.class_id is not None and event.class_id not in self.class_ids:
            return Ack(event.event_id, "refused", reason=f"There is no class with the number {event.class_id}.")
        place = _place_of(event)
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
            word = "take back" if event.action == "undo" else "bring back"
            return Ack(event.event_id, "refused", reason=f"There is nothing to {word}.")
        meant = self._group_of(target)
        ids = [row["event_id"] for row in meant]
        taken_back = self._taken_back(ids)
        meant = [row for row in meant if (row["event_id"] in taken_back) == (event.action == "redo")]
        if not meant:
            word = "taken back" if event.action == "undo" else "brought back"
            return Ack(event.event_id, "refused", reason=f"This was {word} already.")
        self._load(sorted({row["image_id"] for row in meant}))
        if event.action == "undo" and len(ids) == 1 and not event.force:
            now = self.held[_place_of_row(target)]
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
        touched = self._fold_again({_place_of_row(row) for row in meant}, event.event_id)
        return Ack(event.event_id, "saved", event.event_id, touched[0], touched=tuple(touched))

    def _target(self, event: Event) -> Mapping[str, Any] | None:
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

    def _group_of(self, target: Mapping[str, Any]) -> list[Mapping[str, Any]]:
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
        last: dict[Place, Mapping[str, Any]] = {}
        for part in in_chunks(sorted({place[0] for place in places})):
            query = (
                sa.select(table)
                .where(table.c.project == self.project, table.c.image_id.in_(part), ~is_undone)
                .order_by(table.c.seq)
            )
            for row in self.connection.execute(query).mappings():
                last[_place_of_row(row)] = row
        for place in places:
            self.held[place] = held_of(place, version, last.get(place))
        self.changed |= places
        return [self.held[place] for place in sorted(places)]

    # --- reading and writing at once ---------------------------------------------------------------------------

    def _load(self, images: Sequence[int]) -> None:
        for part in in_chunks(images):
            query = _select_current(self.project).where(schema.current.c.image_id.in_(part))
            for row in self.connection.execute(query):
                self.held.setdefault((row[0], row[1], row[2]), _held(row))

    def _known(self, event_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        table = schema.events
        found: dict[str, Mapping[str, Any]] = {}
        for part in in_chunks(event_ids):
            query = sa.select(table).where(table.c.project == self.project, table.c.event_id.in_(part))
            found.update((row["event_id"], row) for row in self.connection.execute(query).mappings())
        return found

    def _taken_back(self, event_ids: Sequence[str]) -> set[str]:
        table = schema.undone
        found: set[str] = set()
        for part in in_chunks(event_ids):
            query = sa.select(table.c.event_id).where(table.c.project == self.project, table.c.event_id.in_(part))
            found.update(self.connection.execute(query).scalars())
        return found

    def _add(self, event: Event, target: str | None) -> dict[str, Any]:
        self.seq += 1
        row = {
            "project": self.project,
            "seq": self.seq,
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
        }
        self.rows.append(row)
        self.last_row = row
        return row

    def _flush(self) -> None:
        if self.rows:
            self.connection.execute(schema.events.insert(), self.rows)
            schema.set_last_seq(self.connection, self.project, self.seq)
            self.rows = []
        if self.changed:
            changed = [_current_row(self.project, self.held[place]) for place in sorted(self.changed)]
            schema.upsert(self.connection, schema.current, changed)
            self.changed = set()


def _place_of(event: Event) -> Place:
    assert event.image_id is not None
    return signed(event.image_id), event.round, event.holder


def _place_of_row(row: Mapping[str, Any]) -> Place:
    return row["image_id"], row["round"], row["holder"]
