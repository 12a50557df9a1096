"""Bring a project up to date: everything that is out of date is made again, in order, with the settings it had.

The job ``refresh`` (in ``refresh.job``) carries the whole chain. Training, dynamics and maps stay jobs of their own
kind, started one after the other, so that their pages show them, they take their turn on their device, and each
resumes from its own checkpoint; scores and coresets are made in moments between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from semiprune_core import jobs
from semiprune_core.checks import check_choice
from semiprune_core.coresets import CoresetRequest, kept_options, setting_of, tuned_knobs
from semiprune_core.dynamics import DynamicsSettings
from semiprune_core.errors import InvalidDataError, MissingStepError, SemiPruneError
from semiprune_core.methods import open_knobs
from semiprune_core.project.artifacts import Artifact
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.refresh.freshness import WORDS, out_of_date
from semiprune_core.results import CoresetRun, ScoreRun, made_from
from semiprune_core.scores import ScoreSettings
from semiprune_core.settings import Settings
from semiprune_core.training import TrainSettings

KIND = "refresh"
STEPS = ("pseudo", "trajectory", "scores", "coreset", "map")
JOB_KIND = {"pseudo": "ssl", "trajectory": "dynamics", "map": "map"}
"""The steps that are jobs of their own."""


@dataclass(frozen=True, kw_only=True)
class RefreshSettings(Settings):
    """``before`` names for each step the artifact whose settings are repeated, ``coresets`` all that are rebuilt."""

    steps: tuple[str, ...]
    before: dict[str, str]
    coresets: tuple[str, ...] = ()

    def check(self) -> None:
        for step in self.steps:
            check_choice("step", step, STEPS)
            if step not in self.before:
                raise InvalidDataError(f"Nothing is named to repeat for the step '{step}'.")


def plan(project: Project, pool: Pool | None = None) -> RefreshSettings | None:
    """What must be made again, in order; None where everything is up to date.

    Of the coresets all are rebuilt that stand on the same pseudo-labels as the newest one, each request once.
    """
    stale = {result.artifact.kind: result.artifact for result in out_of_date(project, pool)}
    if not stale:
        return None
    steps = tuple(kind for kind in STEPS if kind in stale)
    coresets = _to_rebuild(project, stale["coreset"]) if "coreset" in stale else ()
    return RefreshSettings(steps=steps, before={kind: stale[kind].id for kind in steps}, coresets=coresets)


def _to_rebuild(project: Project, newest: Artifact) -> tuple[str, ...]:
    newest_of: dict[str, str] = {}
    for artifact in project.artifacts("coreset"):
        if artifact.inputs.get("pseudo") == newest.inputs.get("pseudo"):
            request = str(request_of(project, CoresetRun(artifact)).to_json())
            newest_of.pop(request, None)  # the last of equal ones gives the place: the newest stays the newest
            newest_of[request] = artifact.id
    return tuple(newest_of.values())


def bring_up_to_date(project: Project, pool: Pool | None = None, *, immediate: bool = False) -> jobs.Job:
    """Queue the job that makes everything again that is out of date; the one under way, where there is one."""
    under_way = running(project)
    if under_way is not None:
        return under_way
    settings = plan(project, pool)
    if settings is None:
        raise MissingStepError("Everything is up to date.")
    _repeatable(project, settings)
    return jobs.submit(project, KIND, settings.to_json(), immediate=immediate)


def running(project: Project) -> jobs.Job | None:
    """The refresh that is queued or running."""
    return next((job for job in jobs.list_jobs(project, KIND) if not job.status().is_over), None)


def _repeatable(project: Project, settings: RefreshSettings) -> None:
    """Refuse at once, and not in an hour, what cannot be repeated."""
    for step in settings.steps:
        if step in JOB_KIND:
            again(project, step, project.artifact(settings.before[step]))


# --- how each step was made --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Again:
    """What to submit to repeat a step: its settings, on as many processes and the same device as before."""

    settings: dict[str, Any]
    device: str = "auto"
    nproc: int = 1


def again(project: Project, step: str, artifact: Artifact) -> Again:
    """How ``artifact`` was made: from its job where that still exists, else from what the artifact itself says."""
    maker = jobs.job_behind(artifact)
    job = next((job for job in jobs.list_jobs(project, JOB_KIND[step]) if job.id == maker), None)
    try:
        if step == "map":
            return Again(dict(artifact.settings))
        if job is not None:
            return Again(dict(job.settings), job.devices[0] if step == "pseudo" else job.device, job.nproc)
        return Again(_train_settings(artifact) if step == "pseudo" else _dynamics_settings(project, artifact))
    except (SemiPruneError, KeyError, TypeError) as error:
        raise MissingStepError(
            f"{artifact.id} ({WORDS[step]}) cannot be repeated: its job was deleted. Start it again on its own page."
        ) from error


def _train_settings(artifact: Artifact) -> dict[str, Any]:
    return TrainSettings.from_flat(artifact.settings).to_json()


def _dynamics_settings(project: Project, artifact: Artifact) -> dict[str, Any]:
    settings = artifact.settings
    seeds = [past.manifest["seed"] for past in project.artifacts("trajectory") if _same_run(past, artifact)]
    pseudo = made_from(project, artifact, "pseudo")
    own = {name: settings[name] for name in ("start", "encoder", "preset") if name in settings}
    return DynamicsSettings(
        pseudo=pseudo.id, training=dict(settings["training"]), seeds=tuple(sorted(set(seeds))), **own
    ).to_json()


def _same_run(artifact: Artifact, other: Artifact) -> bool:
    run = jobs.job_behind(other)
    return artifact == other or (run is not None and jobs.job_behind(artifact) == run)


def siblings(project: Project, artifact: Artifact) -> list[Artifact]:
    """The trajectories of the run that made ``artifact``, one per seed."""
    return [past for past in project.artifacts("trajectory") if _same_run(past, artifact)]


def request_of(project: Project, run: CoresetRun) -> CoresetRequest:
    """The request that a coreset answers, with every knob as it was, whether it was given or the default then."""
    settings = run.artifact.settings
    request = CoresetRequest(
        method=settings["method"],
        pruning_ratio=float(settings["pruning_ratio"]),
        seed=int(run.artifact.manifest["seed"]),
        aim=run.aim,
        **kept_options(run),
    )
    names = [name for name in open_knobs(request.method) if name in settings["knobs"]]
    request = request.replace(**{name: settings["knobs"][name] for name in names})
    try:
        scores = ScoreRun(made_from(project, run.artifact, "scores"))
    except MissingStepError:
        return request
    score_settings = ScoreSettings.from_json(scores.artifact.settings)
    return request.replace(**{name: score_settings[setting_of(name)] for name in tuned_knobs()})
