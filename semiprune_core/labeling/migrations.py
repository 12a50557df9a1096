"""The steps that bring an older label store up to date: in order, each in one transaction with its record."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from semiprune_core.errors import WorkspaceError
from semiprune_core.labeling import chain
from semiprune_core.labeling.database import Database
from semiprune_core.labeling.schema import (
    class_events,
    classes,
    current,
    drawings,
    drawn,
    events,
    leases,
    metadata,
    projects,
    reserve,
    schema_steps,
    undone,
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


@migration(4)
def links(connection: Connection) -> None:
    """The chain is made over what is there, right or wrong."""
    columns = (projects.c.link, events.c.link, class_events.c.sheet, class_events.c.link, drawings.c.seq)
    for column in (*columns, drawings.c.link, leases.c.leased_ms):
        _add_column(connection, column)
    for project in connection.execute(sa.select(projects.c.project)).scalars().all():
        _number_drawings(connection, project)
        chain.make(connection, project)


def _number_drawings(connection: Connection, project: str) -> None:
    """Drawings took a number and did not write it down: those that are missing among the numbers of the rest."""
    mine = sa.select(drawings.c.drawing_id).where(drawings.c.project == project).order_by(drawings.c.drawing_id)
    ids = connection.execute(mine).scalars().all()
    used: set[int] = set()
    for table in (events, class_events):
        used.update(connection.execute(sa.select(table.c.seq).where(table.c.project == project)).scalars())
    last_seq = connection.execute(sa.select(projects.c.last_seq).where(projects.c.project == project)).scalar_one()
    missing = [seq for seq in range(1, last_seq + 1) if seq not in used]
    if len(missing) != len(ids):  # nobody knows: behind all labels none of them counts as drawn before its turn
        missing = list(range(last_seq + 1, last_seq + 1 + len(ids)))
        connection.execute(projects.update().filter_by(project=project).values(last_seq=last_seq + len(ids)))
    for drawing_id, seq in zip(ids, missing, strict=True):
        connection.execute(drawings.update().filter_by(project=project, drawing_id=drawing_id).values(seq=seq))


@migration(5)
def space_aside(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        reserve.create(connection, checkfirst=True)


@migration(6)
def tabs(connection: Connection) -> None:
    """Of leases from before nobody knows which tab has them."""
    _add_column(connection, leases.c.tab)


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
