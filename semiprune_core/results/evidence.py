"""The artifact ``evidence``: what a baseline needed and was costly to make, kept and found again.

    scores.parquet    image_id and a column per score, where the evidence is one that methods choose by
    labels.npy        (N,) the labels behind it (cluster or reference labels), where there are any
    ...               what a step leaves for the next ones: features.npy, a trajectory, weights

``settings["provider"]`` says whose it is; the others are that provider's own. Its kind keeps it apart from the line:
it is never the latest ``pseudo``, ``trajectory`` or ``scores`` of a project.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.project.artifacts import Artifact, Draft, open_artifact
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import Evidence, IntArray, PseudoLabels
from semiprune_core.results.inputs import check_same_pool
from semiprune_core.results.pseudo import FROZEN, PseudoRun
from semiprune_core.results.scores import learned_basis, write_scores
from semiprune_core.scores import ScoreSettings, ScoreTable
from semiprune_core.selection import Basis

KIND = "evidence"


@dataclass(frozen=True, eq=False)
class EvidenceRun:
    """A finished piece of evidence, opened lazily."""

    artifact: Artifact

    @property
    def provider(self) -> str:
        return str(self.artifact.settings["provider"])

    @property
    def names(self) -> tuple[str, ...]:
        """The scores it holds; none for a step that only serves others."""
        return tuple(self.artifact.facts.get("scores", ()))

    @property
    def n_epochs(self) -> int | None:
        """The length of the dynamics run behind it; None where there was none."""
        n_epochs = self.artifact.facts.get("n_epochs")
        return None if n_epochs is None else int(n_epochs)

    def table(self) -> ScoreTable:
        read = pq.read_table(self.artifact.path("scores.parquet"), columns=list(self.names), memory_map=True)
        settings = ScoreSettings.from_json(self.artifact.settings.get("scores") or {})
        return ScoreTable({name: read[name].to_numpy() for name in self.names}, settings, read.num_rows)

    def basis(self, own: Basis) -> Basis:
        """What the starting values of methods on this evidence depend on: its own AUM where it has one, else that of
        the project's ``own`` scores."""
        is_frozen = self.artifact.settings.get("start") == FROZEN
        path = self.artifact.path("scores.parquet")
        basis = _learned(path, self.n_epochs, is_frozen) if "aum" in self.names else own
        return dataclasses.replace(basis, n_epochs=self.n_epochs, aim=own.aim)

    def array(self, name: str) -> np.ndarray:
        """One of its arrays, memory-mapped."""
        return np.load(self.artifact.path(f"{name}.npy"), mmap_mode="r", allow_pickle=False)

    def labels(self) -> IntArray | None:
        """(N,) the labels it stands on; None for evidence without labels."""
        return np.asarray(self.array("labels")) if self.artifact.path("labels.npy").is_file() else None

    def evidence(self, pool: Pool, pseudo: PseudoLabels | None = None) -> Evidence:
        """What the selectors look at. ``pseudo`` says who labeled what, and gives labels where it has none of its own.

        The labels serve options alone (balanced classes, at least k of each); no baseline chooses by them.
        """
        check_same_pool(self.artifact, pool)
        labels = self.labels()
        if labels is None and pseudo is not None:
            labels = pseudo.labels
        human = None if pseudo is None else pseudo.human_mask
        return self.table().evidence(labels=labels, human_mask=human, duplicate_of=pool.duplicate_of)


@lru_cache(maxsize=16)
def _learned(scores: Path, n_epochs: int | None, is_frozen: bool) -> Basis:
    """Kept, as a slider asks for it again and again; an artifact never changes."""
    return learned_basis(scores, n_epochs, is_frozen=is_frozen)


def find_evidence(
    project: Project, settings: Mapping[str, Any], inputs: Mapping[str, str], seed: int | None
) -> EvidenceRun | None:
    """The newest evidence with exactly these settings, inputs and seed."""
    for artifact in reversed(project.artifacts(KIND)):
        same = dict(artifact.settings) == dict(settings) and dict(artifact.inputs) == dict(inputs)
        if same and artifact.manifest["seed"] == seed:
            return EvidenceRun(artifact)
    return None


def newest_evidence(project: Project, pool: Pool) -> dict[str, EvidenceRun]:
    """The newest evidence of each provider for the pool as it is now, with whatever settings."""
    runs = [EvidenceRun(artifact) for artifact in project.artifacts(KIND) if artifact.inputs["pool"] == pool.hash]
    return {run.provider: run for run in runs}


def write_evidence(draft: Draft, pool: Pool, table: ScoreTable, labels: IntArray | None = None) -> None:
    """Fill the draft of evidence that methods choose by."""
    write_scores(draft, pool.ids, table)
    if labels is not None:
        np.save(draft.path("labels.npy"), labels.astype(np.int32), allow_pickle=False)


def open_evidence(draft: Draft) -> EvidenceRun:
    """The evidence that a finished draft became."""
    return EvidenceRun(open_artifact(draft.folder))


def current_pseudo_labels(project: Project, pool: Pool) -> PseudoLabels | None:
    """The latest pseudo-labels of this very pool; None where there are none."""
    artifact = project.latest("pseudo")
    return PseudoRun(artifact).labels() if artifact is not None and artifact.inputs["pool"] == pool.hash else None


def complete_evidence(run: EvidenceRun, project: Project, pool: Pool, snapshot: LabelsSnapshot) -> Evidence:
    """The evidence of ``run`` with what is known about the pool: human labels also where no model was trained."""
    pseudo = current_pseudo_labels(project, pool)
    evidence = run.evidence(pool, pseudo)
    if pseudo is not None:
        return evidence
    human, _ = snapshot.on_pool(pool.ids, pool.duplicate_of)
    return dataclasses.replace(evidence, human_mask=human >= 0)


def evidence_of(table: ScoreTable, pseudo: PseudoRun, pool: Pool) -> Evidence:
    """What the selectors look at for a project's scores."""
    labels = pseudo.labels()
    return table.evidence(labels=labels.labels, human_mask=labels.human_mask, duplicate_of=pool.duplicate_of)
