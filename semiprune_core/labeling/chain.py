"""The chain: every entry of a label store carries a link, a hash over itself and the link before it.

Entries are label events, changes of the classes and drawings, in the one order of their numbers (``seq``). A value that
changes on the disk no longer fits its link, and an entry that goes missing leaves a link that fits nothing. A change of
the classes also carries a hash of all classes as they are after it (``sheet``), and a drawing's link covers its images.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from semiprune_core.labeling import schema
from semiprune_core.labeling.schema import Head

DIGITS = 32
"""128 bits of SHA-256, in hexadecimal."""
AT_ONCE = 1_000
"""How many entries are read at once."""

_dump = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode  # ASCII: the same text on every system


class Entry(NamedTuple):
    """One entry of a chain: its number, the name of its table, what its link covers, and the link."""

    seq: int
    table: str
    values: Sequence[Any]
    link: str


def link_of(before: str, values: Sequence[Any]) -> str:
    """The link of an entry that follows the link ``before``."""
    return _digest(f"{before} {_dump(values)}")


def link_of_event(before: str, row: Mapping[str, Any]) -> str:
    return link_of(before, [row[name] for name in EVENT])


def link_of_class_event(before: str, row: Mapping[str, Any]) -> str:
    return link_of(before, [row[name] for name in CLASS_EVENT])


def link_drawing(connection: Connection, project: str, drawing_id: int) -> None:
    """Link the drawing that was just recorded, as the database gives it back."""
    table, before = schema.drawings, schema.lock_project(connection, project).link
    mine = (table.c.project == project) & (table.c.drawing_id == drawing_id)
    row = connection.execute(sa.select(*_columns(table, DRAWING)).where(mine)).one()
    link = link_of(before, (*row, _drawn(connection, project, drawing_id)))
    connection.execute(table.update().where(mine).values(link=link))
    schema.set_head(connection, project, Head(row.seq, link))


def sheet_of(connection: Connection, project: str) -> str:
    """A hash of a project's classes as they are, removed ones among them."""
    table = schema.classes
    rows = connection.execute(sa.select(*_columns(table, SHEET)).where(table.c.project == project).order_by("class_id"))
    return _digest(_dump([list(row) for row in rows]))


def entries(connection: Connection, project: str) -> Iterator[Entry]:
    """Every entry of a project, in order, read as it is asked for."""
    parts = (
        _entries(connection, project, schema.events, EVENT),
        _entries(connection, project, schema.class_events, CLASS_EVENT),
        (
            entry._replace(values=[*entry.values, _drawn(connection, project, entry.values[0])])
            for entry in _entries(connection, project, schema.drawings, DRAWING)
        ),
    )
    return heapq.merge(*parts)


def make(connection: Connection, project: str) -> None:
    """Link a project's entries as they stand, where there was no chain before."""
    newest = connection.execute(sa.select(sa.func.max(schema.class_events.c.seq)).filter_by(project=project)).scalar()
    _set(connection, project, schema.class_events, [{"at": newest, "sheet": sheet_of(connection, project)}])
    link = ""
    tables = (schema.events, schema.class_events, schema.drawings)
    links: dict[str, list[dict[str, Any]]] = {table.name: [] for table in tables}
    for entry in list(entries(connection, project)):
        link = link_of(link, entry.values)
        links[entry.table].append({"at": entry.seq, "link": link})
    for table in tables:
        _set(connection, project, table, links[table.name])
    last_seq = schema.lock_project(connection, project).seq
    schema.set_head(connection, project, Head(last_seq, link))


def _set(connection: Connection, project: str, table: sa.Table, values: list[dict[str, Any]]) -> None:
    values = [row for row in values if row["at"] is not None]
    if values:
        changed: dict[str, Any] = {name: sa.bindparam(name) for name in values[0] if name != "at"}
        rows = (table.c.project == project) & (table.c.seq == sa.bindparam("at"))
        connection.execute(table.update().where(rows).values(changed), values)


def _entries(connection: Connection, project: str, table: sa.Table, names: tuple[str, ...]) -> Iterator[Entry]:
    query = sa.select(table.c.seq, table.c.link, *_columns(table, names)).where(table.c.project == project)
    for rows in connection.execute(query.order_by(table.c.seq)).partitions(AT_ONCE):
        for seq, link, *values in rows:
            yield Entry(seq, table.name, values, link)


def _drawn(connection: Connection, project: str, drawing_id: int) -> str:
    table = schema.drawn
    query = sa.select(table.c.image_id, table.c.needs, table.c.is_final).where(
        table.c.project == project, table.c.drawing_id == drawing_id
    )
    return _digest(_dump([list(row) for row in connection.execute(query.order_by(table.c.position))]))


def _columns(table: sa.Table, names: tuple[str, ...]) -> list[sa.Column[Any]]:
    return [table.c[name] for name in names]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


# What a link covers, by name: a column that is added later must not change the links of what was there before.
EVENT = (
    "seq",
    "event_id",
    "image_id",
    "round",
    "holder",
    "annotator",
    "action",
    "class_id",
    "target",
    "group_id",
    "source",
    "drawing_id",
    "lead_time_ms",
    "made_ms",
    "saved_ms",
    "expected_version",
    "forced",
    "actor",
)
CLASS_EVENT = (
    "seq",
    "saved_ms",
    "annotator",
    "action",
    "details",
    "sheet",
)
DRAWING = (
    "drawing_id",
    "seq",
    "method",
    "uniform",
    "seed",
    "n_images",
    "n_groups",
    "overlap",
    "pool_hash",
    "extends",
    "annotator",
    "saved_ms",
    "final_test",
)
SHEET = (
    "class_id",
    "name",
    "position",
    "colour",
    "key",
    "merged_into",
    "removed",
)
COLUMNS = {"label_events": EVENT, "label_class_events": CLASS_EVENT, "label_drawings": DRAWING}
