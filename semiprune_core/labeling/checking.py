"""Is a label store what it was when it was written? The chain, SQLite's own check, and what is derived from the events.

A store is checked when a process first opens it, before anything is read from it. After a good check its last entry
and a hash of the file are noted beside it (the checkpoint): a file that still has that hash needs no second look, and a
store that has fewer entries than were noted has lost some.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from semiprune_core import files
from semiprune_core.errors import SemiPruneError, WorkspaceError
from semiprune_core.labeling import chain, migrations, schema
from semiprune_core.labeling.appending import held_of_row, select_current
from semiprune_core.labeling.chain import Entry
from semiprune_core.labeling.database import Database, shared_sqlite
from semiprune_core.labeling.events import replay
from semiprune_core.labeling.schema import Head
from semiprune_core.paths import shown
from semiprune_core.project.pool import show_id

CHECKPOINT = ".labels.checked.json"
COPIES, COPY = "label_backups", re.compile(r"labels-(\d{10})-\d{8}T\d{6}-([0-9a-f]{12})\.sqlite")
LARGEST_HASHED = 256 << 20
"""Of a larger file no hash is taken, because its bytes pass through memory: its chain is walked each time."""
NO_HEAD = Head(0, "")


@dataclass(frozen=True)
class Damage:
    """What is wrong with a label store, in one sentence; ``first_bad`` is the number of the first bad entry."""

    reason: str
    first_bad: int | None = None


@dataclass(frozen=True)
class Checkpoint:
    """Where the chain ended at the last good check, and the file's hash then ("" where it was too large)."""

    seq: int
    link: str
    sha256: str


@dataclass
class _Mark:
    """A file as it was when it was last found sound. SQLite never shrinks it; another one has another number."""

    inode: int
    size: int

    def fits(self, inode: int, size: int) -> bool:
        return self.inode == inode and self.size <= size


_sound: dict[Path, _Mark] = {}
_damaged: dict[Path, tuple[tuple[int, int, int], Damage]] = {}


def require_sound(path: Path, project: str) -> None:
    """Refuse a damaged label store in words; one that was looked at before is known by its file's number and size."""
    stat = path.stat() if path.exists() else None
    mark = (stat.st_ino, stat.st_size, stat.st_mtime_ns) if stat else (0, 0, 0)
    sound = _sound.get(path)
    if sound is not None and stat and sound.fits(stat.st_ino, stat.st_size):
        sound.size = stat.st_size
        return
    damage = _damaged[path][1] if path in _damaged and _damaged[path][0] == mark else damage_of(path, project)
    if damage is not None:
        _damaged[path] = mark, damage
        raise WorkspaceError(
            f"The labels of project '{project}' are damaged: {damage.reason}. Restore the newest good copy on the "
            f"Projects page or by: semiprune restore {project}",
            code="STORE_DAMAGED",
        )
    if stat:
        _sound[path] = _Mark(stat.st_ino, stat.st_size)


def forget(path: Path) -> None:
    """Look at the store anew when it is next opened."""
    _sound.pop(path, None)
    _damaged.pop(path, None)


def damage_of(path: Path, project: str, *, thorough: bool = False) -> Damage | None:
    """What is wrong with the store in the file ``path``; ``thorough`` does not content itself with its hash."""
    noted = read_checkpoint(path)
    if not path.exists() or not path.stat().st_size:
        state, n = "empty" if path.exists() else "missing", n_noted(path)
        return Damage(f"{path.name} is {state}, it held {n:,} events", 1) if n else None
    database = shared_sqlite(path)
    try:
        if not thorough and noted and _still_has_hash(database, noted):
            return None
        migrations.migrate(database)
        with database.read() as connection:
            head, damage = check(connection, project, noted)
            digest = "" if damage else _hash(connection)
    except SemiPruneError as error:
        if error.code != "STORE_DAMAGED":  # busy, read-only, of a newer version: no damage
            raise
        return Damage(f"{path.name} cannot be read ({_plain(error.__cause__ or error)})")
    except (DBAPIError, ValueError) as error:
        return Damage(f"{path.name} cannot be read ({_plain(error)})")
    if damage is None:
        _note(path, Checkpoint(head.seq, head.link, digest))
    return damage


def check(connection: Connection, project: str, noted: Checkpoint | None = None) -> tuple[Head, Damage | None]:
    """The last entry of a project that can be proven, and what is wrong after it, or with what is derived."""
    head, damage = _walk(connection, project, noted)
    return head, damage or _by_sqlite(connection) or _derived(connection, project)


def _walk(connection: Connection, project: str, noted: Checkpoint | None) -> tuple[Head, Damage | None]:
    head, last = NO_HEAD, schema.head_of(connection, project)
    try:
        for entry in chain.entries(connection, project):
            if chain.link_of(head.link, entry.values) != entry.link:
                return head, _bad(entry, head)
            head = Head(entry.seq, entry.link)
            if noted and noted.seq == entry.seq and noted.link != entry.link:
                return head, Damage(f"{_named(entry)} is not the one that was there at the last check", entry.seq)
    except Exception as error:  # noqa: BLE001 - a damaged value may make anything of its reader
        return head, Damage(f"what follows event {head.seq} cannot be read ({_plain(error)})", head.seq + 1)
    wanted = max(last.seq, noted.seq if noted else 0)
    if head.seq < wanted:
        return head, Damage(f"events {head.seq + 1} to {wanted} are missing", head.seq + 1)
    if head != last and head != NO_HEAD:
        return head, Damage(f"the record of the last event differs from event {head.seq}", head.seq)
    return head, None


def _bad(entry: Entry, before: Head) -> Damage:
    if entry.seq > before.seq + 1:
        return Damage(f"event {before.seq + 1} is missing, or {_named(entry)} was changed", before.seq + 1)
    return Damage(f"{_named(entry)} was changed after it was saved", entry.seq)


def _named(entry: Entry) -> str:
    row: dict[str, Any] = dict(zip(chain.COLUMNS[entry.table], entry.values, strict=False))
    what = row.get("action", "draw")
    return f"event {entry.seq} ({what} by {shown(str(row['annotator']), 64)}, {_when(row['saved_ms'])})"


def _when(ms: Any) -> str:
    try:
        return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    except (TypeError, ValueError, OverflowError, OSError):
        return "at an unknown time"


def _by_sqlite(connection: Connection) -> Damage | None:
    if connection.dialect.name != "sqlite":
        return None
    lines = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
    return None if lines == ["ok"] else Damage(f"SQLite finds: {shown(str(lines[0]), 200)}")


def _derived(connection: Connection, project: str) -> Damage | None:
    """What holds now, what is undone and the classes, against the entries that they follow from."""
    try:
        held, undone = replay(_event_rows(connection, project))
        rows = connection.execute(select_current(project)).fetchall()
        current = {(row[0], row[1], row[2]): held_of_row(row) for row in rows}
        taken_back = set(connection.execute(sa.select(schema.undone.c.event_id).filter_by(project=project)).scalars())
        sheet = chain.sheet_of(connection, project)
    except Exception as error:  # noqa: BLE001 - as above
        return Damage(f"what follows from the events cannot be read ({_plain(error)})")
    wrong = [held.get(place) or current[place] for place in {*held, *current} if held.get(place) != current.get(place)]
    if wrong:
        first = min(wrong, key=lambda state: state.seq or 0)
        return Damage(f"what counts for image {show_id(first.image_id)} is not what its last event says", first.seq)
    if undone != taken_back:
        return Damage("the events that count as undone are not those that were undone")
    table = schema.class_events
    newest = sa.select(table.c.seq, table.c.sheet).filter_by(project=project).order_by(table.c.seq.desc()).limit(1)
    last = connection.execute(newest).first()
    if last and last.sheet != sheet:
        return Damage(f"the classes are not as event {last.seq} left them", last.seq)
    return None


def _event_rows(connection: Connection, project: str) -> Iterator[dict[str, Any]]:
    table = schema.events
    names = [column.name for column in table.c]
    for rows in connection.execute(sa.select(table).filter_by(project=project).order_by(table.c.seq)).partitions(1_000):
        for row in rows:
            yield dict(zip(names, row, strict=True))


# --- the checkpoint, and the copies ----------------------------------------------------------------------------------


def copies_of(path: Path) -> list[Path]:
    """The copies of the store ``path``, the newest (by its last entry, not by the clock) first."""
    folder = path.with_name(COPIES)
    found = (entry for entry in folder.iterdir() if COPY.fullmatch(entry.name)) if folder.is_dir() else ()
    return sorted(found, key=lambda entry: entry.name, reverse=True)


def last_of(copy: Path) -> int:
    """The number of the last entry in a copy."""
    match = COPY.fullmatch(copy.name)
    return int(match[1]) if match else 0


def copy_is_whole(copy: Path) -> bool:
    """Whether a copy still has the hash that its name gives."""
    match = COPY.fullmatch(copy.name)
    return match is not None and files.sha256_file(copy).startswith(match[2])


def n_noted(path: Path) -> int:
    """How many entries the store ``path`` had when it was last looked at or copied; 0 where it never was."""
    noted = read_checkpoint(path)
    return max([noted.seq if noted else 0, *map(last_of, copies_of(path)[:1])])


def read_checkpoint(path: Path) -> Checkpoint | None:
    """What was noted beside the store ``path``; None where nothing was, or where it cannot be read."""
    try:
        values = files.read_object(path.with_name(CHECKPOINT), {"seq": int, "link": str, "sha256": str})
    except (SemiPruneError, OSError):
        return None
    return Checkpoint(values["seq"], values["link"], values["sha256"])


def _note(path: Path, checkpoint: Checkpoint) -> None:
    if read_checkpoint(path) != checkpoint:
        with contextlib.suppress(SemiPruneError, OSError):  # a full or read-only disk is no reason not to look
            files.write_json(path.with_name(CHECKPOINT), asdict(checkpoint))


def _still_has_hash(database: Database, noted: Checkpoint) -> bool:
    with database.read() as connection:
        return bool(noted.sha256) and _hash(connection) == noted.sha256


def _hash(connection: Connection) -> str:
    """SHA-256 of the file as this transaction sees it. SQLite reads it: closing the file ourselves drops its locks."""
    n_bytes = [connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("page_count", "page_size")]
    if n_bytes[0] * n_bytes[1] > LARGEST_HASHED:
        return ""
    driver: Any = connection.connection.dbapi_connection
    return hashlib.sha256(driver.serialize()).hexdigest()


def _plain(error: BaseException) -> str:
    return shown(str(getattr(error, "orig", None) or error), 200).rstrip(".")
