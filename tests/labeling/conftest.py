"""One suite over both databases: SQLite in a file, and a real PostgreSQL where the system has its programs."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from semiprune_core.labeling import Event, LabelStore
from semiprune_core.labeling.database import Database
from tests.support.waiting import PATIENCE, wait_until

REQUIRE = "SEMIPRUNE_REQUIRE_POSTGRES"


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3].split(".")[0]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


def _account() -> dict[str, object]:
    """PostgreSQL does not run as root: whom to become instead."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    return {}


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    programs = _programs()
    if programs is None:
        message = "NO POSTGRESQL: install Debian's package 'postgresql' to run the label store's tests over it too."
        if os.environ.get(REQUIRE):
            pytest.fail(message)
        pytest.skip(message)
    account = _account()
    folder = Path(tempfile.mkdtemp(prefix="sp-pg-"))
    server = None
    try:
        if account:
            os.chown(folder, account["user"], account["group"])
        data, log = folder / "data", folder / "log"
        plain = {"cwd": folder, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C"}, **account}
        made = subprocess.run(
            [programs / "initdb", "-D", data, "-U", "studio", "-A", "trust", "-E", "UTF8", "--no-sync"],
            capture_output=True,
            text=True,
            check=False,
            **plain,
        )
        assert made.returncode == 0, made.stderr
        with open(log, "wb") as output:
            server = subprocess.Popen(
                [
                    programs / "postgres",
                    "-D",
                    data,
                    "-k",
                    folder,
                    "-c",
                    "listen_addresses=",
                    "-c",
                    "max_connections=20",
                ],
                stdout=output,
                stderr=output,
                **plain,
            )
        url = f"postgresql://studio@/postgres?host={folder}"
        _wait_until_ready(programs, folder, plain, server, log)
        yield url
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=PATIENCE)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_ready(programs: Path, folder: Path, plain: dict, server: subprocess.Popen, log: Path) -> None:
    ready = [programs / "pg_isready", "-q", "-h", folder, "-t", "1"]

    def answers() -> bool:
        assert server.poll() is None, log.read_text()
        return subprocess.run(ready, check=False, **plain).returncode == 0

    wait_until(answers, "PostgreSQL answers", seconds=60)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        database = Database.sqlite(tmp_path / "labels.sqlite")
    else:
        database = Database.postgresql(request.getfixturevalue("postgresql_url"))
    yield database
    database.close()


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(database: Database, clock: Clock) -> LabelStore:
    """A fresh project with the classes cat (0), dog (1) and owl (2); in PostgreSQL beside those of other tests."""
    store = LabelStore(database, f"p-{uuid.uuid4().hex[:12]}", clock=clock)
    store.classes.add(["cat", "dog", "owl"], annotator="ana")
    return store


_numbers = itertools.count()


def event(action: str, image_id: int | None = None, class_id: int | None = None, **values: object) -> Event:
    """An event by ana with a fresh id."""
    values.setdefault("event_id", f"e{next(_numbers)}")
    values.setdefault("annotator", "ana")
    return Event(action=action, image_id=image_id, class_id=class_id, **values)


@pytest.fixture(name="event")
def event_fixture():
    return event
