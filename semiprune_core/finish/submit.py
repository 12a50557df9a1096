"""Finish before it runs: its settings, whether it can begin, and its way into the queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from semiprune_core import files, jobs
from semiprune_core.checks import check_range
from semiprune_core.coresets import RATIOS
from semiprune_core.errors import InvalidDataError, InvalidSettingError
from semiprune_core.learning.presets import ssl_preset
from semiprune_core.methods import METHODS
from semiprune_core.project.workspace import Project
from semiprune_core.settings import Settings
from semiprune_core.training import TrainSettings, training_data

KIND = "finish"
HURRY = "features"
"""The file in a run's folder that says so."""
STAGES = {
    "learn": "Learn",
    "score": "Score",
    "search": "Search",
    "select": "Select",
    "map": "Map",
    "report": "Report",
}
"""What a run does, in order, and its name for people."""
PRESET = "quick"
BUDGET = 60.0
"""Seconds for learning. Where features do badly a net is trained all the same, however long it takes."""


@dataclass(frozen=True, kw_only=True)
class FinishSettings(Settings):
    """``training`` holds what differs from the default of :class:`TrainSettings`; the rest is about the coresets."""

    training: dict[str, Any] = field(default_factory=dict)
    methods: tuple[str, ...] = ("semi_aum_cutoff", "semi_dual_beta")
    ratios: tuple[float, ...] = RATIOS
    search_seeds: tuple[int, ...] = (0, 1)
    """Each candidate of the search is tried so many times; the Select page offers a longer search."""
    map_method: str = "umap"
    seed: int = 0
    device: str = "auto"

    def check(self) -> None:
        self.train_settings()
        for method in self.methods:
            METHODS[method]
        if not self.methods or not self.ratios:
            raise InvalidSettingError("Name at least one method and one pruning ratio.")
        for ratio in self.ratios:
            check_range("ratios", ratio, low=0, high=1, low_open=True, high_open=True)
        check_range("seed", self.seed, low=0, high=2**31 - 1)

    def train_settings(self) -> TrainSettings:
        defaults = {"ssl": ssl_preset(PRESET).to_json(), "preset": PRESET, "seed": self.seed, "budget": BUDGET}
        return TrainSettings.from_json({**TrainSettings().to_json(), **defaults, **self.training})


def why_not(project: Project) -> str | None:
    """Why a project cannot be finished yet, in a sentence; None where it can."""
    if not project.has_pool():
        return "There are no images yet. Import some on the Pool page."
    return training_data(project, project.pool()).problem or None


def submit_finish(project: Project, settings: FinishSettings | None = None, *, immediate: bool = False) -> jobs.Job:
    """Queue the run; the one under way, where there is one."""
    under_way = next((job for job in finish_runs(project) if not job.status().is_over), None)
    if under_way is not None:
        return under_way
    if problem := why_not(project):
        raise InvalidDataError(problem, code="LABELS")
    return jobs.submit(project, KIND, (settings or FinishSettings()).to_json(), immediate=immediate)


def go_on_with_features(job: jobs.Job) -> None:
    """Do not wait for a net from scratch that Auto tries beside features: take these, and go on."""
    job.work_folder.mkdir(parents=True, exist_ok=True)
    files.write_bytes(job.work_folder / HURRY, b"")


def goes_on_with_features(job: jobs.Job) -> bool:
    return (job.work_folder / HURRY).exists()


def finish_runs(project: Project) -> list[jobs.Job]:
    """Every run, newest first."""
    return jobs.list_jobs(project, KIND)
