"""A training run as curves: what its progress lines and its history say, step by step."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from semiprune_core import files
from semiprune_core.training.runs import Run

Drawn = Literal["loss", "supervised_loss", "unsupervised_loss", "mask_share", "lr", "images_per_s"]
DRAWN: tuple[Drawn, ...] = ("loss", "supervised_loss", "unsupervised_loss", "mask_share", "lr", "images_per_s")
CHECKED = ("held_out", "reference")


@dataclass(frozen=True)
class Curves:
    """A run as it went: (step, value) points of ``lines`` by name, (step, accuracy, low, high) of ``checks``,
    and the pseudo-label counts (C,) of each epoch, in order of steps.
    """

    lines: dict[str, list[tuple[int, float]]]
    checks: dict[str, list[tuple[int, float, float, float]]]
    class_counts: list[tuple[int, list[int]]]

    @property
    def is_empty(self) -> bool:
        return not any(self.lines.values()) and not any(self.checks.values())


def curves(reports: Sequence[Mapping[str, Any]], *, step_key: str = "done", limit: int = 500) -> Curves:
    """The curves of a job's progress lines; what an interrupted attempt did after its checkpoint is left out."""
    reported: list[Mapping[str, Any]] = []
    attempt = None
    for line in reports:
        if not any(_has(line, name) for name in (*DRAWN, "epoch")):  # maybe another stage, which counts other things
            continue
        if line.get("attempt") != attempt:
            attempt = line.get("attempt")
            while reported and reported[-1][step_key] >= line[step_key]:
                reported.pop()
        reported.append(line)
    lines: dict[str, list[Any]] = {
        name: _thin([(line[step_key], line[name]) for line in reported if _has(line, name)], limit) for name in DRAWN
    }
    checks = {
        name: [
            (line[step_key], line[f"{name}_accuracy"], *line[f"{name}_interval"])
            for line in reported
            if _has(line, f"{name}_accuracy")
        ]
        for name in CHECKED
    }
    counts = [(line[step_key], line["class_counts"]) for line in reported if _has(line, "class_counts")]
    return Curves(lines, {name: _thin(points, limit) for name, points in checks.items()}, counts)


def run_curves(run: Run) -> Curves:
    """The curves of a run: its progress lines, and the measurements of every epoch where it left an artifact."""
    told = curves(run.job.progress()) if run.job is not None else None
    if run.artifact is None:
        return told or curves([])
    history = curves(files.read_json(run.artifact.path("history.json")), step_key="step")
    return dataclasses.replace(history, lines=told.lines) if told and any(told.lines.values()) else history


def _has(line: Mapping[str, Any], name: str) -> bool:
    return line.get(name) is not None


def _thin(points: list[Any], limit: int) -> list[Any]:
    """At most ``limit`` of the points, evenly chosen, the last one always."""
    if len(points) <= limit:
        return points
    return [points[i] for i in np.linspace(0, len(points) - 1, limit).round().astype(int)]
