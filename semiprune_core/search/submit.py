"""A search before it runs: its settings, how much it would do, and its way into the queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from semiprune_core import jobs
from semiprune_core.dynamics import usual_training
from semiprune_core.errors import InvalidSettingError
from semiprune_core.labeling import open_store
from semiprune_core.learning import machine
from semiprune_core.methods import METHODS
from semiprune_core.project.workspace import Project
from semiprune_core.records import coreset_size
from semiprune_core.results import ScoreRun, TrajectoryRun, check_same_pool, made_from
from semiprune_core.results.features import latest_features
from semiprune_core.results.score_source import ScoreSource, labels_behind, open_score_source, score_source_for
from semiprune_core.results.search import FINETUNE, KIND, PROBE, SearchSettings
from semiprune_core.search.grid import grid_of
from semiprune_core.training import SCRATCH, keep_snapshot
from semiprune_core.trials.alike import pin_features
from semiprune_core.trials.kinds import PROBE_SECONDS, PROBED_PER_SECOND, usual_test

PROBE_SEEDS = 5


@dataclass(frozen=True)
class Plan:
    """How much a search would do: so many trials, training on so many images, every epoch counted."""

    n_trials: int
    n_images: int
    seconds: float | None
    """None where this machine's speed is not known yet."""


def plan_search(project: Project, settings: SearchSettings, source: ScoreSource | None = None) -> Plan:
    source = source or _opened(project, settings)
    n_images = int(source.artifact.facts["n_images"])
    trials = grid_of(settings, source).trials()
    n_chosen_from = n_images - max(1, round(settings.validation * n_images))
    if settings.test == PROBE:
        total = sum(coreset_size(n_chosen_from, trial.pruning_ratio) for trial in trials)
        return Plan(len(trials), total, len(trials) * PROBE_SECONDS + total / PROBED_PER_SECOND)
    training = settings.supervised()
    total = sum(training.images_seen(n_chosen_from, trial.pruning_ratio) for trial in trials)
    speed = _known_speed(project)
    return Plan(len(trials), total, total / speed if speed else None)


def _opened(project: Project, settings: SearchSettings) -> ScoreSource:
    return (
        open_score_source(project, settings.scores) if settings.scores else score_source_for(project, settings.method)
    )


def _known_speed(project: Project) -> float | None:
    """Images per second of the last supervised training here."""
    for kind in ("dynamics", KIND):
        for job in jobs.list_jobs(project, kind):
            speed = job.status().facts.get("images_per_s")
            if speed:
                return float(speed)
    return None


def search_settings(
    project: Project,
    *,
    method: str = SearchSettings.method,
    source: ScoreSource | None = None,
    cheap: bool | None = None,
    preset: str | None = None,
    device: str = "auto",
    test: str | None = None,
    **values: Any,
) -> SearchSettings:
    """Settings for what ``method`` chooses by. A trial is a probe where the pool's features are there, with five seeds;
    else, or if asked, a net that is trained without a preset as the project's dynamics run was; cheap unless on a GPU.
    """
    source = source or score_source_for(project, method)
    test = test or usual_test(project)
    if test == PROBE:
        values.setdefault("seeds", tuple(range(PROBE_SEEDS)))
    training: dict[str, Any] = {}
    if preset is None:
        preset, training = ("quick", {}) if test == FINETUNE else _as_scored(project, source)
    if cheap is None:
        cheap = machine.devices_for(device) == "cpu"
    training |= values.pop("training", {})
    return SearchSettings(
        method=method, preset=preset, training=training, cheap=cheap, scores=source.artifact.id, test=test, **values
    )


def _as_scored(project: Project, source: ScoreSource) -> tuple[str, dict[str, Any]]:
    """Preset and changes of the run behind the scores; others are trained like the project's own."""
    if isinstance(source, ScoreRun):
        run = TrajectoryRun(project.artifact(source.trajectory_ids[0]))
        if run.start == SCRATCH:
            return run.artifact.settings.get("preset", "quick"), dict(run.artifact.settings.get("training", {}))
    return usual_training(project)


def submit_search(
    project: Project,
    settings: SearchSettings | None = None,
    *,
    device: str = "auto",
    immediate: bool = False,
    **values: Any,
) -> jobs.Job:
    """Queue a search; the job pins what it chooses by, the pseudo-labels and the pool by content hash.

    ``values`` are those of :func:`search_settings`, where no ``settings`` are given.
    """
    settings = settings or search_settings(project, device=device, **values)
    source, pool = open_score_source(project, settings.scores), project.pool()
    check_same_pool(source.artifact, pool)
    _, n_classes = labels_behind(project, source)
    n_left = len(pool) - round(settings.validation * len(pool))
    for ratio in settings.ratios:
        if coreset_size(n_left, ratio) < n_classes:
            raise InvalidSettingError(
                f"Pruning ratio {ratio:g} leaves {coreset_size(n_left, ratio)} images for {n_classes} classes. "
                "Search at smaller ratios."
            )
    pins = {"scores": source.artifact.hash, "pool": pool.hash}
    snapshot = open_store(project).snapshot()
    if len(snapshot.final_ids):
        keep_snapshot(project, snapshot)
        pins["labels"] = snapshot.hash
    if settings.test == PROBE:
        latest_features(project)  # refused where there are none
    pins |= pin_features(project)
    if isinstance(source, ScoreRun):
        pins["pseudo"] = made_from(project, source.artifact, "pseudo").hash
    return jobs.submit(
        project,
        KIND,
        settings.to_json(),
        title=f"Search for {METHODS.title(settings.method)}",
        device=machine.devices_for(device),
        pins=pins,
        immediate=immediate,
    )
