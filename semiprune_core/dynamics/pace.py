"""How long a dynamics run takes here, judged by what ran before."""

from __future__ import annotations

from semiprune_core import jobs
from semiprune_core.dynamics.submit import DynamicsSettings
from semiprune_core.project.workspace import Project
from semiprune_core.results.pseudo import FROZEN, SCRATCH


def seconds_expected(project: Project, settings: DynamicsSettings) -> float | None:
    """About how long a run with these settings takes on this machine; None where no such net was trained here yet."""
    if settings.is_frozen:
        return None
    speed = images_per_second(project, settings.start)
    n_images = settings.supervised().images_seen(len(project.pool()), 0.0) * len(settings.seeds)
    return n_images / speed if speed else None


def images_per_second(project: Project, start: str) -> float | None:
    """Of the last net that was trained here from the same start: for scores, else for pseudo-labels from scratch."""
    for job in jobs.list_jobs(project, "dynamics"):
        speed = job.status().facts.get("images_per_s")
        if speed and job.settings.get("start") == start != FROZEN:
            return float(speed)
    for job in jobs.list_jobs(project, "ssl"):
        facts = job.status().facts
        if start == SCRATCH == facts.get("start", job.settings.get("start")) and facts.get("images_per_s"):
            return float(facts["images_per_s"])
    return None
