"""What methods choose by, whoever made it: the project's own scores, or the evidence of a baseline."""

from __future__ import annotations

import numpy as np

from semiprune_core.errors import MissingStepError
from semiprune_core.methods import METHODS
from semiprune_core.project.workspace import Project
from semiprune_core.records import IntArray
from semiprune_core.results.evidence import KIND as EVIDENCE
from semiprune_core.results.evidence import EvidenceRun, newest_evidence
from semiprune_core.results.inputs import made_from
from semiprune_core.results.pseudo import PseudoRun
from semiprune_core.results.scores import ScoreRun, latest_scores
from semiprune_core.scores import ScoreSettings

ScoreSource = ScoreRun | EvidenceRun


def has_own_evidence(method: str) -> bool:
    """Whether a method looks at evidence of its own instead of the project's scores."""
    return method in METHODS and METHODS[method].evidence not in ("scores", "none")


def score_source_for(project: Project, method: str) -> ScoreSource:
    """What ``method`` chooses by now: the latest scores, or the newest evidence of a baseline for the present pool."""
    if not has_own_evidence(method):
        return latest_scores(project)
    evidence = newest_evidence(project, project.pool()).get(METHODS[method].evidence)
    if evidence is None:
        raise MissingStepError(
            f"The evidence for {METHODS.title(method)} has not been made yet. Evaluate it first, or select a coreset: "
            f"semiprune select {project.name} --method {method} --ratio 0.5."
        )
    return evidence


def open_score_source(project: Project, artifact_id: str) -> ScoreSource:
    artifact = project.artifact(artifact_id)
    return EvidenceRun(artifact) if artifact.kind == EVIDENCE else ScoreRun(artifact)


def settings_of(source: ScoreSource) -> ScoreSettings:
    """How its scores were computed."""
    own = source.artifact.settings
    return ScoreSettings.from_json(own if isinstance(source, ScoreRun) else own.get("scores") or {})


def labels_behind(project: Project, source: ScoreSource) -> tuple[IntArray, int]:
    """(N,) the labels that the scores were made with, and how many classes (or clusters) there are."""
    if isinstance(source, ScoreRun):
        pseudo = PseudoRun(made_from(project, source.artifact, "pseudo"))
        return np.asarray(pseudo.labels().labels, dtype=np.int64), len(pseudo.class_names)
    labels = source.labels()
    assert labels is not None  # only methods on labels are searched
    return labels.astype(np.int64), int(labels.max()) + 1
