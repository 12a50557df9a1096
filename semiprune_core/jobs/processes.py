"""Which process is which, and ending exactly those that belong to a job.

A pid alone says little: it is given again after its owner has died. A process is named by its pid, its start time
and the boot it lives in; the processes of a job are known by a random word that only they carry in their environment,
and by the folder they work in: a copy of the folder knows the word too, but the processes are not its own.
"""

from __future__ import annotations

import contextlib
import os
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

import psutil

LAUNCH_VARIABLE, FOLDER_VARIABLE = "SEMIPRUNE_LAUNCH", "SEMIPRUNE_JOB_FOLDER"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class ProcessName(NamedTuple):
    """``start`` is in clock ticks since boot where /proc tells it (no clock change can move it), else in seconds."""

    pid: int
    start: float
    boot: str


@cache
def boot_id() -> str:
    if BOOT_ID.exists():
        return BOOT_ID.read_text("ascii").strip()
    return str(int(psutil.boot_time()))


def start_of(pid: int) -> float | None:
    """When the process ``pid`` started; None if there is none."""
    stat = Path("/proc") / str(pid) / "stat"
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return float(stat.read_text("utf-8", errors="replace").rpartition(")")[2].split()[19])
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return None


def this_process() -> ProcessName:
    pid = os.getpid()
    start = start_of(pid)
    assert start is not None
    return ProcessName(pid, start, boot_id())


def is_alive(name: ProcessName) -> bool:
    """Whether this very process still runs (a later one with the same pid does not count)."""
    return name.boot == boot_id() and start_of(name.pid) == name.start


def folder_mark(folder: Path) -> str:
    """Names a folder wherever it is moved to; a copy has another mark."""
    stat = folder.stat()
    return f"{stat.st_dev}:{stat.st_ino}"


def family(launch: str, folder: Path) -> list[psutil.Process]:
    """All processes that carry the word ``launch`` and work in ``folder``, this one excepted."""
    members: list[psutil.Process] = []
    if not launch:  # a job that ran inside another process left no word
        return members
    mark = folder_mark(folder)
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            carried = process.environ()
            is_ours = (carried.get(LAUNCH_VARIABLE), carried.get(FOLDER_VARIABLE)) == (launch, mark)
            if is_ours and process.pid != os.getpid():
                members.append(process)
    return members


def end_family(launch: str, folder: Path, *, seconds: float = 10.0) -> int:
    """Kill what is left of a launch, wait until it is gone, and say how many there were.

    psutil compares start times before it sends a signal, so a pid that was given again meanwhile is left alone.
    """
    n_ended = 0
    deadline = time.monotonic() + seconds
    while (members := family(launch, folder)) and time.monotonic() < deadline:
        for process in members:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
                n_ended += 1
        psutil.wait_procs(members, timeout=1.0)
    return n_ended
