"""Background jobs: a process and a folder each; they survive a reload, a closed tab and a restart, and run once.

submit() queues a job, supervise() starts it when its device is free, a :class:`Job` tells where it is.
File locks decide who is alive and whose turn it is (see ``locks``), so the workspace must lie on a local disk.
"""

from __future__ import annotations

from semiprune_core.jobs.context import JobContext, job_behind
from semiprune_core.jobs.glance import seconds_left, under_way
from semiprune_core.jobs.job import Job, JobStatus, damaged_jobs, find_job, list_jobs, remove_damaged_job
from semiprune_core.jobs.kinds import JOB_KINDS
from semiprune_core.jobs.states import DONE, FAILED, LOST, OVER, QUEUED, RESUMABLE, RUNNING, STATES, STOPPED
from semiprune_core.jobs.supervisor import follow, follow_here, submit, supervise, supervise_forever, wait

__all__ = [
    "DONE",
    "FAILED",
    "JOB_KINDS",
    "LOST",
    "OVER",
    "QUEUED",
    "RESUMABLE",
    "RUNNING",
    "STATES",
    "STOPPED",
    "Job",
    "JobContext",
    "JobStatus",
    "damaged_jobs",
    "find_job",
    "follow",
    "follow_here",
    "job_behind",
    "list_jobs",
    "remove_damaged_job",
    "seconds_left",
    "submit",
    "supervise",
    "supervise_forever",
    "under_way",
    "wait",
]
