"""The label store's tables, and the steps that bring an older database up to date.

Every table carries the project's name, because one PostgreSQL may hold many projects: each query names it.
Image ids are unsigned 64-bit numbers; databases know signed ones, so :func:`signed` and :func:`unsigned` translate.

    label_projects     one row per project: the number of its last event; locked by every write
    label_events       what happened, append-only: (project, seq) in order, (project, event_id) once
    label_undone       which events are taken back right now                          (derived from the events)
    label_current      what holds now, per image, round and holder                    (derived from the events)
    label_classes      the classes as they are; label_class_events how they came to be
    label_drawings     what was drawn and how; label_drawn the images, in order
    label_leases       who has which image before them, and until when
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from semiprune_core.errors import WorkspaceError
from semiprune_core.labeling.database import Database

CHUNK = 500
"""How many values one ``IN`` list holds."""

metadata = sa.MetaData()
CLUSTERED: dict[str, Any] = {"sqlite_with_rowid": False}
"""Rows lie in the order of their primary key, so that a project is read in one sweep."""


def _project() -> sa.Column[str]:
    return sa.Column("project", sa.String(64), primary_key=True)


schema_steps = sa.Table(
    "label_schema",
    sa.MetaData(),
    sa.Column("step", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.String(100), nullable=False),
)

projects = sa.Table(
    "label_projects", metadata, _project(), sa.Column("last_seq", sa.BigInteger, nullable=False), **CLUSTERED
)

events = sa.Table(
    "label_events",
    metadata,
    _project(),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("event_id", sa.String(64), nullable=False),
    sa.Column("image_id", sa.BigInteger),  # null for undo and redo, whose images are those of their target
    sa.Column("round", sa.String(8), nullable=False),
    sa.Column("holder", sa.String(128), nullable=False),
    sa.Column("annotator", sa.String(128), nullable=False),
    sa.Column("action", sa.String(8), nullable=False),
    sa.Column("class_id", sa.Integer),
    sa.Column("target", sa.String(64)),
    sa.Column("group_id", sa.String(64)),
    sa.Column("source", sa.String(16), nullable=False),
    sa.Column("drawing_id", sa.Integer),
    sa.Column("lead_time_ms", sa.BigInteger),
    sa.Column("made_ms", sa.BigInteger),
    sa.Column("saved_ms", sa.BigInteger, nullable=False),
    sa.Column("expected_version", sa.String(64)),
    sa.Column("forced", sa.Boolean, nullable=False),
    sa.Column("actor", sa.String(128)),  # who imported it; null where the annotator did it by hand
    sa.UniqueConstraint("project", "event_id"),
    **CLUSTERED,
)
sa.Index("label_events_by_image", events.c.project, events.c.image_id)
sa.Index("label_events_by_annotator", events.c.project, events.c.annotator, events.c.seq)
sa.Index("label_events_by_group", events.c.project, events.c.group_id)

undone = sa.Table(
    "label_undone", metadata, _project(), sa.Column("event_id", sa.String(64), primary_key=True), **CLUSTERED
)

current = sa.Table(
    "label_current",
    metadata,
    _project(),
    sa.Column("image_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("round", sa.String(8), primary_key=True),
    sa.Column("holder", sa.String(128), primary_key=True),
    sa.Column("version", sa.String(64), nullable=False),
    sa.Column("event_id", sa.String(64)),  # null, like the rest, when everything was taken back
    sa.Column("seq", sa.BigInteger),
    sa.Column("annotator", sa.String(128)),
    sa.Column("action", sa.String(8)),
    sa.Column("class_id", sa.Integer),
    sa.Column("source", sa.String(16)),
    sa.Column("saved_ms", sa.BigInteger),
    **CLUSTERED,
)

classes = sa.Table(
    "label_classes",
    metadata,
    _project(),
    sa.Column("class_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("colour", sa.String(7), nullable=False),
    sa.Column("key", sa.String(1), nullable=False),
    sa.Column("merged_into", sa.Integer),
    sa.Column("removed", sa.Boolean, nullable=False),
    **CLUSTERED,
)

class_events = sa.Table(
    "label_class_events",
    metadata,
    _project(),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("saved_ms", sa.BigInteger, nullable=False),
    sa.Column("annotator", sa.String(128), nullable=False),
    sa.Column("action", sa.String(16), nullable=False),
    sa.Column("details", sa.JSON, nullable=False),
    **CLUSTERED,
)

drawings = sa.Table(
    "label_drawings",
    metadata,
    _project(),
    sa.Column("drawing_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("method", sa.String(32), nullable=False),
    sa.Column("uniform", sa.Boolean, nullable=False),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("n_images", sa.Integer, nullable=False),
    sa.Column("n_groups", sa.Integer, nullable=False),
    sa.Column("overlap", sa.Float, nullable=False),
    sa.Column("pool_hash", sa.String(64), nullable=False),
    sa.Column("extends", sa.Integer),
    sa.Column("annotator", sa.String(128), nullable=False),
    sa.Column("saved_ms", sa.BigInteger, nullable=False),
    sa.Column("final_test", sa.Float, nullable=False, server_default="0"),
    **CLUSTERED,
)

drawn = sa.Table(
    "label_drawn",
    metadata,
    _project(),
    sa.Column("drawing_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("image_id", sa.BigInteger, nullable=False),
    sa.Column("needs", sa.Integer, nullable=False),  # how many annotators should decide it: 1, or 2 in the overlap
    sa.Column("is_final", sa.Boolean, nullable=False, server_default=sa.false()),  # kept for the final test
    sa.UniqueConstraint("project", "drawing_id", "image_id"),
    **CLUSTERED,
)

leases = sa.Table(
    "label_leases",
    metadata,
    _project(),
    sa.Column("image_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("annotator", sa.String(128), primary_key=True),
    sa.Column("expires_ms", sa.BigInteger, nullable=False),
    **CLUSTERED,
)

Step = Callable[[Connection], None]
STEPS: dict[int, Step] = {}


def migration(number: int) -> Callable[[Step], Step]:
    """Register the step that brings a database from schema ``number - 1`` to ``number``."""

    def add(step: Step) -> Step:
        if number != len(STEPS) + 1:
            raise ValueError(f"Label store migration {number} is out of order.")
        STEPS[number] = step
        return step

    return add


@migration(1)
def first_tables(connection: Connection) -> None:
    tables = (projects, events, undone, current, classes, class_events, drawings, drawn, leases)
    metadata.create_all(connection, tables=list(tables), checkfirst=False)


@migration(2)
def final_tests(connection: Connection) -> None:
    """Drawings from before there were final tests have none."""
    _add_column(connection, drawings.c.final_test)
    _add_column(connection, drawn.c.is_final)


@migration(3)
def importers(connection: Connection) -> None:
    """Of imports from before nobody knows who made them."""
    _add_column(connection, events.c.actor)


def _add_column(connection: Connection, column: sa.Column[Any]) -> None:
    """Add a column that tables made by :func:`first_tables` today have already."""
    if column.name not in {there["name"] for there in sa.inspect(connection).get_columns(column.table.name)}:
        definition = sa.schema.CreateColumn(column).compile(dialect=connection.dialect)
        connection.execute(sa.text(f"ALTER TABLE {column.table.name} ADD COLUMN {definition}"))


def migrate(database: Database) -> None:
    """Bring the database to the current schema; each step is one transaction together with its record.

    A :class:`Database` is looked at once, and again when one of its connections finds that its file was replaced.
    """
    if database.migrated is not None:
        return
    database.migrate = functools.partial(migrate, database)
    while True:
        with database.read() as connection:
            done, schema = _schema(connection), database.schema_of(connection)
        if done >= len(STEPS):
            break
        database.write(_one_step)
    if done > len(STEPS):
        raise WorkspaceError(
            f"{database.shown} was written by a newer SemiPrune Studio (schema {done}, this one knows {len(STEPS)}). "
            "Update SemiPrune Studio; the labels were not touched.",
            code="NEWER_SCHEMA",
        )
    database.migrated = schema


def _one_step(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":  # SQLite's BEGIN IMMEDIATE is such a lock already
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(7360513)"))
    schema_steps.create(connection, checkfirst=True)
    done = _schema(connection)
    if done < len(STEPS):
        done += 1
        STEPS[done](connection)
        connection.execute(schema_steps.insert().values(step=done, name=STEPS[done].__name__))
        if connection.dialect.name == "sqlite":  # a step that only moves data shows in the file's mark too
            connection.exec_driver_sql(f"PRAGMA user_version = {done}")


def _schema(connection: Connection) -> int:
    if not sa.inspect(connection).has_table(schema_steps.name):
        return 0
    return connection.execute(sa.select(sa.func.max(schema_steps.c.step))).scalar() or 0


def signed(image_id: int) -> int:
    """An image id as databases can hold it."""
    return image_id - (1 << 64) if image_id >= 1 << 63 else image_id


def unsigned(number: int) -> int:
    return number + (1 << 64) if number < 0 else number


def unsigned_array(numbers: Sequence[int]) -> np.ndarray:
    """(M,) uint64 of signed numbers."""
    return np.array(numbers, dtype=np.int64).view(np.uint64)


def in_chunks(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), CHUNK):
        yield values[start : start + CHUNK]


def upsert(connection: Connection, table: sa.Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows, or replace those whose primary key is there."""
    if not rows:
        return
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement = make(table)
    keys = [column.name for column in table.primary_key]
    changed = {name: statement.excluded[name] for name in rows[0] if name not in keys}
    if changed:
        statement = statement.on_conflict_do_update(index_elements=keys, set_=changed)
    else:
        statement = statement.on_conflict_do_nothing(index_elements=keys)
    connection.execute(statement, list(rows))


def lock_project(connection: Connection, project: str) -> int:
    """Make this transaction the only writer of ``project``; returns the number of its last event."""
    row = sa.select(projects.c.last_seq).where(projects.c.project == project).with_for_update()
    last_seq = connection.execute(row).scalar()
    if last_seq is None:
        upsert_nothing = {"project": project, "last_seq": 0}
        make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
        connection.execute(make(projects).values(upsert_nothing).on_conflict_do_nothing())
        last_seq = connection.execute(row).scalar_one()
    return int(last_seq)


def set_last_seq(connection: Connection, project: str, seq: int) -> None:
    connection.execute(projects.update().where(projects.c.project == project).values(last_seq=seq))
