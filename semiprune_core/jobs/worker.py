"""The process of one job: ``python -m semiprune_core.jobs.worker <run folder>``, started by the supervisor."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any

from semiprune_core.jobs import job as jobs
from semiprune_core.jobs import locks
from semiprune_core.jobs.context import LOG_FORMAT, JobContext, run_job
from semiprune_core.jobs.job import Job
from semiprune_core.jobs.launch import LOCKS_VARIABLE
from semiprune_core.jobs.processes import LAUNCH_VARIABLE
from semiprune_core.jobs.states import DONE, RUNNING, STOPPED
from semiprune_core.project.private import keep_to_owner

NICENESS = 5  # the app and the person in front of it go first

log = logging.getLogger(__name__)


class StopSignal:
    """Remembers that SIGTERM came; the work itself happens at the next batch's end, not here.

    A forked child (a data loader) gets the usual SIGTERM back, else its pool could not end it; while the fork is
    under way the signal is held back, so that one that is sent to the newborn at once is not lost.
    """

    def __init__(self) -> None:
        self.came = False
        signal.signal(signal.SIGTERM, self._remember)
        os.register_at_fork(before=self._hold_back, after_in_parent=self._let_through, after_in_child=self._reset)

    def _remember(self, *_: Any) -> None:
        self.came = True

    def _hold_back(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def _let_through(self) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def _reset(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._let_through()

    def __call__(self) -> bool:
        return self.came


def adopt_locks() -> tuple[int, ...]:
    """The locks that the supervisor handed over."""
    handles = tuple(int(text) for text in os.environ.pop(LOCKS_VARIABLE, "").split(",") if text)
    for handle in handles:
        locks.adopt(handle)
    return handles


def owns_lease(job: Job, handles: tuple[int, ...]) -> bool:
    """Whether one of the inherited locks is this job's lease."""
    lease = os.stat(job.folder / jobs.LEASE)
    return any(os.path.samestat(os.fstat(handle), lease) for handle in handles)


def main(arguments: list[str] | None = None) -> int:
    """Run the job of the folder that is named; the exit code is 0 where it ended well or was stopped."""
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, stream=sys.stderr)
    (folder,) = sys.argv[1:] if arguments is None else arguments
    keep_to_owner()
    stop = StopSignal()
    job = Job.open(Path(folder))
    is_rank = job.nproc > 1  # torchrun holds the locks, and each of its processes has a rank
    handles = () if is_rank else adopt_locks()
    launch = os.environ.get(LAUNCH_VARIABLE, "")
    status = job.stored_status()
    is_ours = is_rank or owns_lease(job, handles)
    if not is_ours or not launch or status.launch != launch or status.state != RUNNING:
        log.error("This worker was not started by the supervisor for %s, so it leaves it alone.", job.id)
        return 2
    os.nice(max(0, NICENESS - os.nice(0)))  # a job that starts jobs hands its own niceness down
    rank, world_size = (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])) if is_rank else (0, 1)
    log.info("Attempt %d of %s (%s), process %d, rank %d.", status.attempt, job.title, job.id, os.getpid(), rank)
    end = run_job(JobContext(job, launch=launch, rank=rank, world_size=world_size, stop=stop))
    log.info("The job is %s.", end.state)
    return 0 if end.state in (DONE, STOPPED) else 1


if __name__ == "__main__":
    sys.exit(main())
