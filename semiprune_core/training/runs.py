"""Training runs as pages and the command line see them: starting, listing, resuming, deleting."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from semiprune_core.checks import check_range
from semiprune_core.errors import ConflictError, InvalidDataError, JobError, SemiPruneError
from semiprune_core.jobs import DONE, Job, JobStatus, job_behind, list_jobs, submit
from semiprune_core.learning import machine
from semiprune_core.project.artifacts import Artifact
from semiprune_core.project.workspace import Project
from semiprune_core.training.data import check_cache, training_data
from semiprune_core.training.settings import ARTIFACT, KIND, TRIAL, TrainSettings, title_of
from semiprune_core.training.snapshots import keep_snapshot, read_snapshot, snapshot_bytes, snapshot_path
from semiprune_core.training.task import LABELS


def start_training(
    project: Project, settings: TrainSettings, *, device: str = "auto", nproc: int = 1, immediate: bool = False
) -> Job:
    """Pin the pool and the labels as they are now and put the run into the queue of its device."""
    pool = project.pool()
    data = training_data(project, pool)
    if data.problem:
        raise InvalidDataError(data.problem, code="LABELS")
    training = settings.training
    check_range("nproc", nproc, low=1)
    nproc = 1 if settings.is_frozen else nproc  # a head is fitted by one process
    if training.batch_size % nproc:
        raise InvalidDataError(
            f"A batch of {training.batch_size} cannot be shared equally by {nproc} processes. "
            f"Choose a batch size that is a multiple of {nproc}."
        )
    check_cache(pool, by_content=False)  # the worker reads every byte, nobody waits for that
    for trial in list_jobs(project, TRIAL):
        trial.stop()  # nobody needs to know any more how long it would take
    keep_snapshot(project, data.snapshot)
    return submit(
        project,
        KIND,
        settings.to_json(),
        title=title_of(settings),
        device=machine.devices_for(device, nproc),
        pins={"pool": pool.hash, "labels": data.snapshot.hash},
        nproc=nproc,
        immediate=immediate,
        own={LABELS: snapshot_bytes(data.snapshot)},  # equal labels may be kept already, with fewer classes beside them
    )


@dataclass(frozen=True, eq=False)
class Run:
    """One run: its job, its artifact, or both. A deleted job leaves the artifact, a failed one never had any."""

    job: Job | None
    artifact: Artifact | None

    @property
    def id(self) -> str:
        return self.artifact.id if self.artifact is not None else str(self.job and self.job.id)

    @cached_property
    def status(self) -> JobStatus:
        return self.job.status() if self.job is not None else JobStatus(state=DONE)

    @property
    def settings(self) -> TrainSettings:
        if self.job is not None:
            return TrainSettings.from_job(self.job.settings)
        assert self.artifact is not None
        return TrainSettings.from_flat(self.artifact.settings)

    @property
    def title(self) -> str:
        return title_of(self.settings, self.facts.get("start"))

    @property
    def is_provisional(self) -> bool:
        """Whether its artifact is only the first candidate, because it did not come to compare it with another."""
        return bool(self.facts.get("provisional"))

    @property
    def labels_hash(self) -> str:
        if self.artifact is not None:
            return self.artifact.inputs["labels"]
        assert self.job is not None
        return self.job.pins["labels"]

    @property
    def created(self) -> str:
        return self.job.created if self.job is not None else str(self.artifact and self.artifact.manifest["created"])

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.artifact.facts if self.artifact is not None else {}

    @property
    def seconds(self) -> float | None:
        return self.facts.get("seconds", self.status.seconds)


def list_runs(project: Project) -> list[Run]:
    """Every training run, newest first."""
    artifacts = {job_behind(artifact) or artifact.id: artifact for artifact in project.artifacts(ARTIFACT)}
    runs = [Run(job, artifacts.pop(job.id, None)) for job in list_jobs(project, KIND)]
    runs += [Run(None, artifact) for artifact in artifacts.values()]
    return sorted(runs, key=lambda run: run.created, reverse=True)


def resume(job: Job, *, seconds: float = 30.0) -> JobStatus:
    """Resume, waiting for a process that has said its last word and is still unloading torch."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return job.resume()
        except JobError as error:
            if error.code != "JOB_BUSY" or not job.status().is_resumable or time.monotonic() > deadline:
                raise


def delete_run(project: Project, run: Run) -> None:
    """Remove a run's folder and its artifact; refused while it runs or while something was made from it."""
    if run.artifact is not None:
        users = [other.id for other in project.artifacts() if run.artifact.hash in other.inputs.values()]
        if users:
            raise ConflictError(
                f"{run.artifact.id} cannot be deleted: {', '.join(users[:5])} was made from it. Delete that first.",
                code="IN_USE",
            )
    if run.job is not None:
        run.job.delete()
    if run.artifact is not None:
        aside = run.artifact.folder.with_name(f".{run.artifact.id}.deleted")
        os.replace(run.artifact.folder, aside)  # nobody sees half an artifact
        shutil.rmtree(aside)


def trained_seconds(job: Job) -> float:
    """How long the run has worked, all its attempts together."""
    spans: dict[int, list[float]] = {}
    for line in job.progress():
        span = spans.setdefault(line["attempt"], [line["time"], line["time"]])
        span[1] = line["time"]
    return sum(end - begin for begin, end in spans.values())


def class_names_of(job: Job) -> tuple[str, ...]:
    """The classes a run was started with; empty where its labels cannot be read any more."""
    try:
        wanted, own = job.pins["labels"], job.work_folder / LABELS
        return read_snapshot(own if own.is_file() else snapshot_path(job.project, wanted), wanted).class_names
    except SemiPruneError:
        return ()


def side_by_side(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Every setting by name, with its value in each run ("" where a run does not have it); options as own names."""
    rows = []
    for run in runs:
        values = run.settings.flat()
        settings = run.settings.head if run.settings.is_frozen else run.settings.training
        options = settings.make_algorithm().to_json()
        values.pop("options")
        head = values.pop("frozen", {})
        values.update({f"features.{name}": value for name, value in head.items() if name in ("head", "n_folds")})
        rows.append({**values, **{f"options.{name}": value for name, value in options.items()}})
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name, "") for row in rows] for name in names}
