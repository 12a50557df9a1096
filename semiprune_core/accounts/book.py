"""The book of accounts of a workspace: what it holds now, read once per change, and how it is written to."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from semiprune_core.accounts import schema
from semiprune_core.errors import WorkspaceError
from semiprune_core.labeling.database import Database
from semiprune_core.project.workspace import Workspace

T = TypeVar("T")
FILE = "accounts.sqlite"
HOUR = 3_600_000
IDLE_MS, LONGEST_MS = 3 * 24 * HOUR, 30 * 24 * HOUR
"""A session ends after three days without a sign of life, and after thirty in any case."""
Clock = Callable[[], float]
Mark = tuple[int, int, bytes]


@dataclass(frozen=True)
class Account:
    id: str
    shown: str
    is_admin: bool
    has_password: bool
    is_closed: bool
    made_by: str


@dataclass(frozen=True)
class Session:
    """``mark`` is the hash of what the browser's cookie says."""

    mark: str
    account: str
    made_ms: int
    seen_ms: int
    address: str
    browser: str

    def is_over(self, now_ms: int) -> bool:
        return now_ms - self.seen_ms > IDLE_MS or now_ms - self.made_ms > LONGEST_MS


@dataclass(frozen=True)
class State:
    """Everything that decides who may do what, at one moment."""

    accounts: Mapping[str, Account] = field(default_factory=dict)
    sessions: Mapping[str, Session] = field(default_factory=dict)
    roles: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By project and account."""

    def role(self, project: str, account: str) -> str | None:
        return self.roles.get((project, account))

    def roles_of(self, account: str) -> dict[str, str]:
        """The account's projects with its role in each."""
        return {project: role for (project, holder), role in self.roles.items() if holder == account}


class Accounts:
    """The accounts of one workspace. Where there are none yet, asking makes no file."""

    def __init__(self, path: Path, *, clock: Clock = time.time) -> None:
        self.path = path
        self.clock = clock
        self._lock = threading.Lock()
        self._database: Database | None = None
        self._read: tuple[Mark, State] | None = None

    @property
    def now_ms(self) -> int:
        return int(self.clock() * 1000)

    @property
    def are_on(self) -> bool:
        """Whether there is any account: from the first one on, everybody needs one."""
        return bool(self.state().accounts)

    @property
    def database(self) -> Database:
        with self._lock:
            if self._database is None:
                database = Database.sqlite(self.path)
                schema.prepare(database)
                self._database = database
            return self._database

    def write(self, work: Callable[[Connection], T]) -> T:
        return self.database.write(work)

    def state(self) -> State:
        """What holds now. It is read again only when the file's own count of changes has moved."""
        before = _mark_of(self.path)
        if before is None:
            return State()
        if self._read is not None and self._read[0] == before:
            return self._read[1]
        state = self._load()
        if _mark_of(self.path) == before:  # else somebody wrote meanwhile: what was read counts once
            self._read = before, state
        return state

    def _load(self) -> State:
        with self.database.read() as connection:
            people = connection.execute(sa.select(schema.accounts)).mappings().all()
            sessions = connection.execute(sa.select(schema.sessions)).mappings().all()
            roles = connection.execute(sa.select(schema.members)).all()
        return State(
            {row["id"]: _account(row) for row in people},
            {row["mark"]: Session(**row) for row in sessions},
            {(project, account): role for project, account, role in roles},
        )


def _account(row: Mapping[Any, Any]) -> Account:
    return Account(
        id=str(row["id"]),
        shown=str(row["shown"]),
        is_admin=bool(row["is_admin"]),
        has_password=row["password"] is not None,
        is_closed=row["closed_ms"] is not None,
        made_by=str(row["made_by"]),
    )


def _mark_of(path: Path) -> Mark | None:
    """Which file it is, and SQLite's own count of its changes; None where there is none."""
    try:
        with open(path, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            return status.st_dev, status.st_ino, os.pread(file.fileno(), 4, 24)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WorkspaceError(
            f"{path} cannot be read ({error.strerror}). Nobody can come in.", code="NO_ACCOUNTS"
        ) from error


def accounts_of(workspace: Workspace) -> Accounts:
    """The accounts of a workspace; one object per process and file."""
    return _shared(os.getpid(), workspace.root / FILE)


@functools.lru_cache(maxsize=64)
def _shared(_pid: int, path: Path) -> Accounts:
    return Accounts(path)
