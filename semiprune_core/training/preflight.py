"""Before a run: how long it will take and how much memory and disk, from a few real steps on the real device.

The job kind ``preflight`` takes the steps in a process of its own; everything else here loads no torch. A trial is kept
as long as nothing changes that a step's cost depends on, so that other settings are estimated at once.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from semiprune_core import files
from semiprune_core.errors import InvalidDataError
from semiprune_core.jobs import DONE, FAILED, JOB_KINDS, Job, JobContext, list_jobs, submit
from semiprune_core.learning import machine
from semiprune_core.project.workspace import Project
from semiprune_core.training.data import TrainingData
from semiprune_core.training.settings import TRIAL, TrainSettings
from semiprune_core.training.snapshots import keep_snapshot
from semiprune_core.training.task import Task
from semiprune_core.training.trial import Estimate, Trial, estimate, time_steps

__all__ = ["Estimate", "Trial", "estimate", "find_trial", "start_trial", "trial_key", "trial_of"]

KIND = TRIAL
KEPT = 4
"""Trials kept per project."""
COSTLY = (
    "net",
    "batch_size",
    "unlabeled_ratio",
    "algorithm",
    "precision",
    "n_ops",
    "cutout",
    "distribution_alignment",
)
"""The settings that a step's cost depends on."""


def trial_key(settings: TrainSettings, device: str, pool_hash: str, n_classes: int) -> str:
    """One name for all runs whose steps cost the same."""
    values = settings.training.to_json()
    costly = {name: values[name] for name in COSTLY if name in values}
    start = {"encoder": settings.encoder} if settings.is_finetuned else {}
    return files.sha256_json({**costly, **start, "device": device, "pool": pool_hash, "classes": n_classes})


def find_trial(project: Project, key: str) -> Job | None:
    """The newest trial under this key, in whatever state."""
    return next((job for job in list_jobs(project, KIND) if job.pins.get("trial") == key), None)


def trial_of(job: Job) -> Trial | None:
    """What a trial found; None as long as it has not ended well."""
    if job.status().state != DONE:
        return None
    return Trial(**(job.result() or {}))


def start_trial(
    project: Project, settings: TrainSettings, data: TrainingData, *, device: str = "auto", immediate: bool = False
) -> Job:
    """Ask for a trial, or find the one that was asked for; others that still wait or run are given up."""
    if data.problem:
        raise InvalidDataError(data.problem, code="LABELS")
    pool = project.pool()
    place = machine.devices_for(device)
    key = trial_key(settings, place, pool.hash, len(data.per_class))
    trial = find_trial(project, key)
    if trial is not None and (trial.status().state == DONE or not trial.status().is_over):
        return trial
    _clear_away(project)
    keep_snapshot(project, data.snapshot)
    pins = {"trial": key, "pool": pool.hash, "labels": data.snapshot.hash}
    return submit(project, KIND, settings.to_json(), title="Pre-flight", device=place, pins=pins, immediate=immediate)


def _clear_away(project: Project) -> None:
    """Stop trials that nobody waits for any more, and delete old ones."""
    for number, job in enumerate(list_jobs(project, KIND)):
        if not job.status().is_over:
            job.stop()
        elif number >= KEPT - 1 or job.status().state == FAILED:
            job.delete()


@JOB_KINDS.register("preflight", title="Pre-flight")
def run(context: JobContext) -> dict[str, Any]:
    """Train for a few steps as the run would."""
    task = Task.of(context)
    return asdict(time_steps(task, device=context.device, progress=context))
