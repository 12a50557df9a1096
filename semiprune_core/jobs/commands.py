"""``semiprune jobs list | log | stop | resume`` as plain functions: names in, JSON values out."""

from __future__ import annotations

from typing import Any

from semiprune_core.jobs.job import Job, find_job, list_jobs
from semiprune_core.jobs.supervisor import recognise_dead, supervise
from semiprune_core.project.workspace import Workspace


def summary(job: Job) -> dict[str, Any]:
    """One job in a line of a table."""
    status = job.status()
    return {
        "id": job.id,
        "project": job.project_name,
        "kind": job.kind,
        "title": job.title,
        "device": job.device,
        "state": status.state,
        "done": status.done,
        "total": status.total,
        "message": status.message,
        "error_code": status.error_code,
        "attempt": status.attempt,
        "created": job.created,
        "seconds": status.seconds,
        "seconds_left": status.seconds_left,
        "stop_requested": status.stop_requested,
    }


def jobs_list(workspace: Workspace, project: str | None = None, kind: str | None = None) -> list[dict[str, Any]]:
    """All jobs, newest first, of one project or of all; looking starts nothing, but the dead are recognised."""
    recognise_dead(workspace)
    return [summary(job) for job in list_jobs(workspace.project(project) if project else workspace, kind)]


def jobs_log(workspace: Workspace, job_id: str, n_lines: int = 50) -> dict[str, Any]:
    job = find_job(workspace, job_id)
    return {"id": job.id, "state": job.status().state, "log": job.log_tail(n_lines)}


def jobs_stop(workspace: Workspace, job_id: str) -> dict[str, Any]:
    """Ask for a stop; the answer says "stopped" for a queued job and "running" until a running one honours it."""
    job = find_job(workspace, job_id)
    job.stop()
    return summary(job)


def jobs_resume(workspace: Workspace, job_id: str) -> dict[str, Any]:
    """Put the job back into the queue, and start it if its device is free."""
    job = find_job(workspace, job_id)
    job.resume()
    supervise(workspace)
    return summary(job)
