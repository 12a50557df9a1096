"""The database behind the label store: one SQLite file per project, or one PostgreSQL for many.

Both are spoken to by the same code. What differs is here: how a write transaction begins, how long it waits,
and which of the driver's complaints becomes which sentence.

SQLite: rollback journal (WAL can silently corrupt a database with several connections before SQLite 3.51.3, and one
journal mode everywhere is one to test), ``synchronous=FULL``, a connection per operation, ``BEGIN IMMEDIATE`` for
every write (a busy timeout does not help a transaction that reads first and writes then).
PostgreSQL: ``synchronous_commit=on``; a write first locks its project's row, so writes of a project are one after
the other, as in SQLite. A process has one pool of at most eight connections per URL (:func:`shared_postgresql`).
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from semiprune_core.errors import ConflictError, DiskFullError, SemiPruneError, WorkspaceError

T = TypeVar("T")
Schema = tuple[int, ...]
"""What tells one schema from another at no cost: SQLite's counts of changes to it; () for a server's database."""

URL_VARIABLE = "SEMIPRUNE_DATABASE_URL"
BUSY_TIMEOUT_S = 10.0
JOURNAL_BYTES = 2 << 20
"""What a journal keeps of its size; that of a large import goes."""
GIVE_UP_S = 40.0
POOL_SIZE, POOL_OVERFLOW, POOL_WAIT_S = 4, 4, 20.0
NETWORK_FILESYSTEMS = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "ceph", "glusterfs", "lustre", "beegfs", "gpfs", "davfs")
    + ("vboxsf", "fuse.sshfs", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.ceph", "fuse.smbnetfs")
)
_BUSY_STATES = {"55P03", "40P01", "40001"}  # PostgreSQL: lock not available, deadlock, serialization failure


def filesystem_of(path: Path, mounts: str) -> str:
    """The type of the filesystem that holds ``path``, by the text of ``/proc/mounts``; "" where it does not say."""
    real, best, kind = os.path.realpath(path), "", ""
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[1])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind


def read_mounts() -> str:
    """``/proc/mounts``, or nothing on systems without it."""
    try:
        return Path("/proc/mounts").read_text("utf-8", errors="replace")
    except OSError:
        return ""


def refuse_network_filesystem(path: Path, mounts: str) -> None:
    """SQLite's locks do not hold over a network: say so instead of losing labels (THREATS A7)."""
    kind = filesystem_of(path, mounts)
    if kind.lower() in NETWORK_FILESYSTEMS:
        raise WorkspaceError(
            f"{path} lies on a network filesystem ({kind}), where SQLite's locks do not hold and labels can be lost. "
            f"Put the workspace on a local disk, or set {URL_VARIABLE} to a PostgreSQL database.",
            code="NETWORK_FILESYSTEM",
        )


def database_url(text: str) -> URL:
    """The URL of a PostgreSQL database, with the driver we use; its password never shows in a message."""
    try:
        url = make_url(text)
    except ArgumentError:
        raise WorkspaceError(
            f"{URL_VARIABLE} is not a database URL. It looks like postgresql://user:password@host/database.",
            code="DATABASE_URL",
        ) from None
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise WorkspaceError(
            f"{URL_VARIABLE} names a {url.get_backend_name()} database. Use PostgreSQL, or unset it for SQLite.",
            code="DATABASE_URL",
        )
    return url.set(drivername="postgresql+psycopg")


class Database:
    """Transactions on one database. Safe to share between threads, and to use after a fork."""

    def __init__(self, url: URL, *, give_up_s: float = GIVE_UP_S, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self.url = url
        self.give_up_s = give_up_s
        self.busy_timeout_s = busy_timeout_s
        self.migrated: Schema | None = None
        """The schema that :attr:`migrate` left behind; a connection that finds another one migrates again."""
        self.migrate: Callable[[], None] = lambda: None
        self._engine: Engine | None = None
        self._pid = 0

    @classmethod
    def sqlite(cls, path: str | Path, *, mounts: str | None = None, **waits: float) -> Database:
        path = Path(path).absolute()
        refuse_network_filesystem(path.parent, read_mounts() if mounts is None else mounts)
        return cls(URL.create("sqlite+pysqlite", database=str(path)), **waits)

    @classmethod
    def postgresql(cls, text: str, **waits: float) -> Database:
        return cls(database_url(text), **waits)

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    @property
    def shown(self) -> str:
        """Where the labels are, for messages; without a password."""
        return str(self.url.database) if self.is_sqlite else self.url.render_as_string(hide_password=True)

    @property
    def engine(self) -> Engine:
        engine = self._engine
        if engine is not None and self._pid == os.getpid():
            return engine
        with _opening:
            if self._engine is None or self._pid != os.getpid():
                if self._engine is not None:
                    self._engine.dispose(close=False)  # the parent's connections stay the parent's
                self._engine, self._pid = self._open(), os.getpid()
            return self._engine

    def _open(self) -> Engine:
        if not self.is_sqlite:
            wait = int(self.busy_timeout_s * 1000)
            options = f"-c synchronous_commit=on -c lock_timeout={wait} -c timezone=UTC"
            connect = {"options": options, "connect_timeout": 10}
            return sa.create_engine(
                self.url,
                pool_pre_ping=True,
                pool_size=POOL_SIZE,
                max_overflow=POOL_OVERFLOW,
                pool_timeout=POOL_WAIT_S,
                connect_args=connect,
            )
        engine = sa.create_engine(self.url, poolclass=NullPool, connect_args={"timeout": self.busy_timeout_s})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """A read transaction: all its queries see one moment."""
        options: dict[str, Any] = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with self._named_errors(), self._connect(**options) as connection, connection.begin():
            yield connection

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in one write transaction and return what it returned once it is committed.

        A busy database is tried again until ``give_up_s`` have passed, then there is a :class:`ConflictError`;
        ``work`` may run more than once and must change nothing but the database.
        """
        deadline = time.monotonic() + self.give_up_s
        pause = 0.01
        while True:
            try:
                with self._named_errors(), self._connect(immediate=True) as connection, connection.begin():
                    return work(connection)
            except ConflictError as error:
                if error.code != "STORE_BUSY" or time.monotonic() + pause > deadline:
                    raise
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(2 * pause, 0.5)

    def _connect(self, **options: Any) -> Connection:
        connection = self.engine.connect()
        if self.migrated is not None and self.schema_of(connection) != self.migrated:  # another file took its place
            connection.close()
            self._migrate_again()
            connection = self.engine.connect()
        return connection.execution_options(**options)

    def _migrate_again(self) -> None:
        before, self.migrated = self.migrated, None
        try:
            self.migrate()
        except BaseException:
            self.migrated = before  # the next connection asks again
            raise

    def schema_of(self, connection: Connection) -> Schema:
        """The mark of the schema as it was when the connection was opened."""
        return tuple(connection.info.get("schema", ()))

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            named = self._name(error)
            if named is None:
                raise
            raise named from error
        except PoolTimeoutError as error:
            raise self._busy() from error

    def _busy(self) -> ConflictError:
        return ConflictError(
            "The label store is busy with other writers. Nothing was saved; try again in a moment.",
            code="STORE_BUSY",
        )

    def _name(self, error: DBAPIError) -> SemiPruneError | None:
        """The driver's error as one of ours; None when it is a defect."""
        if not self.is_sqlite:
            state = getattr(error.orig, "sqlstate", None)
            if state in _BUSY_STATES:
                return self._busy()
            if state == "53100":
                return DiskFullError("The disk of the label database is full. Free some space; nothing was half saved.")
            if error.connection_invalidated or state is None or state[:2] in ("08", "28", "3D", "53", "57"):
                return WorkspaceError(
                    f"The label database {self.shown} cannot be reached. Check that it runs and that {URL_VARIABLE} "
                    "is right; nothing was half saved.",
                    code="STORE_UNREACHABLE",
                )
            return None
        code = (getattr(error.orig, "sqlite_errorcode", None) or 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return self._busy()
        if code == sqlite3.SQLITE_FULL:
            return DiskFullError(f"The disk is full: {self.shown} could not be written. Free some space and try again.")
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return WorkspaceError(
                f"{self.shown} cannot be opened for writing. Make the file and its folder writable and try again.",
                code="NOT_WRITABLE",
            )
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return WorkspaceError(
                f"{self.shown} is damaged or not a label store. Move it away and restore it from a backup.",
                code="STORE_DAMAGED",
            )
        if code == sqlite3.SQLITE_IOERR:
            return WorkspaceError(f"{self.shown} could not be read or written. Check its disk.", code="STORE_IO")
        return None

    def integrity_problems(self) -> list[str]:
        """What SQLite's own integrity check finds; empty when all is well (PostgreSQL checks itself)."""
        if not self.is_sqlite:
            return []
        with self.read() as connection:
            lines = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        return [] if lines == ["ok"] else [str(line) for line in lines]

    def close(self) -> None:
        if self._engine is not None and self._pid == os.getpid():
            self._engine.dispose()
        self._engine = None


_shared: dict[tuple[int, str], Database] = {}
_opening = threading.Lock()
SHARED_FILES = 256


def shared_sqlite(path: str | Path) -> Database:
    """The one :class:`Database` of this process for a file, so that its filesystem and its schema are checked once."""
    path = Path(path).absolute()
    try:
        device = path.parent.stat().st_dev  # a filesystem mounted here since is another device
    except OSError:
        return Database.sqlite(path)
    return _shared_file(os.getpid(), path, device)


@functools.lru_cache(maxsize=SHARED_FILES)
def _shared_file(_pid: int, path: Path, _device: int) -> Database:
    return Database.sqlite(path)


def shared_postgresql(text: str) -> Database:
    """The one :class:`Database` of this process for a URL, so that many stores share one pool of connections."""
    key = os.getpid(), text
    with _opening:
        if key not in _shared:
            _shared[key] = Database.postgresql(text)
        return _shared[key]


def _new_lock_after_fork() -> None:
    global _opening
    _opening = threading.Lock()  # the parent's may have been held at the fork


os.register_at_fork(after_in_child=_new_lock_after_fork)


def _prepare_sqlite(connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # transactions are begun by _begin_sqlite, not by the driver
    connection.execute("PRAGMA journal_mode=PERSIST").fetchone()  # it keeps its room on a full disk
    connection.execute(f"PRAGMA journal_size_limit={JOURNAL_BYTES}").fetchone()
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA cache_size=-32768")  # 32 MB: 50,000 labels are read from memory, page by page once
    marks = ("schema_version", "user_version")
    record.info["schema"] = [connection.execute(f"PRAGMA {mark}").fetchone()[0] for mark in marks]


def _begin_sqlite(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")
