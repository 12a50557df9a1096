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


def out_of_date(project: Project) -> list[Stale]:
    """The newest artifact of each kind that is out of date, in the order of the line."""
    if not project.has_pool():
        return []
    labels, pool = open_store(project).snapshot().hash, project.pool().hash
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
            elif role == "pool" and value != pool:
                reason = "images were added since it was made"
            elif made_from is not None and made_from.kind in stale:
                reason = f"it stands on {made_from.id}, which is out of date"
            elif made_from is not None and made_from.kind != artifact.kind and made_from != newest[made_from.kind]:
                reason = f"it stands on {made_from.id}, and there is {newest[made_from.kind].id} now"  # type: ignore[union-attr]
        if reason:
            stale[kind] = Stale(artifact, reason)
    return list(stale.values())


def bring_up_to_date(project: Project) -> list[jobs.Job]:
    """Queue the jobs that made what is out of date once more, with the same settings; they run one after the other."""
    queued = []
    for one in out_of_date(project):
        kind = MADE_BY.get(one.artifact.kind)
        if kind is None:
            continue
        before = jobs.list_jobs(project, kind)
        if any(job.status().state not in jobs.OVER for job in before):
            continue  # it is under way already
        if not before:
            raise MissingStepError(
                f"{one.title} were not made by a job of this project, so it cannot be run again. "
                "Start it anew on its own page."
            )
        last = next((job for job in before if job.status().state == jobs.DONE), before[0])
        queued.append(jobs.submit(project, kind, last.settings, title=last.title, device=last.device))
    return queued
