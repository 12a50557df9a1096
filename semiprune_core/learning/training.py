"""Training runs as pages and the command line see them: what would be learned from, starting, listing, deleting.

Nothing here loads torch: the work itself is the job kind ``ssl``, in a process of its own.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import shutil
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from semiprune_core import files
from semiprune_core.artifacts import Artifact
from semiprune_core.checks import check_range
from semiprune_core.errors import ConflictError, InvalidDataError, JobError, SemiPruneError, WorkspaceError
from semiprune_core.jobs import DONE, Job, JobStatus, list_jobs, submit
from semiprune_core.labeling import open_store
from semiprune_core.labeling.drawing import FEW_LABELS
from semiprune_core.labeling.settled import LabelsSnapshot
from semiprune_core.learning import machine
from semiprune_core.learning.labels import check_labels
from semiprune_core.learning.presets import SSL_PRESETS
from semiprune_core.learning.quality import held_out_count
from semiprune_core.learning.settings import SSLSettings
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.pool import Pool
from semiprune_core.records import UNLABELED, BoolArray, IntArray
from semiprune_core.settings import Settings
from semiprune_core.workspace import Project

KIND = "ssl"
TRIAL = "preflight"
ARTIFACT = "pseudo"
SNAPSHOTS = "snapshots"
CUSTOM = "custom"
"""The preset's name where the settings come from nowhere else."""
HASHED_BYTES = 2 << 30
"""Training caches up to this size are checked by content before a run, larger ones by their size alone."""


@dataclass(frozen=True, kw_only=True)
class TrainSettings(Settings):
    """What a job of the kind ``ssl`` is given. ``ssl`` are the values of :class:`SSLSettings`."""

    ssl: dict[str, Any] = field(default_factory=dict)
    preset: str = CUSTOM
    seed: int = 0

    def check(self) -> None:
        check_range("seed", self.seed, low=0, high=2**31 - 1)
        SSLSettings.from_json(self.ssl)

    @property
    def training(self) -> SSLSettings:
        return SSLSettings.from_json(self.ssl)

    def flat(self) -> dict[str, Any]:
        """All settings in one level, as an artifact keeps them and a table shows them."""
        return {**self.training.to_json(), "preset": self.preset, "seed": self.seed}


# --- labels --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PoolLabels:
    """A label snapshot laid on a pool, all (N,): ``human`` labels of every copy of a picture, -1 for none;
    ``learned`` those of its first copy only, so that no held-out picture is trained on under another path;
    ``measurable_mask`` the learned ones that were drawn uniformly and labeled without a suggestion.
    """

    human: IntArray
    learned: IntArray
    measurable_mask: BoolArray


def labels_on_pool(snapshot: LabelsSnapshot, pool: Pool) -> PoolLabels:
    human, uniform = snapshot.on_pool(pool.ids, pool.duplicate_of)
    first = pool.duplicate_of == np.arange(len(pool))
    return PoolLabels(human, np.where(first, human, UNLABELED), uniform & first & (human != UNLABELED))


def reference_on(class_names: Sequence[str], pool: Pool) -> IntArray:
    """(N,) the pool's reference labels as indices into ``class_names``; -1 where there is none of that name."""
    number = {name: index for index, name in enumerate(class_names)}
    codes = np.array([number.get(name, UNLABELED) for name in pool.class_names] + [UNLABELED])
    return codes[pool.reference_labels]


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What a run that starts now would learn from. ``problem`` says why it cannot, None where it can."""

    snapshot: LabelsSnapshot
    n_images: int
    per_class: dict[str, int]
    n_measurable: int
    n_reference: int
    problem: str | None

    @property
    def n_labels(self) -> int:
        """Labeled pictures; copies of one picture count once."""
        return sum(self.per_class.values())

    @property
    def thin_classes(self) -> tuple[str, ...]:
        """Classes with so few labels that little can be learned of them."""
        return tuple(name for name, count in self.per_class.items() if 0 < count < FEW_LABELS)

    def n_held_out(self, settings: SSLSettings) -> int:
        """How many labels a run with these settings measures itself on."""
        if settings.cross_fit > 1:
            return self.n_measurable
        return held_out_count(self.n_measurable, settings.held_out)


def training_data(project: Project, pool: Pool | None = None) -> TrainingData:
    pool = pool or project.pool()
    snapshot = open_store(project).snapshot()
    labels = labels_on_pool(snapshot, pool)
    names = snapshot.class_names
    known = labels.learned[labels.learned >= 0]
    counts = np.bincount(known, minlength=len(names)).tolist()
    problem = None
    try:
        check_labels(labels.learned, len(pool), names)
    except SemiPruneError as error:
        problem = str(error)
    reference = reference_on(names, pool)
    return TrainingData(
        snapshot=snapshot,
        n_images=len(pool),
        per_class=dict(zip(names, counts)),
        n_measurable=int(labels.measurable_mask.sum()),
        n_reference=int(((reference >= 0) & (labels.human < 0)).sum()),
        problem=problem,
    )


def keep_snapshot(project: Project, snapshot: LabelsSnapshot) -> Path:
    """Write a snapshot under its hash, once; a run that is started on it finds it there however long it waits."""
    path = snapshot_path(project, snapshot.hash)
    if not path.is_file():
        with files.named_disk_errors(path):
            path.parent.mkdir(exist_ok=True)
        files.write_bytes(path, snapshot_bytes(snapshot))
    return path


def snapshot_path(project: Project, snapshot_hash: str) -> Path:
    return project.folder / SNAPSHOTS / f"{snapshot_hash}.npz"


def snapshot_bytes(snapshot: LabelsSnapshot) -> bytes:
    data = io.BytesIO()
    names = np.frombuffer(json.dumps(snapshot.class_names).encode("ascii"), dtype=np.uint8)
    np.savez(data, ids=snapshot.ids, labels=snapshot.labels, uniform_mask=snapshot.uniform_mask, class_names=names)
    return data.getvalue()


def read_snapshot(path: Path, snapshot_hash: str) -> LabelsSnapshot:
    """The snapshot of a file; one that is missing, damaged or another one is refused."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            names = tuple(json.loads(arrays["class_names"].tobytes()))
            found = LabelsSnapshot(arrays["ids"], arrays["labels"], arrays["uniform_mask"], names)
    except FileNotFoundError:
        raise WorkspaceError(
            f"The labels that this run was started on are missing: {path}. Start a new run.", code="LABELS_MISSING"
        ) from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise WorkspaceError(f"{path} is damaged ({error}). Start a new run.", code="LABELS_DAMAGED") from error
    if found.hash != snapshot_hash:
        raise WorkspaceError(
            f"{path} holds other labels than this run was started on. Start a new run.", code="LABELS_CHANGED"
        )
    return found


@dataclass(frozen=True)
class LabelChange:
    """How labels differ from those of an earlier snapshot."""

    added: int
    changed: int
    removed: int
    classes_changed: bool

    @property
    def sentence(self) -> str:
        said = [f"{n:,} {word}" for n, word in ((self.added, "new"), (self.changed, "changed"), (self.removed, "gone"))]
        said = [words for words in said if not words.startswith("0 ")]
        if said:
            return f"Labels changed since this run: {', '.join(said)}."
        return "The classes changed since this run." if self.classes_changed else "The labels changed since this run."


def changes_since(project: Project, snapshot_hash: str, now: LabelsSnapshot) -> LabelChange | None:
    """What changed since the snapshot with this hash; None where nothing did."""
    if snapshot_hash == now.hash:
        return None
    try:
        before = read_snapshot(snapshot_path(project, snapshot_hash), snapshot_hash)
    except WorkspaceError:
        return LabelChange(0, 0, 0, False)
    both, place_before, place_now = np.intersect1d(before.ids, now.ids, assume_unique=True, return_indices=True)
    then = np.array(before.class_names, dtype=object)[before.labels[place_before]]
    today = np.array(now.class_names, dtype=object)[now.labels[place_now]]
    return LabelChange(
        added=len(now.ids) - len(both),
        changed=int((then != today).sum()),
        removed=len(before.ids) - len(both),
        classes_changed=before.class_names != now.class_names,
    )


def check_pool(pool: Pool, pinned: str) -> None:
    """Refuse a pool that is not the one the run was started on, or whose training cache is gone or changed."""
    if pool.hash != pinned:
        raise InvalidDataError(
            "The pool changed since this run was started: images were added or removed. Start a new run.",
            code="POOL_CHANGED",
        )
    for segment in pool.segments:
        path, entry = segment.artifact.path("images.npy"), segment.artifact.manifest["files"]["images.npy"]
        if not path.is_file():
            raise WorkspaceError(
                f"The training cache {path} is missing. Restore it from a backup, or import the pool anew.",
                code="CACHE_MISSING",
            )
        same = path.stat().st_size == entry["bytes"]
        if same and entry["bytes"] <= HASHED_BYTES:
            same = files.sha256_file(path) == entry["sha256"]
        if not same:
            raise WorkspaceError(
                f"The training cache {path} was changed since the import. "
                "Restore it from a backup, or import the pool anew.",
                code="CACHE_CHANGED",
            )


# --- runs ----------------------------------------------------------------------------------------------------------


def start_training(
    project: Project, settings: TrainSettings, *, device: str = "auto", nproc: int = 1, immediate: bool = False
) -> Job:
    """Pin the pool and the labels as they are now and put the run into the queue of its device."""
    pool = project.pool()
    data = training_data(project, pool)
    if data.problem:
        raise InvalidDataError(data.problem, code="LABELS")
    training = settings.training
    check_range("nproc", nproc, low=1)
    if training.batch_size % nproc:
        raise InvalidDataError(
            f"A batch of {training.batch_size} cannot be shared equally by {nproc} processes. "
            f"Choose a batch size that is a multiple of {nproc}."
        )
    check_pool(pool, pool.hash)
    for trial in list_jobs(project, TRIAL):
        trial.stop()  # nobody needs to know any more how long it would take
    keep_snapshot(project, data.snapshot)
    return submit(
        project,
        KIND,
        settings.to_json(),
        title=title_of(settings),
        device=machine.places(device, nproc),
        pins={"pool": pool.hash, "labels": data.snapshot.hash},
        nproc=nproc,
        immediate=immediate,
    )


def title_of(settings: TrainSettings) -> str:
    preset = SSL_PRESETS.title(settings.preset) if settings.preset in SSL_PRESETS else settings.preset
    return f"{ALGORITHMS.title(settings.training.algorithm)}, {preset}, seed {settings.seed}"


@dataclass(frozen=True, eq=False)
class Run:
    """One run: its job, its artifact, or both. A deleted job leaves the artifact, a failed one never had any."""

    job: Job | None
    artifact: Artifact | None

    @property
    def id(self) -> str:
        return self.artifact.id if self.artifact is not None else str(self.job and self.job.id)

    @cached_property
    def status(self) -> JobStatus:
        return self.job.status() if self.job is not None else JobStatus(state=DONE)

    @property
    def settings(self) -> TrainSettings:
        if self.job is not None:
            return _remembered(**self.job.settings)
        assert self.artifact is not None
        values = dict(self.artifact.settings)
        return _remembered(preset=values.pop("preset"), seed=values.pop("seed"), ssl=values)

    @property
    def title(self) -> str:
        return title_of(self.settings)

    @property
    def labels_hash(self) -> str:
        if self.artifact is not None:
            return self.artifact.inputs["labels"]
        assert self.job is not None
        return self.job.pins["labels"]

    @property
    def created(self) -> str:
        return self.job.created if self.job is not None else str(self.artifact and self.artifact.manifest["created"])

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.artifact.facts if self.artifact is not None else {}

    @property
    def seconds(self) -> float | None:
        return self.facts.get("seconds", self.status.seconds)


def _remembered(ssl: Mapping[str, Any], preset: str, seed: int) -> TrainSettings:
    """The settings of a run that may be older than this version: what it no longer knows is left out."""
    known = {field.name for field in dataclasses.fields(SSLSettings)}
    return TrainSettings(ssl={name: ssl[name] for name in ssl if name in known}, preset=preset, seed=seed)


def list_runs(project: Project) -> list[Run]:
    """Every training run, newest first."""
    artifacts = {artifact.facts.get("job", artifact.id): artifact for artifact in project.artifacts(ARTIFACT)}
    runs = [Run(job, artifacts.pop(job.id, None)) for job in list_jobs(project, KIND)]
    runs += [Run(None, artifact) for artifact in artifacts.values()]
    return sorted(runs, key=lambda run: run.created, reverse=True)


def resume(job: Job, *, seconds: float = 30.0) -> JobStatus:
    """Resume, waiting for a process that has said its last word and is still unloading torch."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return job.resume()
        except JobError as error:
            if error.code != "JOB_BUSY" or not job.status().is_resumable or time.monotonic() > deadline:
                raise


def delete_run(project: Project, run: Run) -> None:
    """Remove a run's folder and its artifact; refused while it runs or while something was made from it."""
    if run.artifact is not None:
        users = [other.id for other in project.artifacts() if run.artifact.hash in other.inputs.values()]
        if users:
            raise ConflictError(
                f"{run.artifact.id} cannot be deleted: {', '.join(users[:5])} was made from it. Delete that first.",
                code="IN_USE",
            )
    if run.job is not None:
        run.job.delete()
    if run.artifact is not None:
        aside = run.artifact.folder.with_name(f".{run.artifact.id}.deleted")
        os.replace(run.artifact.folder, aside)  # nobody sees half an artifact
        shutil.rmtree(aside)


def trained_seconds(job: Job) -> float:
    """How long the run has worked, all its attempts together."""
    spans: dict[int, list[float]] = {}
    for line in job.progress():
        span = spans.setdefault(line["attempt"], [line["time"], line["time"]])
        span[1] = line["time"]
    return sum(end - begin for begin, end in spans.values())


# --- curves --------------------------------------------------------------------------------------------------------

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
    kept: list[Mapping[str, Any]] = []
    attempt = None
    for line in reports:
        if line.get("attempt") != attempt:
            attempt = line.get("attempt")
            while kept and kept[-1][step_key] >= line[step_key]:
                kept.pop()
        kept.append(line)
    lines = {name: _thin([(line[step_key], line[name]) for line in kept if _has(line, name)], limit) for name in DRAWN}
    checks = {
        name: [
            (line[step_key], line[f"{name}_accuracy"], *line[f"{name}_interval"])
            for line in kept
            if _has(line, f"{name}_accuracy")
        ]
        for name in CHECKED
    }
    counts = [(line[step_key], line["class_counts"]) for line in kept if _has(line, "class_counts")]
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


def class_names_of(job: Job) -> tuple[str, ...]:
    """The classes a run was started with; empty where its labels cannot be read any more."""
    try:
        wanted = job.pins["labels"]
        return read_snapshot(snapshot_path(job.project, wanted), wanted).class_names
    except SemiPruneError:
        return ()


def side_by_side(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Every setting by name, with its value in each run ("" where a run does not have it); options as own names."""
    rows = []
    for run in runs:
        values = run.settings.flat()
        options = run.settings.training.make_algorithm().to_json()
        values.pop("options")
        rows.append({**values, **{f"options.{name}": value for name, value in options.items()}})
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name, "") for row in rows] for name in names}
