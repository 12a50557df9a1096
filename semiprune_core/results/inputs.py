"""What an artifact was made from: ``inputs`` name it by content hash, so that what is out of date can be told."""

from __future__ import annotations

from semiprune_core.errors import MissingStepError
from semiprune_core.project.artifacts import Artifact
from semiprune_core.project.workspace import Project


def made_from(project: Project, artifact: Artifact, kind: str) -> Artifact:
    """The artifact of ``kind`` that ``artifact`` names among its inputs, by content hash."""
    wanted_hash = artifact.inputs.get(kind)
    source = next((past for past in reversed(project.artifacts(kind)) if past.hash == wanted_hash), None)
    if source is None:
        raise MissingStepError(f"{artifact.id} was made from {kind} that this project no longer has. Make it again.")
    return source
