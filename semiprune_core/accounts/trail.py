"""The trail: who did what, when, from where, in which project. It is only added to, and holds no secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from semiprune_core.accounts import schema
from semiprune_core.accounts.book import Accounts
from semiprune_core.project.spreadsheet import safe_cell

NOTE = 300
COMMAND_LINE = "command line"
COLUMNS = ("at", "account", "act", "project", "note", "address")


@dataclass(frozen=True)
class Entry:
    seq: int
    at_ms: int
    account: str
    address: str
    project: str
    act: str
    note: str

    @property
    def at(self) -> str:
        return datetime.fromtimestamp(self.at_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds")[:19]

    def to_json(self) -> dict[str, Any]:
        return {"at": self.at, **asdict(self)}


def add_to_trail(
    accounts: Accounts, account: str, act: str, *, project: str = "", note: str = "", address: str = ""
) -> None:
    values = {"at_ms": accounts.now_ms, "account": account, "address": address[:64], "project": project, "act": act}
    row = schema.trail.insert().values(**values, note=re.sub(r"[^ -~\u00a1-\uffff]", " ", note)[:NOTE])
    accounts.write(lambda connection: connection.execute(row))


def trail(accounts: Accounts, *, project: str | None = None, search: str = "", limit: int = 1000) -> list[Entry]:
    """The latest entries first, of one project or of all; ``search`` is looked for in every column."""
    table = schema.trail
    query = sa.select(table).order_by(table.c.seq.desc()).limit(limit)
    if project is not None:
        query = query.where(table.c.project == project)
    for word in search.split():
        columns = (table.c.account, table.c.act, table.c.project, table.c.note, table.c.address)
        query = query.where(sa.or_(*(column.icontains(word, autoescape=True) for column in columns)))
    if not accounts.path.exists():
        return []
    with accounts.database.read() as connection:
        return [Entry(**row) for row in connection.execute(query).mappings()]


def as_rows(entries: list[Entry]) -> Iterator[list[str]]:
    """Rows of a spreadsheet, its head first; no cell is a formula."""
    yield [*COLUMNS]
    for entry in entries:
        yield [safe_cell(str(getattr(entry, column))) for column in COLUMNS]
