"""Evaluation: train on coresets, test, over seeds; what is asked, and what came out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from semiprune_core import jobs
from semiprune_core.artifacts import Artifact
from semiprune_core.evaluation_view import COLUMNS
from semiprune_core.settings import Settings
from semiprune_core.workspace import Project

BOOK = "trials.jsonl"


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings(Settings):
    """Methods x ratios x seeds."""

    methods: tuple[str, ...] = ("random", "semi_aum_cutoff", "semi_dual_beta")
    ratios: tuple[float, ...] = (0.3, 0.5, 0.7, 0.8, 0.9)
    seeds: tuple[int, ...] = (0, 1, 2)
    preset: str = "quick"
    epochs: int | None = None
    truth: str | None = None
    order: str = "cheap_first"
    same_annotation_budget: bool = False
    evidence: dict[str, Any] = field(default_factory=dict)
    study: str = ""


def submit_evaluation(project: Project, settings: EvaluationSettings) -> jobs.Job:
    return jobs.submit(project, "evaluate", settings.to_json(), pins={"pool": project.pool().hash})


@dataclass(frozen=True, eq=False)
class EvaluationRun:
    artifact: Artifact

    def trials(self) -> pd.DataFrame:
        return pd.read_parquet(self.artifact.path("trials.parquet"))


def partial_trials(job: jobs.Job) -> pd.DataFrame:
    path = job.work_folder / BOOK
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    return pd.DataFrame([json.loads(line) for line in lines], columns=list(COLUMNS))
