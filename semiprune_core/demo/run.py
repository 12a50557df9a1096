"""The demo: the whole pipeline on the bundled pool, from import to report, in one call.

Every stage first looks for its result, so an interrupted run resumes where it was. Nothing in the CSV files depends on
the time, a job's name or the folder: on one machine the same settings give the same bytes.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from semiprune_core import files, jobs, training
from semiprune_core.coresets import RATIOS, CoresetRequest, build_coresets
from semiprune_core.dynamics import DynamicsSettings, submit_dynamics
from semiprune_core.errors import InvalidDataError, WorkspaceError
from semiprune_core.evaluation import EvaluationRun, EvaluationSettings, submit_evaluation
from semiprune_core.exporting import Export, export_coreset, list_exports
from semiprune_core.exporting.verify import first_difference, verify
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import open_store
from semiprune_core.labeling.database import URL_VARIABLE
from semiprune_core.labeling.import_labels import take_reference
from semiprune_core.labeling.progress_report import progress as labeling_progress
from semiprune_core.learning.presets import ssl_preset
from semiprune_core.maps.embedding_map import MapSettings
from semiprune_core.methods import METHODS
from semiprune_core.progress import Progress
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.report import write_report
from semiprune_core.results import CoresetRun
from semiprune_core.settings import Settings
from semiprune_core.training import TrainSettings

TITLE, NAME = "Fashion demo", "fashion-demo"
SETTINGS, REPORT = "demo.json", "report.html"
ANNOTATOR = "demo"
SHORT_EVALUATION: dict[str, Any] = {
    "methods": ["random", "semi_aum_cutoff", "semi_dual_beta"],
    "ratios": [0.7, 0.9],
    "seeds": [0],
}
"""A first look within minutes. One seed proves nothing, so the report shows no spread."""


@dataclass(frozen=True, kw_only=True)
class DemoSettings(Settings):
    """What the demo does. ``ssl`` and ``dynamics`` hold changes to the presets.

    Everything is computed on the CPU, where the same seed gives the same bytes. ``evaluation`` holds the values of
    ``EvaluationSettings``; None skips the evaluation.
    """

    seed: int = 0
    fraction: float = 0.10
    algorithm: str = "fixmatch"
    preset: str = "quick"
    ssl: dict[str, Any] = field(default_factory=dict)
    dynamics: dict[str, Any] = field(default_factory=dict)
    map_method: str = "umap"
    methods: tuple[str, ...] = ("semi_aum_cutoff", "semi_dual_beta")
    ratios: tuple[float, ...] = RATIOS
    evaluation: dict[str, Any] | None = field(default_factory=lambda: dict(SHORT_EVALUATION))

    def check(self) -> None:
        if self.evaluation is not None:
            EvaluationSettings.from_json(self.evaluation)
        self.training()
        DynamicsSettings(pseudo="", preset=self.preset, training=self.dynamics, seeds=(self.seed,))
        MapSettings(method=self.map_method, seed=self.seed)
        for method in self.methods:
            METHODS[method]

    def training(self) -> TrainSettings:
        ssl = ssl_preset(self.preset, self.algorithm, **self.ssl)
        return TrainSettings(start=training.SCRATCH, ssl=ssl.to_json(), preset=self.preset, seed=self.seed)


@dataclass(frozen=True, eq=False)
class Walk:
    """What a stage is given. ``immediate`` runs its jobs in this process."""

    project: Project
    settings: DemoSettings
    progress: Progress
    immediate: bool = False


@dataclass(frozen=True)
class Stage:
    """``work`` makes what is missing and returns a few words about it; calling it again is safe."""

    key: str
    title: str
    work: Callable[[Walk], str]


@dataclass(frozen=True)
class StageDone:
    stage: Stage
    words: str
    seconds: float


@dataclass(frozen=True, eq=False)
class DemoResult:
    """A finished demo: where its files are."""

    project: Project
    exports: tuple[Export, ...]
    report: Path
    stages: tuple[StageDone, ...]


Begin = Callable[[Stage, int, int], Progress]
"""Called before each stage with the stage, its number from 1 and their count; returns its progress watcher."""


def claim_folder(out: Path, settings: DemoSettings) -> Workspace:
    """Open a demo's folder as a workspace: a new or empty folder, or one where the same demo was started."""
    note = out / SETTINGS
    if note.is_file():
        earlier = DemoSettings.from_json(files.read_json(note))
        for name, value in settings.to_json().items():
            if (was := getattr(earlier, name)) != value:
                raise WorkspaceError(
                    f"{out} holds a demo with another {name} ({was}). Choose another folder with --out, or "
                    "delete that one.",
                    code="DEMO_EXISTS",
                )
        return Workspace.open(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise WorkspaceError(
            f"{out} already exists and holds no demo; nothing in it was touched. Choose a new folder with --out.",
            code="FOLDER_TAKEN",
        )
    workspace = Workspace.open(out)
    files.write_json(note, settings.to_json())
    return workspace


def run_demo(workspace: Workspace, settings: DemoSettings, begin: Begin, *, immediate: bool = False) -> DemoResult:
    """Run every stage, reusing what an earlier call has done. A stopped demo can be resumed.

    The folder is self-contained: its labels lie in it even where a shared database is configured.
    """
    os.environ.pop(URL_VARIABLE, None)  # for this process and its jobs
    project = workspace.project(NAME) if NAME in workspace else workspace.create(TITLE, name=NAME)
    stages = [stage for stage in STAGES if stage.key != "evaluate" or settings.evaluation is not None]
    done = []
    for number, stage in enumerate(stages, start=1):
        progress = begin(stage, number, len(stages))
        started = time.monotonic()
        words = stage.work(Walk(workspace.project(project.name), settings, progress, immediate))
        done.append(StageDone(stage, words, time.monotonic() - started))
    ids = [artifact.id for artifact in project.artifacts("coreset")]
    exports = sorted(list_exports(project), key=lambda export: ids.index(export.manifest["coreset"]))
    return DemoResult(workspace.project(project.name), tuple(exports), workspace.root / REPORT, tuple(done))


# --- the stages ------------------------------------------------------------------------------------------------------


def _import(walk: Walk) -> str:
    if not walk.project.has_pool():
        import_source(walk.project, ImportSettings(source=SourceSpec("demo").to_json()), walk.progress)
    project = walk.project.workspace.project(walk.project.name)
    return f"{len(project.pool()):,} images to prune, {len(project.test_set()):,} for testing"


def _draw(walk: Walk) -> str:
    store, pool = open_store(walk.project), walk.project.pool()
    drawing = store.drawings.latest() or store.drawings.draw(
        pool_hash=pool.hash,
        ids=pool.ids,
        duplicate_of=pool.duplicate_of,
        fraction=walk.settings.fraction,
        seed=walk.settings.seed,
        annotator=ANNOTATOR,
    )
    if not labeling_progress(store).complete:
        take_reference(store, pool, progress=walk.progress)
    return f"{len(drawing):,} images drawn at random and labeled from the reference labels"


def _train(walk: Walk) -> str:
    if walk.project.latest("pseudo") is None:
        _job(walk, "ssl", lambda: training.start_training(walk.project, walk.settings.training(), **_place(walk)))
    facts = _artifact(walk, "pseudo").facts
    share = facts["quality"] and facts["quality"]["accuracy"]
    words = f"{facts['n_images']:,} pseudo-labels"
    if share:
        words += f", {share['value']:.1%} right on held-out labels ({share['low']:.1%} to {share['high']:.1%})"
    return words


def _dynamics(walk: Walk) -> str:
    if walk.project.latest("scores") is None:
        settings = walk.settings
        _job(
            walk,
            "dynamics",
            lambda: submit_dynamics(
                walk.project, preset=settings.preset, seeds=(settings.seed,), **_place(walk), **settings.dynamics
            ),
        )
    artifact = _artifact(walk, "scores")
    return f"{', '.join(artifact.facts['scores'])} over {artifact.facts['n_epochs']} epochs"


def _map(walk: Walk) -> str:
    settings = MapSettings(method=walk.settings.map_method, seed=walk.settings.seed)
    if not any(dict(artifact.settings) == settings.to_json() for artifact in walk.project.artifacts("map")):
        immediate = walk.immediate
        _job(walk, "map", lambda: jobs.submit(walk.project, "map", settings.to_json(), immediate=immediate))
    return f"{_artifact(walk, 'map').facts['n_placed']:,} images placed"


def _select(walk: Walk) -> str:
    runs: list[CoresetRun] = []
    for number, method in enumerate(walk.settings.methods, start=1):
        request = CoresetRequest(method=method, seed=walk.settings.seed)
        runs += build_coresets(walk.project, request, walk.settings.ratios)
        walk.progress.report(number, len(walk.settings.methods), unit="methods")
    sizes = [int(run.artifact.facts["n_kept"]) for run in runs]
    return f"{len(runs)} coresets of {min(sizes):,} to {max(sizes):,} images"


def _export(walk: Walk) -> str:
    runs = [CoresetRun(artifact) for artifact in walk.project.artifacts("coreset")]
    for number, run in enumerate(runs, start=1):
        export_coreset(walk.project, run, "csv")  # the same coreset gives the same files under the same names
        walk.progress.report(number, len(runs), unit="coresets")
    return f"{len(runs)} CSV files, each with a table of all images and a manifest"


def _verify(walk: Walk) -> str:
    checks = verify(walk.project.folder, walk.progress)
    if difference := first_difference(checks):
        raise InvalidDataError(f"The demo does not verify: {difference}. Delete its folder and run it again.")
    return f"{len(checks)} of {len(checks)} are as they were written"


def _evaluate(walk: Walk) -> str:
    if walk.project.latest("evaluation") is None:
        settings = EvaluationSettings.from_json(walk.settings.evaluation or {})
        _job(walk, "evaluate", lambda: submit_evaluation(walk.project, settings, **_place(walk)))
    return f"{len(EvaluationRun(_artifact(walk, 'evaluation')).trials()):,} runs on coresets tested"


def _report(walk: Walk) -> str:
    path = write_report(walk.project, walk.progress)
    final = walk.project.workspace.root / REPORT
    with open(path, "rb") as source, files.open_atomic(final) as file:
        shutil.copyfileobj(source, file)
    return final.name


STAGES = (
    Stage("pool", "Import the bundled pool", _import),
    Stage("label", "Draw 10% and take its reference labels", _draw),
    Stage("train", "Train on the labeled and the unlabeled images", _train),
    Stage("scores", "Train on the pseudo-labels and score every image", _dynamics),
    Stage("map", "Map similar images", _map),
    Stage("select", "Select coresets", _select),
    Stage("evaluate", "Train on coresets and test", _evaluate),
    Stage("export", "Write the CSV files", _export),
    Stage("verify", "Verify everything", _verify),
    Stage("report", "Write the report", _report),
)


def _place(walk: Walk) -> dict[str, Any]:
    return {"device": "cpu", "immediate": walk.immediate}


def _artifact(walk: Walk, kind: str) -> Any:
    artifact = walk.project.latest(kind)
    if artifact is None:
        raise WorkspaceError(f"The demo made no {kind} artifact. Delete its folder and run it again.")
    return artifact


def _job(walk: Walk, kind: str, submit: Callable[[], jobs.Job]) -> None:
    """Follow the stage's job to its end: the running one, the interrupted one, or a new one."""
    job = next(iter(jobs.list_jobs(walk.project, kind)), None)
    if job is None or job.status().state == jobs.DONE:
        job = submit()
    elif job.status().is_resumable:
        training.resume(job)
    jobs.follow(job, walk.progress)
