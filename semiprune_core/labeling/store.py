"""The label store of one project: events in, current labels out.

A label is saved when the transaction is committed, and only then acknowledged. Events are never changed; what holds
now is kept beside them in the same transaction and always equals a replay of the events (:meth:`LabelStore.rebuild`).
"""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from semiprune_core.errors import InvalidDataError, WorkspaceError
from semiprune_core.labeling import migrations, schema
from semiprune_core.labeling.appending import Append, derive_again, held_of_row, select_current
from semiprune_core.labeling.backups import Restored, after_saving, make_backup, restore_store
from semiprune_core.labeling.checking import Damage, check, copies_of, copy_is_whole, damage_of, n_noted, require_sound
from semiprune_core.labeling.class_names import NO_CLASSES, ClassBook
from semiprune_core.labeling.classes import ClassSheet, LabelClass, resolve_merges
from semiprune_core.labeling.database import URL_VARIABLE, Database, shared_postgresql, shared_sqlite
from semiprune_core.labeling.drawing import Drawing, Drawings
from semiprune_core.labeling.events import (
    REVIEW_ROUND,
    SETTLE_ROUND,
    Ack,
    Event,
    EventRow,
    Held,
    event_from_json,
)
from semiprune_core.labeling.leases import Leases
from semiprune_core.labeling.permits import check_events
from semiprune_core.labeling.reserve import set_space_aside
from semiprune_core.labeling.schema import in_chunks, signed, unsigned, unsigned_array
from semiprune_core.labeling.snapshot import (
    FIRST,
    REFERENCE,
    REVIEWED,
    SETTLED,
    Labels,
    LabelsSnapshot,
    settle,
    uniform_order,
)
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.records import UNLABELED, BoolArray

log = logging.getLogger(__name__)

MAX_APPEND = 5_000
Clock = Callable[[], float]
"""Seconds since 1970."""


def open_store(project: Project) -> LabelStore:
    """The label store of a project: its ``labels.sqlite``, or the database of ``SEMIPRUNE_DATABASE_URL``."""
    url = os.environ.get(URL_VARIABLE)
    if url:
        return LabelStore(shared_postgresql(url), project.name)
    path = store_file(project)
    require_sound(path, project.name)
    store = LabelStore(shared_sqlite(path), project.name)
    store.after_saving = partial(after_saving, path, project.name)
    return store


def store_file(project: Project) -> Path:
    """Where a project's own labels are, unless they are in a shared database."""
    return project.folder / "labels.sqlite"


def has_store(project: Project) -> bool:
    """Whether anything was ever written to the project's label store; asking does not make one."""
    return bool(os.environ.get(URL_VARIABLE)) or _is_there(project.folder / "labels.sqlite")


def _is_there(path: Path) -> bool:
    """Whether there is a store, or was one when it was last looked at: then opening it says what became of it."""
    return path.is_file() or n_noted(path) > 0


def class_book(folder: Path) -> ClassBook:
    """How the classes of the project in ``folder`` are called, now and before; empty where it has no label store."""
    if not os.environ.get(URL_VARIABLE) and not _is_there(folder / "labels.sqlite"):
        return NO_CLASSES
    return open_store(Workspace(folder.parent).project(folder.name)).classes.book()


def label_damage(project: Project) -> Damage | None:
    """What is wrong with a project's labels, looked at from the first event to the last; None where they are whole."""
    if not has_store(project):
        return None
    if not os.environ.get(URL_VARIABLE):
        return damage_of(store_file(project), project.name, thorough=True)
    with open_store(project).database.read() as connection:
        return check(connection, project.name)[1]


def damaged_copies(project: Project) -> list[Path]:
    """The copies of a project's labels that are not as they were written."""
    return [copy for copy in copies_of(store_file(project)) if not copy_is_whole(copy)]


def copies_note() -> str | None:
    """Why no copies of labels are kept, and what to do instead; None where they are kept."""
    if not os.environ.get(URL_VARIABLE):
        return None
    return "Labels are stored in PostgreSQL, so the app keeps no copies of them: make backups of that database itself."


def restore_labels(project: Project) -> Restored:
    """Put a sound label store in the place of a damaged one, which is set aside."""
    if os.environ.get(URL_VARIABLE):
        raise WorkspaceError(
            f"The labels of project '{project.name}' are damaged. They are stored in PostgreSQL, so the app keeps no "
            "copies of them: restore that database from a backup of its own.",
            code="NO_BACKUP",
        )
    return restore_store(store_file(project), project.name)


def look_after_labels(workspace: Workspace) -> None:
    """Check the labels of every project, copy those that changed, set space aside; for the start of the app."""
    for name in workspace.names():
        try:
            project = workspace.project(name)
            if not has_store(project):
                continue
            store = open_store(project)
            set_space_aside(store.database)
            if not os.environ.get(URL_VARIABLE):
                make_backup(store_file(project), name)
            elif damage := label_damage(project):
                log.warning("The labels of project '%s' are damaged: %s.", name, damage.reason)
        except Exception as error:  # noqa: BLE001 - one project's trouble is not the others'
            log.warning("The labels of project '%s' could not be looked after: %s", name, error)


def copy_labels(source: Project, target: Project) -> None:
    """Copy a project's classes, drawings and events, as they are, into the empty store of another; leases stay."""
    _copy(open_store(source), open_store(target))


def take_out_labels(project: Project) -> None:
    """Move a project's labels from a shared database into its own folder, so that they stay together."""
    if not os.environ.get(URL_VARIABLE):
        return
    _copy(open_store(project), LabelStore(shared_sqlite(project.folder / "labels.sqlite"), project.name))
    forget_project(project)


def put_back_labels(project: Project) -> None:
    """Undo ``take_out_labels``: with a shared database, move the labels in the project's folder back into it."""
    file = project.folder / "labels.sqlite"
    if os.environ.get(URL_VARIABLE) and file.exists():
        _copy(LabelStore(shared_sqlite(file), project.name), open_store(project))
        file.rename(file.with_name(".labels-before-archive.sqlite"))


def _copy(first: LabelStore, second: LabelStore) -> None:
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
            schema.insert(connection, table, rows[table])

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


class LabelStore:
    """Events, classes, drawings and leases of one project. Cheap to open; safe for threads and processes."""

    def __init__(self, database: Database, project: str, *, clock: Clock = time.time) -> None:
        if not 1 <= len(project) <= 64:
            raise WorkspaceError("A project's name in the label store has 1 to 64 characters.")
        self.database = database
        self.project = project
        self.clock = clock
        self.after_saving: Callable[[], None] = lambda: None
        migrations.migrate(database)

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
        return Drawings(self)

    @cached_property
    def leases(self) -> Leases:
        return Leases(self)

    # --- writing -----------------------------------------------------------------------------------------------

    def append(self, events: Sequence[Event]) -> list[Ack]:
        """Save events, in order, in one transaction; one answer per event. Sending them again changes nothing."""
        if len(events) > MAX_APPEND:
            raise InvalidDataError(f"At most {MAX_APPEND} events can be saved at once, got {len(events)}.")
        if not events:
            return []
        check_events(self, events)
        acks = self.database.write(lambda connection: Append(self, connection, events).run())
        self.after_saving()
        return acks

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
            derive_again(connection, self.project)

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

    def _event_rows(self, connection: Connection, *, after: int = 0, limit: int | None = None) -> Iterable[EventRow]:
        table = schema.events
        query = sa.select(table).where(table.c.project == self.project, table.c.seq > after).order_by(table.c.seq)
        return connection.execute(query.limit(limit)).mappings()

    def held(self, image_ids: Iterable[int] | None = None, *, annotator: str | None = None) -> list[Held]:
        """What holds now: on these images (all where None), by this annotator (all where None)."""
        base = select_current(self.project)
        if annotator is not None:
            base = base.where(schema.current.c.holder.in_([annotator, ""]))
        with self.database.read() as connection:
            if image_ids is None:
                return [held_of_row(row) for row in connection.execute(base)]
            numbers = [signed(int(image_id)) for image_id in image_ids]
            states: list[Held] = []
            for part in in_chunks(numbers):
                rows = connection.execute(base.where(schema.current.c.image_id.in_(part)))
                states.extend(held_of_row(row) for row in rows)
            return states

    def recent(self, annotator: str, n: int = 10) -> list[Held]:
        """The annotator's latest decisions that still hold, newest first."""
        query = (
            select_current(self.project)
            .where(schema.current.c.annotator == annotator, schema.current.c.action.in_(("label", "skip", "settle")))
            .order_by(schema.current.c.seq.desc())
            .limit(n)
        )
        with self.database.read() as connection:
            return [held_of_row(row) for row in connection.execute(query)]

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
        return settle(rows[rows[:, 3] < REVIEWED] if blind else rows, into)

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
        """The labels as they are now, for a job to pin; those that are kept for the final test are not among them."""
        with self.database.read() as connection:
            sheet = self.classes.read(connection)
            rows, into = self._label_rows(connection), resolve_merges(sheet)
            uniform, final = self._uniform_ids(connection), self.drawings.final_in(connection)
        rows = rows[~np.isin(np.ascontiguousarray(rows[:, 0]).view(np.uint64), final)]
        labels, blind = settle(rows, into), settle(rows[rows[:, 3] < REVIEWED], into)
        same = np.isin(labels.ids, blind.ids)
        where = np.searchsorted(blind.ids, labels.ids[same])
        same[same] = blind.seqs[where] == labels.seqs[same]
        return self._snapshot_of(labels, np.isin(labels.ids, uniform) & same, sheet, final)

    def uniform_labels(self) -> LabelsSnapshot:
        """Labels of uniformly drawn images as given before any review: the base of unbiased estimates.

        A review looks at the model's doubtful images with its answer in view, so its corrections are left out here;
        the image itself stays in, with its first label, because leaving it out would bias the estimate too.
        Those of the final test are left out.
        """
        return self._blind_labels(final=False)

    def final_test(self) -> LabelsSnapshot:
        """The same of the images that are kept for the final test, and nothing else: for evaluations alone."""
        return self._blind_labels(final=True)

    def _blind_labels(self, *, final: bool) -> LabelsSnapshot:
        with self.database.read() as connection:
            sheet = self.classes.read(connection)
            blind = self.labels_in(connection, blind=True)
            uniform, final_ids = self._uniform_ids(connection), self.drawings.final_in(connection)
        keep = np.isin(blind.ids, uniform) & (np.isin(blind.ids, final_ids) == final)
        drawn_uniformly = Labels(
            blind.ids[keep], blind.class_ids[keep], blind.by_person_mask[keep], blind.seqs[keep], blind.disputed_ids
        )
        every = np.ones(len(drawn_uniformly.ids), dtype=bool)
        return self._snapshot_of(drawn_uniformly, every, sheet, final_ids[:0] if final else final_ids)

    def _uniform_ids(self, connection: Connection) -> np.ndarray:
        """Drawn images whose labels may serve unbiased estimates, uint64.

        All of a uniform drawing, as a rule. Where it came upon images that had been drawn or decided for another
        reason, their labels are there before their turn, and the rest of that part is not: from there on only the
        images up to the first undecided one count, in the drawing's order. That order is random, so what it begins
        with is a uniform sample at any time, and all of it is once the drawing is finished.
        """
        drawings = self.drawings.read(connection)
        decided, first = self._decided(connection), self._decided_before(connection, drawings)
        parts = [np.empty(0, np.uint64)]
        for seed in sorted({drawing.seed for drawing in drawings if drawing.uniform}):
            ids, sure = uniform_order(drawings, seed, first)
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
        """The event that first decided an image, of those decided before the latest uniform drawing was made."""
        last = max((drawing.seq for drawing in drawings if drawing.uniform), default=0)
        table = schema.events
        first = sa.func.min(table.c.seq)
        query = (
            sa.select(table.c.image_id, first)
            .where(table.c.project == self.project, table.c.seq < last)
            .where(table.c.action.in_(("label", "skip", "settle")))
            .group_by(table.c.image_id)
        )
        return {unsigned(image): int(seq) for image, seq in connection.execute(query)}

    def _snapshot_of(
        self, labels: Labels, uniform: BoolArray, sheet: Sequence[LabelClass], final_ids: np.ndarray
    ) -> LabelsSnapshot:
        shown = [entry for entry in sheet if entry.merged_into is None]
        index = {entry.class_id: number for number, entry in enumerate(shown)}
        lookup = np.full(max(index, default=0) + 1, UNLABELED, dtype=np.int64)
        for class_id, number in index.items():
            lookup[class_id] = number
        return LabelsSnapshot(
            labels.ids,
            lookup[labels.class_ids],
            uniform,
            tuple(entry.name for entry in shown),
            tuple(entry.class_id for entry in shown),
            final_ids,
        )
