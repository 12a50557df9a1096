"""What an artifact was made from: ``inputs`` name it by content hash, so that what is out of date can be told."""

from __future__ import annotations

from semiprune_core.errors import MissingStepError
from semiprune_core.project.artifacts import Artifact
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project

REMAKE = {
    "pseudo": "Train again first.",
    "trajectory": "Repeat the dynamics run first.",
    "scores": "Repeat the dynamics run first.",
    "coreset": "Select it again.",
}


def check_same_pool(artifact: Artifact, pool: Pool) -> None:
    """Refuse an artifact that was made from other images than ``pool`` holds."""
    if artifact.inputs["pool"] != pool.hash:
        remake = REMAKE.get(artifact.kind, "Make it again first.")
        raise MissingStepError(f"The pool has changed since {artifact.id} was made. {remake}")


def made_from(project: Project, artifact: Artifact, kind: str) -> Artifact:
    """The artifact of ``kind`` that ``artifact`` names among its inputs, by content hash."""
    wanted_hash = artifact.inputs.get(kind)
    source = next((past for past in reversed(project.artifacts(kind)) if past.hash == wanted_hash), None)
    if source is None:
        raise MissingStepError(f"{artifact.id} was made from {kind} that this project no longer has. Make it again.")
    return source
