"""A project at a glance: when somebody last worked on it, and the newest thing that is known."""

from __future__ import annotations

from datetime import UTC, datetime

from semiprune_core.evaluation.runs import Evaluation
from semiprune_core.project.artifacts import Artifact
from semiprune_core.project.workspace import Project

TELLING = ("pseudo", "coreset", "evaluation")
"""Kinds of artifacts with a result that can be said in a sentence."""


def last_worked_on(project: Project) -> datetime:
    """When its results, jobs or labels last changed."""
    places = [project.folder / "project.json", project.artifacts_folder, project.runs_folder, project.exports_folder]
    places += project.folder.glob("labels.sqlite*")
    return datetime.fromtimestamp(max(place.stat().st_mtime for place in places if place.exists()), UTC)


def last_result(project: Project) -> str:
    """The newest result in a sentence; empty where there is none yet."""
    newest = [artifact for kind in TELLING if (artifact := project.latest(kind)) is not None]
    if not newest:
        return ""
    return _sentence(max(newest, key=lambda artifact: str(artifact.manifest["created"])))


def _sentence(artifact: Artifact) -> str:
    facts = artifact.facts
    if artifact.kind == "evaluation":
        return Evaluation(artifact.settings, artifact).view().sentence()
    if artifact.kind == "coreset":
        return f"{artifact.id} keeps {facts['n_kept']:,} of {facts['n_pool']:,} images."
    share = (facts.get("quality") or {}).get("accuracy")
    if not share:
        return "Pseudo-labels are there; no labels were held out to measure them."
    return (
        f"{share['value']:.1%} of the pseudo-labels are right ({share['low']:.1%} to {share['high']:.1%}, "
        f"n = {share['n']:,})."
    )
