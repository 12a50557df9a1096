"""Where a method's evidence comes from: one provider per kind, and one function that asks it.

A provider is a function ``(request: EvidenceRequest) -> Evidence`` under a name in :data:`PROVIDERS`; a method names
the one it needs in ``Method.evidence``. What is costly to make, a provider keeps as an artifact of the project and
finds again by its inputs and settings, so that asking twice costs once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from semiprune_core.baselines.settings import score_changes
from semiprune_core.dynamics.scoring import with_settings
from semiprune_core.labeling import open_store
from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.methods import METHODS, needs_of
from semiprune_core.progress import Progress
from semiprune_core.project.workspace import Project
from semiprune_core.records import Evidence
from semiprune_core.registry import Registry
from semiprune_core.results import PseudoRun, latest_scores, made_from
from semiprune_core.results.evidence import EvidenceRun, evidence_of, newest_evidence


@dataclass(frozen=True, eq=False)
class EvidenceRequest:
    """What a provider is asked: for which project, with which ``settings`` of its own, on which device.

    ``device`` may be "auto". ``folder`` is a place of the calling job for checkpoints; what lies there may be gone the
    next time. ``labels`` are the people's labels to use instead of the present ones, such as those that a job pinned.
    """

    project: Project
    progress: Progress
    seed: int = 0
    device: str = "cpu"
    settings: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    labels: LabelsSnapshot | None = None

    def snapshot(self) -> LabelsSnapshot:
        """The people's labels that the evidence may stand on."""
        return open_store(self.project).snapshot() if self.labels is None else self.labels


Provider = Callable[[EvidenceRequest], Evidence]
PROVIDERS: Registry[Provider] = Registry("kind of evidence")


def evidence_for(method: str, request: EvidenceRequest) -> Evidence:
    """The evidence that ``method`` (or a plain selector) looks at; made first where it is not there yet."""
    kind = METHODS[method].evidence if method in METHODS else "scores"
    return PROVIDERS[kind](request)


def stored_evidence(method: str, request: EvidenceRequest) -> EvidenceRun | None:
    """The evidence of ``method`` as it is stored on disk, made first if it is missing.

    None for methods that look at the project's own scores, or at nothing.
    """
    maker = evidence_maker(method)
    return None if maker is None else maker(request)


def evidence_maker(method: str) -> Callable[[EvidenceRequest], EvidenceRun] | None:
    """What makes and stores the evidence of a method; None where the project's own scores (or nothing) are enough."""
    return PROVIDERS.facts(METHODS[method].evidence).get("maker") if method in METHODS else None


def evidence_at_hand(project: Project) -> dict[str, EvidenceRun]:
    """The baselines that can be chosen by at once: their evidence for the present pool, the newest of each.

    Evidence of an earlier version that lacks a score which the method needs by now is as good as none.
    """
    newest = newest_evidence(project, project.pool())
    by_method = {name: newest[METHODS[name].evidence] for name in METHODS if METHODS[name].evidence in newest}
    return {name: run for name, run in by_method.items() if set(needs_of(name)) <= set(run.names)}


@PROVIDERS.register("none", title="Nothing", about="The pool alone.")
def nothing(request: EvidenceRequest) -> Evidence:
    pool = request.project.pool()
    return Evidence(len(pool), duplicate_of=pool.duplicate_of)


@PROVIDERS.register("scores", title="Scores on pseudo-labels", about="The project's own dynamics run.")
def own_scores(request: EvidenceRequest) -> Evidence:
    project = request.project
    changes = score_changes(request.settings)
    scores = with_settings(project, latest_scores(project), progress=request.progress, **changes)
    pseudo = PseudoRun(made_from(project, scores.artifact, "pseudo"))
    return evidence_of(scores.table(), pseudo, project.pool())
