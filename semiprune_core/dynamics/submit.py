"""The dynamics run: what it is given, and how it is queued. The training itself is in ``dynamics.job``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from semiprune_core import jobs
from semiprune_core.checks import check_range
from semiprune_core.errors import InvalidSettingError
from semiprune_core.labeling import open_store
from semiprune_core.learning import machine
from semiprune_core.learning.presets import supervised_preset
from semiprune_core.learning.settings import SupervisedSettings
from semiprune_core.project.artifacts import Artifact
from semiprune_core.project.workspace import Project
from semiprune_core.results import PseudoRun, latest_pseudo
from semiprune_core.settings import Settings

FEWEST_EPOCHS = 2
"""A deviation over the epochs needs two of them."""


@dataclass(frozen=True, kw_only=True)
class DynamicsSettings(Settings):
    """One supervised run per seed on the pseudo-labels of the artifact ``pseudo``."""

    pseudo: str
    preset: str = "quick"
    training: dict[str, Any] = field(default_factory=dict)
    """What differs from the preset."""
    seeds: tuple[int, ...] = (0,)

    def check(self) -> None:
        check_range("epochs", self.supervised().epochs, low=FEWEST_EPOCHS)
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise InvalidSettingError(f"seeds must list one or more numbers, each once; got {list(self.seeds)}.")

    def supervised(self) -> SupervisedSettings:
        return supervised_preset(self.preset, **self.training)


def submit_dynamics(
    project: Project,
    *,
    preset: str = "quick",
    seeds: tuple[int, ...] = (0,),
    device: str = "auto",
    nproc: int = 1,
    immediate: bool = False,
    **training: Any,
) -> jobs.Job:
    """Queue a dynamics run on the latest pseudo-labels; the job pins them and the pool by content hash."""
    pseudo = latest_pseudo(project).artifact
    settings = DynamicsSettings(pseudo=pseudo.id, preset=preset, training=training, seeds=seeds)
    return jobs.submit(
        project,
        "dynamics",
        settings.to_json(),
        device=machine.devices_for(device, nproc),
        pins={"pseudo": pseudo.hash, "pool": project.pool().hash},
        nproc=nproc,
        immediate=immediate,
    )


def pinned_pseudo(project: Project, settings: DynamicsSettings) -> PseudoRun:
    return PseudoRun(project.artifact(settings.pseudo))


def why_out_of_date(project: Project, artifact: Artifact) -> list[str]:
    """Reasons, in words, why ``artifact`` was made from something that has changed since; empty: it is up to date."""
    reasons = []
    if artifact.inputs.get("pool", "") != project.pool().hash:
        reasons.append("the pool has changed")
    pseudo = project.latest("pseudo")
    if pseudo is not None and artifact.inputs.get("pseudo") not in (None, pseudo.hash):
        reasons.append("there are newer pseudo-labels")
    elif pseudo is not None and pseudo.inputs.get("labels", "") != open_store(project).snapshot().hash:
        reasons.append("people have changed labels since the pseudo-labels were made (train again first)")
    scores = project.latest("scores")
    if artifact.kind == "coreset" and scores is not None and "scores" in artifact.inputs:
        current = {past.hash for past in project.artifacts("scores") if past.inputs == scores.inputs}
        if artifact.inputs["scores"] not in current and not reasons:
            reasons.append("there are newer scores")
    return reasons
