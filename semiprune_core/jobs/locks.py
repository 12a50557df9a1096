"""Locks that the operating system gives back when their holder dies, however it dies.

``flock`` belongs to the open file, not to the process: a supervisor can take a lock and hand it to the worker it
starts, and there is no moment in between at which nobody holds it. For the same reason a forked child would hold
its parent's locks and could keep them after the parent's death, so children let go of them at once.

``flock`` is dependable on a local disk; on a network file system it may be a no-op, which is why
:func:`check_locks_work` refuses such a workspace.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from semiprune_core.errors import JobError

POLL_SECONDS = 0.01

_held: set[int] = set()


def _let_go_in_child() -> None:
    for handle in _held:
        with contextlib.suppress(OSError):
            os.close(handle)  # the parent's copy, and with it the lock, stays
    _held.clear()


os.register_at_fork(after_in_child=_let_go_in_child)


def try_lock(path: Path) -> int | None:
    """The descriptor of an exclusive lock on ``path`` (made where needed), or None if somebody holds it."""
    handle = _flock(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), fcntl.LOCK_EX)
    if handle is not None:
        _held.add(handle)
    return handle


def adopt(handle: int) -> None:
    """Take over a lock that was inherited: it lives exactly as long as this process."""
    os.set_inheritable(handle, False)
    _held.add(handle)


def release(handle: int) -> None:
    """Close this process's copy; the lock is free once no process has one."""
    _held.discard(handle)
    os.close(handle)


def is_free(path: Path) -> bool:
    """Whether nobody holds ``path`` exclusively at this moment. Writes nothing, so it works on a read-only disk."""
    handle = _flock(os.open(path, os.O_RDONLY | os.O_CLOEXEC), fcntl.LOCK_SH)
    if handle is None:
        return False
    os.close(handle)
    return True


def _flock(handle: int, how: int) -> int | None:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:
        os.close(handle)
        raise
    return handle


@contextlib.contextmanager
def held(path: Path, *, seconds: float = 0.0) -> Iterator[bool]:
    """Hold ``path`` for the block; yields False where it could not be had within ``seconds``."""
    deadline = time.monotonic() + seconds
    while (handle := try_lock(path)) is None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            release(handle)


def check_locks_work(path: Path) -> None:
    """Refuse a place where a second lock on the same file would be granted too."""
    with held(path) as first, held(path) as second:
        if not first or second:
            raise JobError(
                f"The file system of {path.parent} has no working file locks, so a job could run twice. "
                "Move the workspace (SEMIPRUNE_HOME) to a local disk.",
                code="NO_FILE_LOCKS",
            )
