"""The artifact ``coreset``: indices.npy says which images are kept, best first; settings say how they were chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from semiprune_core.errors import InvalidDataError, MissingStepError
from semiprune_core.project.artifacts import Artifact, Draft
from semiprune_core.project.workspace import Project
from semiprune_core.records import Coreset


@dataclass(frozen=True, eq=False)
class CoresetRun:
    """A saved coreset."""

    artifact: Artifact

    @property
    def aim(self) -> str:
        """What its default knobs were to serve."""
        return str(self.artifact.facts.get("aim", "accuracy"))

    def coreset(self) -> Coreset:
        settings = self.artifact.settings
        return Coreset(
            np.load(self.artifact.path("indices.npy"), allow_pickle=False),
            settings["method"],
            {name: value for name, value in settings.items() if name not in ("method", "pruning_ratio")},
            int(self.artifact.manifest["seed"]),
            float(settings["pruning_ratio"]),
            int(self.artifact.facts["n_pool"]),
        )


def coreset_settings(coreset: Coreset) -> dict[str, Any]:
    """What the manifest says about how a coreset was chosen."""
    return {"method": coreset.method, "pruning_ratio": coreset.pruning_ratio, **coreset.settings}


def write_coreset(draft: Draft, coreset: Coreset) -> None:
    """Fill the draft of a ``coreset`` artifact, drafted with :func:`coreset_settings` and the coreset's seed."""
    np.save(draft.path("indices.npy"), coreset.indices.astype(np.int64), allow_pickle=False)
    draft.facts.update(n_pool=coreset.n_pool, n_kept=len(coreset.indices))


def open_coreset(project: Project, coreset_id: str | None = None) -> CoresetRun:
    """A saved coreset by its id; the latest one for None."""
    artifact = project.latest("coreset") if coreset_id is None else project.artifact(coreset_id)
    if artifact is None:
        raise MissingStepError(f"Project '{project.name}' has no coreset yet. Select one first.")
    if artifact.kind != "coreset":
        raise InvalidDataError(f"{artifact.id} is not a coreset. `semiprune select` makes one.")
    return CoresetRun(artifact)
