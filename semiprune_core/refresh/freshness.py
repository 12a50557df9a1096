"""What is out of date: results whose labels or inputs have changed since they were made.

Every artifact names what it was made from by content hash. One is out of date when the labels or the pool it names are
not the present ones, or when it stands on an artifact that is out of date or that a newer one has replaced. Of
trajectories and scores there may be several of the same age: other seeds, or other score settings on the same
trajectories, replace nothing. ``refresh`` brings up to date what is found here. Evaluations and studies are not made
again by themselves, they take too long: ``evaluated_before`` and ``studied_before`` say what has changed since.
"""

from __future__ import annotations

from dataclasses import dataclass

from semiprune_core.evaluation import BY_PEOPLE
from semiprune_core.labeling import open_store
from semiprune_core.methods import METHODS
from semiprune_core.project.artifacts import Artifact
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.training import labels_are
from semiprune_core.trials import FULL

LINE = ("pseudo", "trajectory", "scores", "coreset")
"""The kinds that follow from labels, in the order they are made."""
WORDS = {
    "pseudo": "Pseudo-labels",
    "trajectory": "Training dynamics",
    "scores": "Scores",
    "coreset": "Coreset",
    "map": "Map",
}
VARIANTS = ("trajectory", "scores")
"""Kinds of which several may be current at once: those made from the same inputs as the newest."""


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
    labels, images = open_store(project).snapshot(), (pool or project.pool()).hash
    newest = {kind: project.latest(kind) for kind in (*LINE, "map")}
    kind_of = {artifact.hash: artifact for artifact in project.artifacts() if artifact.kind in (*LINE, "map")}
    stale: dict[str, Stale] = {}
    for kind, artifact in newest.items():
        if artifact is None:
            continue
        reason = ""
        for role, value in artifact.inputs.items():
            made_from = kind_of.get(value)
            if role == "labels" and not labels_are(project, value, labels):
                reason = "labels have changed since it was made"
            elif role == "pool" and value != images:
                reason = "images were added since it was made"
            elif made_from is not None and made_from.kind in stale:
                reason = f"it was made from {made_from.id}, which is out of date"
            elif made_from is not None and made_from.kind != artifact.kind:
                now = newest[made_from.kind]
                if now is not None and not _is_current(made_from, now):
                    reason = f"it was made from {made_from.id}, and {now.id} is newer"
        if reason:
            stale[kind] = Stale(artifact, reason)
    return list(stale.values())


def _is_current(artifact: Artifact, newest: Artifact) -> bool:
    return artifact == newest or (artifact.kind in VARIANTS and artifact.inputs == newest.inputs)


def evaluated_before(project: Project, evaluation: Artifact, pool: Pool | None = None) -> str:
    """What has changed since an evaluation was made, in one sentence; empty where it is about the present state."""
    uses = _uses(evaluation)
    changes = _changes(project, evaluation, uses, pool)
    if not changes:
        return ""
    scored = uses["scores"]
    stale = {result.artifact.kind for result in out_of_date(project, pool)}
    first = "bring the scores up to date and " if scored and "scores" in stale else ""
    goal = "scores" if scored else "images and labels"
    return (
        f"{evaluation.id} was made before {' and '.join(changes)}: {first}evaluate again to compare with the present "
        f"{goal}."
    )


def studied_before(project: Project, study: Artifact) -> str:
    """What has changed since a label-budget study was made; empty where it is about the present pool and labels."""
    uses = {"pool": True, "labels": study.facts["truth"] == "human"}  # it draws its labeled subsets itself
    changes = _changes(project, study, uses, None)
    return f"{study.id} was made before {' and '.join(changes)}: start it again to study these." if changes else ""


def _changes(project: Project, artifact: Artifact, uses: dict[str, bool], pool: Pool | None) -> list[str]:
    """Inputs that are others by now; those that none of its numbers depends on (``uses``) are left aside."""
    made_from = {role: value for role, value in artifact.inputs.items() if uses.get(role)}
    changes = []
    if made_from.get("pool", "") not in ("", (pool or project.pool()).hash):
        changes.append("the pool changed")
    if "labels" in made_from and not labels_are(project, made_from["labels"], open_store(project).snapshot()):
        changes.append("people's labels changed")
    for kind, words in (("scores", "were"), ("pseudo", "was")):
        newest = project.latest(kind)
        if newest is None or kind not in made_from:
            continue
        mine = next((past for past in project.artifacts(kind) if past.hash == made_from[kind]), None)
        if mine is None or not _is_current(mine, newest):
            changes.append(f"{newest.id} {words} made")
            break  # scores follow from pseudo-labels: one of the two says it
    return changes


def _uses(evaluation: Artifact) -> dict[str, bool]:
    """For each input of an evaluation whether its numbers depend on it. Unknown methods may depend on everything."""
    truth = evaluation.facts.get("truth")
    methods = [method for method in evaluation.facts["methods"] if method != FULL]
    looks = any(method not in METHODS or METHODS[method].evidence == "scores" for method in methods)
    learns = any(method not in METHODS or METHODS[method].labels_from in BY_PEOPLE for method in methods)
    return {
        "pool": True,
        "labels": learns or truth in ("human", "pseudo"),
        "pseudo": looks or truth == "pseudo",
        "scores": looks,
    }
