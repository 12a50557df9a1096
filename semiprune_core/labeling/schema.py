"""The label store's tables.

Every table carries the project's name, because one PostgreSQL may hold many projects: each query names it.
Image ids are unsigned 64-bit numbers; databases know signed ones, so :func:`signed` and :func:`unsigned` translate.

    label_projects     one row per project: the number of its last event; locked by every write
    label_events       what happened, append-only: (project, seq) in order, (project, event_id) once
    label_undone       which events are taken back right now                          (derived from the events)
    label_current      what holds now, per image, round and holder                    (derived from the events)
    label_classes      the classes as they are; label_class_events how they came to be
    label_drawings     what was drawn and how; label_drawn the images, in order
    label_leases       who has which image before them, and until when
    label_reserve      empty; what passed through it left free pages for a full disk (SQLite only)

Events, changes of classes and drawings share one sequence of numbers and one chain of links (``chain.py``); the row
of a project names the last of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

CHUNK = 500
"""How many values one ``IN`` list holds."""
ROWS = 5_000
"""How many rows are written at once."""

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

reserve = sa.Table(
    "label_reserve",
    sa.MetaData(),
    sa.Column("filler", sa.LargeBinary, nullable=False),
)


def _link() -> sa.Column[str]:
    return sa.Column("link", sa.String(32), nullable=False, server_default="")


projects = sa.Table(
    "label_projects",
    metadata,
    _project(),
    sa.Column("last_seq", sa.BigInteger, nullable=False),
    _link(),
    **CLUSTERED,
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
    _link(),
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
    sa.Column("sheet", sa.String(32), nullable=False, server_default=""),  # a hash of all classes after it
    _link(),
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
    sa.Column("seq", sa.BigInteger, nullable=False, server_default="0"),
    _link(),
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
    sa.Column("leased_ms", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("tab", sa.String(64), nullable=False, server_default=""),  # of the browser; "" where it said nothing
    **CLUSTERED,
)


class Head(NamedTuple):
    """The number of a project's last entry, and its link."""

    seq: int
    link: str


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


def insert(connection: Connection, table: sa.Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert any number of rows, none too."""
    for start in range(0, len(rows), ROWS):
        connection.execute(table.insert(), list(rows[start : start + ROWS]))


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


def lock_project(connection: Connection, project: str) -> Head:
    """Make this transaction the only writer of ``project``; returns where its chain ends."""
    row = sa.select(projects.c.last_seq, projects.c.link).where(projects.c.project == project).with_for_update()
    head = connection.execute(row).first()
    if head is None:
        upsert_nothing = {"project": project, "last_seq": 0, "link": ""}
        make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
        connection.execute(make(projects).values(upsert_nothing).on_conflict_do_nothing())
        head = connection.execute(row).one()
    return Head(int(head[0]), head[1])


def head_of(connection: Connection, project: str) -> Head:
    """Where a project's chain ends."""
    row = connection.execute(sa.select(projects.c.last_seq, projects.c.link).filter_by(project=project)).first()
    return Head(int(row[0]), row[1]) if row else Head(0, "")


def set_head(connection: Connection, project: str, head: Head) -> None:
    values = {"last_seq": head.seq, "link": head.link}
    connection.execute(projects.update().where(projects.c.project == project).values(values))
