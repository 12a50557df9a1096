"""What is out of date: results whose labels or inputs have changed since they were made.

Every artifact names what it was made from by content hash. One is out of date when the labels or the pool it names are
not the present ones, or when it stands on an artifact that is out of date or that a newer one has replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

from semiprune_core import jobs
from semiprune_core.artifacts import Artifact
from semiprune_core.errors import MissingStepError
from semiprune_core.labeling import open_store
from semiprune_core.pool import Pool
from semiprune_core.workspace import Project

LINE = ("pseudo", "trajectory", "scores", "coreset")
"""The kinds that follow from labels, in the order they are made."""
WORDS = {
    "pseudo": "Pseudo-labels",
    "trajectory": "Training dynamics",
    "scores": "Scores",
    "coreset": "Coreset",
    "map": "Map",
}
MADE_BY = {"pseudo": "ssl", "trajectory": "dynamics"}
"""The job kinds that bring a kind up to date; scores and coresets are made on their pages in moments."""


@dataclass(frozen=True)
class Stale:
    """The newest artifact of a kind, and in words why it is out of date."""

    artifact: Artifact
    reason: str

    @property
    def title(self) -> str:
        return WORDS.get(self.artifact.kind, self.artifact.kind)


def out_of_date(project: Project, pool: Pool | None = None) -> list[Stale]:
    """The newest artifact of each kind that is out of date, in the order of the line. ``pool`` where it is open."""
    if not project.has_pool():
        return []
    labels, images = open_store(project).snapshot().hash, (pool or project.pool()).hash
    newest = {kind: project.latest(kind) for kind in (*LINE, "map")}
    kind_of = {artifact.hash: artifact for artifact in project.artifacts() if artifact.kind in (*LINE, "map")}
    stale: dict[str, Stale] = {}
    for kind, artifact in newest.items():
        if artifact is None:
            continue
        reason = ""
        for role, value in artifact.inputs.items():
            made_from = kind_of.get(value)
            if role == "labels" and value != labels:
                reason = "labels have changed since it was made"
            elif role == "pool" and value != images:
                reason = "images were added since it was made"
            elif made_from is not None and made_from.kind in stale:
                reason = f"it stands on {made_from.id}, which is out of date"
            elif made_from is not None and made_from.kind != artifact.kind and made_from != newest[made_from.kind]:
                reason = f"it stands on {made_from.id}, and there is {newest[made_from.kind].id} now"  # type: ignore[union-attr]
        if reason:
            stale[kind] = Stale(artifact, reason)
    return list(stale.values())


def bring_up_to_date(project: Project) -> jobs.Job:
    """Start the first of the line's jobs whose result is out of date, with the settings it had before.

    What stands on its result can only be made once that is there, so the next one is started the same way.
    """
    stale = [one for one in out_of_date(project) if one.artifact.kind in MADE_BY]
    if not stale:
        raise MissingStepError("Nothing that a job makes is out of date. Scores and coresets are made on their pages.")
    first = stale[0]
    kind = MADE_BY[first.artifact.kind]
    before = jobs.list_jobs(project, kind)
    under_way = next((job for job in before if job.status().state not in jobs.OVER), None)
    if under_way is not None:
        return under_way
    named = [job for job in before if job.id == first.artifact.facts.get("job")]
    last = next(iter(named or [job for job in before if job.status().state == jobs.DONE]), None)
    if last is None:
        raise MissingStepError(
            f"It is not known how {first.artifact.id} was made: its job is gone. Start it anew on its own page."
        )
    return AGAIN[kind](project, last)


def _train_again(project: Project, job: jobs.Job) -> jobs.Job:
    from semiprune_core.learning.training import TrainSettings, start_training

    return start_training(project, TrainSettings.from_json(job.settings), device=job.devices[0], nproc=job.nproc)


def _run_dynamics_again(project: Project, job: jobs.Job) -> jobs.Job:
    from semiprune_core.dynamics import DynamicsSettings, submit_dynamics

    settings = DynamicsSettings.from_json(job.settings)
    return submit_dynamics(
        project,
        preset=settings.preset,
        seeds=settings.seeds,
        device=job.device,
        nproc=job.nproc,
        **settings.training,
    )


AGAIN = {"ssl": _train_again, "dynamics": _run_dynamics_again}
