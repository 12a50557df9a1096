"""Jobs at a glance, for somebody who is busy elsewhere: which are under way, and how long they still take."""

from __future__ import annotations

from semiprune_core.errors import JobError
from semiprune_core.jobs.job import Job, JobStatus, find_job
from semiprune_core.jobs.supervisor import unfinished
from semiprune_core.project.workspace import Workspace


def under_way(workspace: Workspace) -> list[tuple[Job, JobStatus]]:
    """The jobs that run or wait for their turn, the oldest first, without those that another of them leads."""
    alive = []
    for job in sorted(unfinished(workspace), key=lambda job: job.id):
        try:
            status = job.status()
        except JobError:  # deleted meanwhile
            continue
        if not status.is_over:
            alive.append((job, status))
    led = {status.facts.get("job") for _, status in alive}
    return [(job, status) for job, status in alive if job.id not in led]


def led_by(job: Job, status: JobStatus) -> Job | None:
    """The job that a leading one watches now."""
    name = status.facts.get("job")
    try:
        return find_job(job.workspace, name) if isinstance(name, str) else None
    except JobError:
        return None


def seconds_left(job: Job, status: JobStatus) -> float | None:
    """How long a job still takes at its present speed, a leading one its present step; None where nobody knows."""
    if "step" not in status.facts:
        return status.seconds_left
    led = led_by(job, status)
    return None if led is None else led.status().seconds_left
