"""Asking for features: what can be chosen, and the job that computes them."""

from __future__ import annotations

from dataclasses import dataclass

from semiprune_core import jobs
from semiprune_core.checks import check_choice, check_range
from semiprune_core.embeddings.encoders import DEFAULT, LEAST_SIDE, MOST_SIDE, check_names
from semiprune_core.embeddings.engines import AUTO, ENGINES
from semiprune_core.errors import MissingStepError
from semiprune_core.progress import Progress, Stopped
from semiprune_core.project.workspace import Project
from semiprune_core.settings import Settings

KIND = "features"


@dataclass(frozen=True, kw_only=True)
class EmbedSettings(Settings):
    """``encoder`` by name, ``weights`` a safetensors file or "" for its own, ``size`` in pixels or 0 for its own.

    ``mirrored`` shows it every image a second time, mirrored: heads learn better from both.
    """

    encoder: str = DEFAULT
    weights: str = ""
    size: int = 0
    mirrored: bool = True
    engine: str = AUTO
    device: str = "auto"
    n_workers: int = 0

    @property
    def content(self) -> tuple[str, str, int, bool]:
        """What decides about the features; the rest about how they are computed."""
        return self.encoder, self.weights, self.size, self.mirrored

    def check(self) -> None:
        check_choice("engine", self.engine, ENGINES)
        if self.size:
            check_range("size", self.size, low=LEAST_SIDE, high=MOST_SIDE)


def submit_features(
    project: Project, encoder: str = DEFAULT, *, weights: str = "", size: int = 0, immediate: bool = False
) -> jobs.Job:
    """Queue a job that computes the features of every image that has none yet from this encoder.

    It has a device of its own, so that nothing waits behind it. A job that waits already for the same is given back
    instead of a second one.
    """
    if not project.has_pool():
        raise MissingStepError(f"Project '{project.name}' has no images yet. Import some on the Pool page first.")
    check_names(encoder, weights, guard=project.workspace.guard)  # a misspelt name is refused here and now
    settings = EmbedSettings(encoder=encoder, weights=weights, size=size)
    if not immediate and (job := _queued(project, settings)):
        return job
    return jobs.submit(project, KIND, settings.to_json(), title=f"Features: {encoder}", immediate=immediate)


def wait_while_computed(project: Project, settings: EmbedSettings, progress: Progress) -> None:
    """Wait as long as a job computes just these features, so that no image is embedded twice at the same time.

    A stop ends the waiting, not the other job.
    """

    def watch(status: jobs.JobStatus) -> None:
        progress.report(status.done, status.total, unit="images", stage="features")
        if progress.should_stop():
            raise Stopped

    for job in jobs.list_jobs(project, KIND):
        if job.status().state == jobs.RUNNING and EmbedSettings.from_json(job.settings).content == settings.content:
            jobs.wait(job, watch=watch)


def _queued(project: Project, settings: EmbedSettings) -> jobs.Job | None:
    """The job with these settings that waits for its turn; one that runs already may miss the newest images."""
    for job in jobs.list_jobs(project, KIND):
        if job.status().state == jobs.QUEUED and EmbedSettings.from_json(job.settings) == settings:
            return job
    return None
