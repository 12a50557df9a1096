"""Which process is which, and ending exactly those that belong to a job.

A pid alone says little: it is given again after its owner has died. A process is named by its pid, its start time
and the boot it lives in; the processes of a job are known by a random word that only they carry in their environment.
"""

from __future__ import annotations

import contextlib
import os
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

import psutil

LAUNCH_VARIABLE = "SEMIPRUNE_LAUNCH"
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


def family(launch: str) -> list[psutil.Process]:
    """All processes that carry the word ``launch``, this one excepted."""
    found: list[psutil.Process] = []
    if not launch:  # a job that ran inside another process left no word
        return found
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(LAUNCH_VARIABLE) == launch:
                found.append(process)
    return found


def end_family(launch: str, *, seconds: float = 10.0) -> int:
    """Kill what is left of a launch, wait until it is gone, and say how many there were.

    psutil compares start times before it sends a signal, so a pid that was given again meanwhile is left alone.
    """
    n_ended = 0
    deadline = time.monotonic() + seconds
    while (members := family(launch)) and time.monotonic() < deadline:
        for process in members:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
                n_ended += 1
        psutil.wait_procs(members, timeout=1.0)
    return n_ended
