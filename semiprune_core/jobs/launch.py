"""Starting a worker: a process of its own that outlives the one that starts it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from semiprune_core.jobs import job as jobs
from semiprune_core.jobs.job import Job
from semiprune_core.jobs.processes import FOLDER_VARIABLE, LAUNCH_VARIABLE, folder_mark

WORKER_MODULE = "semiprune_core.jobs.worker"
LOCKS_VARIABLE = "SEMIPRUNE_LOCKS"
SOURCE_ROOT = Path(__file__).resolve().parents[2]

_children: set[int] = set()


def command(folder: Path, *, nproc: int = 1) -> list[str]:
    """What is run for a job; several processes go through torchrun, which gives each its rank."""
    if nproc == 1:
        return [sys.executable, "-m", WORKER_MODULE, os.fspath(folder)]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(nproc)]
    return [*torchrun, "--module", WORKER_MODULE, os.fspath(folder)]


def own_modules() -> dict[str, str]:
    """What a Python process of ours is told so that it finds our package wherever it is started, and nothing there."""
    search = os.pathsep.join(filter(None, (os.fspath(SOURCE_ROOT), os.environ.get("PYTHONPATH", ""))))
    return {"PYTHONPATH": search, "PYTHONSAFEPATH": "1"}


def environment(launch: str, folder: Path, lock_handles: tuple[int, ...]) -> Mapping[str, str]:
    """This environment and: which launch of which job it is, its locks, where our package is, nothing from the cwd."""
    return {
        **os.environ,
        **own_modules(),
        LAUNCH_VARIABLE: launch,
        FOLDER_VARIABLE: folder_mark(folder),
        LOCKS_VARIABLE: ",".join(str(handle) for handle in lock_handles),
        "PYTHONUNBUFFERED": "1",
    }


def start(job: Job, launch: str, lock_handles: tuple[int, ...]) -> int:
    """Start the worker, detached, with the locks in its hands; returns its pid."""
    with open(job.folder / jobs.LOG, "ab") as log:
        child = subprocess.Popen(
            command(job.folder, nproc=job.nproc),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment(launch, job.folder, lock_handles),
            pass_fds=lock_handles,
            start_new_session=True,
        )
    _children.add(child.pid)
    child.returncode = 0  # it outlives this object on purpose; reap() collects it if this process lives longer
    return child.pid


def reap() -> None:
    """Collect workers that this process started and that have ended, so that no zombies stay."""
    for pid in list(_children):
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        _children.discard(pid)
