"""What the Scores and Select pages look at, opened once per artifact: a page's own code runs anew at every click."""

from __future__ import annotations

import functools
from pathlib import Path

import streamlit as st

from pages.parts import project as projects
from semiprune_core.baselines.evidence import evidence_at_hand
from semiprune_core.coresets.score_view import ScoreView, open_view
from semiprune_core.dynamics import why_out_of_date
from semiprune_core.project.artifacts import open_artifact
from semiprune_core.project.workspace import Project
from semiprune_core.results import ScoreRun
from semiprune_core.results.evidence import EvidenceRun


def view(project: Project, scores: ScoreRun) -> ScoreView:
    """The scores opened for looking at, once per artifact."""
    pool = project.pool()
    key = (project.artifacts_folder, scores.artifact.id, pool.hash)
    return _opened(*key)


@functools.lru_cache(maxsize=4)
def _opened(folder: Path, scores_id: str, pool_hash: str) -> ScoreView:
    project = projects.workspace().project(folder.parent.name)
    return open_view(project, ScoreRun(project.artifact(scores_id)), project.pool())


def warn_if_out_of_date(project: Project, scores: ScoreRun, *, what: str) -> bool:
    reasons = why_out_of_date(project, scores.artifact)
    if reasons:
        st.warning(f"{what} are out of date: {'; '.join(reasons)}.", icon=":material/update:")
    return bool(reasons)


def stored_evidence(project: Project) -> dict[str, EvidenceRun]:
    """The baselines whose evidence is there, each opened once per artifact."""
    return {
        name: _evidence(project.artifacts_folder, run.artifact.id, run.artifact.hash)
        for name, run in evidence_at_hand(project).items()
    }


@functools.lru_cache(maxsize=16)
def _evidence(folder: Path, artifact_id: str, artifact_hash: str) -> EvidenceRun:
    return EvidenceRun(open_artifact(folder / artifact_id))
