"""Copies of a project's label store: one an hour while people label, one at the start of the app, the newest 24 kept.

A copy is made by SQLite's backup in a process of its own, a few pages at a time, and is checked before it counts.
Restoring begins with the newest good copy and adds every later entry of the damaged store that the chain still proves;
the damaged file is set aside, never deleted. A PostgreSQL database has backups of its own (``pg_dump``).
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from semiprune_core import files
from semiprune_core.errors import SemiPruneError, WorkspaceError
from semiprune_core.jobs import locks
from semiprune_core.jobs.launch import own_modules
from semiprune_core.labeling import chain, checking, migrations, schema
from semiprune_core.labeling.appending import derive_again
from semiprune_core.labeling.chain import Entry
from semiprune_core.labeling.checking import COPIES, copies_of, last_of, n_noted
from semiprune_core.labeling.database import Database, shared_sqlite
from semiprune_core.labeling.reserve import set_space_aside
from semiprune_core.labeling.schema import Head

log = logging.getLogger(__name__)

KEPT = 24
EVERY_S, FIRST_S = 3600.0, 300.0
"""How often, and how long after the first label there was none of."""
PAGES_AT_ONCE = 256
"""A megabyte: for so long, some milliseconds, a save may have to wait."""

DAMAGED = 3
CHILD = """
import os, sys, pathlib
os.nice(10)
from semiprune_core.labeling import backups
sys.exit(backups.copy_here(pathlib.Path(sys.argv[1]), sys.argv[2]))
"""

_due: dict[Path, float] = {}


@dataclass(frozen=True)
class Restored:
    """What a restored store holds: its entries, when its copy was made, and how many entries could not be restored."""

    n_entries: int
    copied: str | None
    n_lost: int
    aside: Path | None


def after_saving(path: Path, project: str) -> None:
    """Start a copy if one is due; the save that asks does not wait for it."""
    now = time.monotonic()
    if now < _due.setdefault(path, now + _wait(path)):
        return
    _due[path] = now + EVERY_S
    threading.Thread(target=_quietly, args=(path, project), name="label backup", daemon=True).start()


def _wait(path: Path) -> float:
    newest = copies_of(path)[:1]
    age = time.time() - newest[0].stat().st_mtime if newest else EVERY_S - FIRST_S
    return min(max(0.0, EVERY_S - age), EVERY_S)


def _quietly(path: Path, project: str) -> None:
    """Copy in a process of its own, of low priority: to walk the chain in this one would keep saves waiting."""
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), project],
        env={**os.environ, **own_modules()},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode == DAMAGED:
        checking.forget(path)  # whoever opens the store next looks at it, and says what is wrong
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or [""])[-1]
        log.warning("No copy of the labels of %s could be made; it is tried again in an hour. %s", project, last)


def copy_here(path: Path, project: str) -> int:
    """What the process of :func:`_quietly` does; how it ended."""
    try:
        set_space_aside(shared_sqlite(path))
        make_backup(path, project)
    except SemiPruneError as error:
        sys.stderr.write(f"{error}\n")
        return DAMAGED if error.code == "STORE_DAMAGED" else 1
    return 0


def make_backup(path: Path, project: str) -> Path | None:
    """Copy the store ``path``; None where the newest copy holds the same already, or somebody else is making one."""
    folder = path.with_name(COPIES)
    with files.named_disk_errors(folder):
        folder.mkdir(exist_ok=True)
        with locks.held(folder / ".lock") as mine:
            return _make(path, project, folder) if mine else None


def _make(path: Path, project: str, folder: Path) -> Path | None:
    for left in folder.glob(".*.part*"):
        left.unlink()
    if shutil.disk_usage(folder).free < 4 * path.stat().st_size:
        raise WorkspaceError("The disk is nearly full.", code="DISK_FULL")
    aside = folder / f".{secrets.token_hex(4)}.part"
    try:
        _copy(path, aside)
        head = _checked(aside, project)
        newest = copies_of(path)[:1]
        if head is None:
            checking.forget(path)
            raise WorkspaceError(f"The labels of project '{project}' are damaged: not copied.", code="STORE_DAMAGED")
        if newest and last_of(newest[0]) == head.seq:
            return None
        digest = files.sha256_file(aside)[:12]
        final = folder / f"labels-{head.seq:010d}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{digest}.sqlite"
        os.replace(aside, final)
        files.sync_folder(folder)
        for outdated in copies_of(path)[KEPT:]:
            outdated.unlink()
        return final
    finally:
        for part in folder.glob(f"{aside.name}*"):
            part.unlink()


def _copy(path: Path, aside: Path) -> None:
    """Page by page, so that nobody waits; where others keep writing meanwhile, which begins it anew, in one go."""
    n_steps = itertools.count()

    def watch(_status: int, _remaining: int, total: int) -> None:
        if next(n_steps) * PAGES_AT_ONCE > 4 * total + PAGES_AT_ONCE:
            raise InterruptedError

    with contextlib.closing(sqlite3.connect(path)) as source, contextlib.closing(sqlite3.connect(aside)) as target:
        try:
            source.backup(target, pages=PAGES_AT_ONCE, progress=watch, sleep=0.01)
        except InterruptedError:
            source.backup(target)
    with open(aside, "rb") as copy:
        os.fsync(copy.fileno())


def _checked(copy: Path, project: str) -> Head | None:
    """Where the chain of a copy ends; None where it is damaged."""
    database = Database.sqlite(copy)
    try:
        migrations.migrate(database)
        with database.read() as connection:
            head, damage = checking.check(connection, project)
    except (SemiPruneError, DBAPIError, ValueError):
        return None
    finally:
        database.close()
    return None if damage else head


# --- restoring -------------------------------------------------------------------------------------------------------


def restore_store(path: Path, project: str) -> Restored:
    """Put a sound store in the place of a damaged one; raises where there is none to restore.

    It begins with the newest good copy (empty where there is none) and goes on with every later entry that is proven.
    """
    damage = checking.damage_of(path, project, thorough=True)
    if damage is None:
        raise WorkspaceError(f"The labels of project '{project}' are whole. There is nothing to restore.", code="SOUND")
    n_before = n_noted(path)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with files.named_disk_errors(path):
            copied = _newest_good(path, project, fresh)
            head, n_seen = _carry_on(path, fresh, project)
            if not head.seq:
                raise WorkspaceError(
                    f"There is no good copy of the labels of project '{project}', and {damage.reason}: nothing can be "
                    "restored. Archive the project, and import its labels from a file.",
                    code="NO_BACKUP",
                )
            aside = _set_aside(path)
            os.replace(fresh, path)
            files.sync_folder(path.parent)
    finally:
        for part in path.parent.glob(f"{fresh.name}*"):
            part.unlink()
    checking.forget(path)
    path.with_name(checking.CHECKPOINT).unlink(missing_ok=True)
    checking.require_sound(path, project)
    return Restored(head.seq, copied, max(n_before, n_seen) - head.seq, aside)


def _newest_good(path: Path, project: str, fresh: Path) -> str | None:
    """Begin ``fresh`` with the newest copy that is sound, and say when it was made; empty where there is none."""
    for copy in copies_of(path):
        shutil.copyfile(copy, fresh)
        if _checked(fresh, project) is not None:
            return f"{datetime.fromtimestamp(copy.stat().st_mtime, UTC):%Y-%m-%d %H:%M} UTC"
        fresh.unlink()
    empty = Database.sqlite(fresh)
    migrations.migrate(empty)
    empty.close()
    return None


def _carry_on(path: Path, fresh: Path, project: str) -> tuple[Head, int]:
    """Add to ``fresh`` what the damaged store proves beyond it; returns its new end, and that of the damaged one."""
    target = Database.sqlite(fresh)
    with target.read() as connection:
        head = schema.head_of(connection, project)
    later = _Later(head)
    with contextlib.suppress(Exception):  # it is damaged: what could be read until then counts
        damaged = Database.sqlite(path)
        with damaged.read() as connection:
            later.read(connection, project)
    if later.entries:
        target.write(lambda connection: later.add_to(connection, project))
    target.close()
    return later.head, max(later.n_seen, later.head.seq)


class _Later:
    """Entries of a damaged store that follow a sound one, as far as they are proven."""

    def __init__(self, head: Head) -> None:
        self.start = head
        self.entries: list[Entry] = []
        self.drawn: list[dict[str, Any]] = []
        self.classes: list[dict[str, Any]] = []
        self.n_seen = 0

    @property
    def head(self) -> Head:
        return Head(self.entries[-1].seq, self.entries[-1].link) if self.entries else self.start

    def read(self, connection: Connection, project: str) -> None:
        self.n_seen = schema.head_of(connection, project).seq
        proven: list[Entry] = []
        try:
            for entry in chain.entries(connection, project):
                if entry.seq <= self.start.seq:
                    continue
                if chain.link_of(proven[-1].link if proven else self.start.link, entry.values) != entry.link:
                    break
                proven.append(entry)
        finally:  # also where the rest cannot be read
            self._take(connection, project, proven)

    def _take(self, connection: Connection, project: str, proven: list[Entry]) -> None:
        changes = [place for place, entry in enumerate(proven) if entry.table == schema.class_events.name]
        if changes and proven[changes[-1]].values[-1] != chain.sheet_of(connection, project):
            proven = proven[: changes[0]]  # the classes that came to be are not known
        elif changes:
            self.classes = _rows(connection, schema.classes, project)
        numbers = {entry.values[0] for entry in proven if entry.table == schema.drawings.name}
        self.drawn = [row for row in _rows(connection, schema.drawn, project) if row["drawing_id"] in numbers]
        self.entries = proven

    def add_to(self, connection: Connection, project: str) -> None:
        schema.lock_project(connection, project)
        for table in (schema.events, schema.class_events, schema.drawings):
            names = chain.COLUMNS[table.name]
            rows = [
                {"project": project, "link": entry.link, **dict(zip(names, entry.values, strict=False))}
                for entry in self.entries
                if entry.table == table.name
            ]
            schema.insert(connection, table, rows)
        schema.insert(connection, schema.drawn, self.drawn)
        if self.classes:
            connection.execute(schema.classes.delete().where(schema.classes.c.project == project))
            schema.insert(connection, schema.classes, self.classes)
        schema.set_head(connection, project, self.head)
        derive_again(connection, project)


def _rows(connection: Connection, table: sa.Table, project: str) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(sa.select(table).where(table.c.project == project)).mappings()]


def _set_aside(path: Path) -> Path | None:
    """Keep the damaged file, and the journal that belongs to it, under another name."""
    aside = path.with_name(f".{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}")
    for suffix in ("-journal", ""):
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{path}{suffix}", f"{aside}{suffix}")
    return aside if aside.exists() else None
