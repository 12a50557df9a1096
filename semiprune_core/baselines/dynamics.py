"""A dynamics run for a baseline: the project's own training schedule on other labels, kept as evidence."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from semiprune_core import files, streams
from semiprune_core.dynamics import usual_training
from semiprune_core.dynamics.scoring import default_score_settings
from semiprune_core.embeddings.features import check_finite
from semiprune_core.errors import InvalidDataError
from semiprune_core.learning.frozen.prepare import Scaling
from semiprune_core.learning.head_run import HeadSettings, train_head
from semiprune_core.learning.presets import supervised_preset
from semiprune_core.learning.settings import SupervisedSettings
from semiprune_core.progress import InnerProgress, Progress
from semiprune_core.project.workspace import Project
from semiprune_core.records import IntArray
from semiprune_core.results import write_trajectory
from semiprune_core.results.evidence import EvidenceRun, find_evidence, open_evidence
from semiprune_core.results.features import latest_features
from semiprune_core.results.pseudo import FROZEN, SCRATCH
from semiprune_core.results.trajectory_store import TrajectoryWriter, open_trajectory
from semiprune_core.scores import ScoreSettings, ScoreTable, compute_scores
from semiprune_core.streams import Purpose

if TYPE_CHECKING:
    from semiprune_core.baselines.evidence import EvidenceRequest

PROVIDER = "dynamics"


Training = SupervisedSettings | HeadSettings
"""Of a net on images, or of a head on features."""


def training_of(project: Project, changes: Mapping[str, Any], start: str = SCRATCH) -> Training:
    """The training of the project's latest dynamics run from scratch, so that a comparison is fair, else ``quick``; or
    that of a head on features."""
    if start == FROZEN:
        return HeadSettings().replace(**changes)
    preset, stored = usual_training(project)
    base = SupervisedSettings.from_json(stored) if stored else supervised_preset(preset)
    return base.replace(**changes)


@dataclass(frozen=True)
class StageProgress(InnerProgress):
    """A progress that says which step of several this is."""

    name: str

    def report(self, done: int, total: int, /, **facts: Any) -> None:
        self.whole.report(done, total, **{"stage": self.name, "unit": "steps", **facts})


def dynamics_on(
    request: EvidenceRequest,
    labels: IntArray,
    *,
    n_classes: int,
    training: Training,
    of: str,
    inputs: Mapping[str, str],
) -> EvidenceRun:
    """Train on the images of the pool that have a label (>= 0) in ``labels`` (N,), recording their trajectory.

    ``of`` says in a word whose labels these are, ``inputs`` what they came from. The evidence holds the trajectory of
    the M labeled images, ``places.npy`` (M,), and ``features.npy`` (N, D) of the whole pool: the net's penultimate
    layer, or what the head stands on.
    """
    if isinstance(training, HeadSettings):
        return _head_on(request, labels, n_classes=n_classes, training=training, of=of, inputs=inputs)
    project = request.project
    pool = project.pool()
    identity = {"provider": PROVIDER, "of": of, "training": training.to_json(), "n_classes": n_classes}
    if stored := find_evidence(project, identity, inputs, request.seed):
        return stored
    places = _labeled(labels)

    from semiprune_core.learning.device import choose_device
    from semiprune_core.learning.images import Images
    from semiprune_core.learning.predict import predict
    from semiprune_core.learning.supervised_run import train_supervised

    device = choose_device(request.device)
    everything = pool.images()
    images = everything if len(places) == len(pool) else np.asarray(everything[places])
    with work_folder(request, of, identity, inputs) as folder:
        started = time.monotonic()
        result = train_supervised(
            images,
            labels[places],
            n_classes=n_classes,
            settings=training,
            seed=streams.derived(request.seed, Purpose.BASELINE_RUN),
            progress=StageProgress(request.progress, "training"),
            device=device,
            folder=folder / "checkpoints",
            record=TrajectoryWriter(folder / "trajectory", training.epochs, len(places)),
        )
        seen, whole = (Images(pixels, device) for pixels in (images, everything))
        whole.mean, whole.std = seen.mean, seen.std
        features = np.empty((len(pool), result.net.n_features), dtype=np.float16)
        predict(result.net, whole, features_out=features)
        check_finite(features, f"The training diverged: lower the lr of training (now {training.lr:g}).")
        with project.draft("evidence", settings=identity, inputs=inputs, seed=request.seed) as draft:
            write_trajectory(draft, folder / "trajectory", result.history)
            np.save(draft.path("places.npy"), places, allow_pickle=False)
            np.save(draft.path("features.npy"), features, allow_pickle=False)
            draft.device = str(device)
            draft.facts["seconds"] = round(time.monotonic() - started, 1)
    return open_evidence(draft)


def _labeled(labels: IntArray) -> IntArray:
    places = np.flatnonzero(labels >= 0)
    if len(np.unique(labels[places])) < 2:
        raise InvalidDataError("All images have the same label, so there is nothing to learn.")
    return places


def _head_on(
    request: EvidenceRequest,
    labels: IntArray,
    *,
    n_classes: int,
    training: HeadSettings,
    of: str,
    inputs: Mapping[str, str],
) -> EvidenceRun:
    """The same by a head on the project's features, in seconds."""
    features = latest_features(request.project)
    inputs = {**inputs, "features": features.artifact.hash}
    identity = {
        "provider": PROVIDER,
        "of": of,
        "start": FROZEN,
        "training": training.to_json(),
        "n_classes": n_classes,
    }
    if stored := find_evidence(request.project, identity, inputs, request.seed):
        return stored
    places, seen = _labeled(labels), features.features()
    rows = Scaling.of(seen)(seen)
    with work_folder(request, of, identity, inputs) as folder:
        started = time.monotonic()
        result = train_head(
            rows[places],
            labels[places],
            n_classes=n_classes,
            settings=training,
            seed=streams.derived(request.seed, Purpose.BASELINE_RUN),
            progress=StageProgress(request.progress, "training"),
            record=TrajectoryWriter(folder / "trajectory", training.epochs, len(places)),
        )
        with request.project.draft("evidence", settings=identity, inputs=inputs, seed=request.seed) as draft:
            write_trajectory(draft, folder / "trajectory", result.history)
            np.save(draft.path("places.npy"), places, allow_pickle=False)
            np.save(draft.path("features.npy"), rows, allow_pickle=False)
            draft.facts["seconds"] = round(time.monotonic() - started, 1)
    return open_evidence(draft)


@contextlib.contextmanager
def work_folder(
    request: EvidenceRequest, name: str, settings: Mapping[str, Any], inputs: Mapping[str, str]
) -> Iterator[Path]:
    """A place for one step's checkpoints, the same for the same work; it goes when the work is done.

    Inside the caller's folder it outlives a stop and a kill; without one it is a temporary folder.
    """
    if request.folder is None:
        with tempfile.TemporaryDirectory(prefix="semiprune-") as temporary:
            yield Path(temporary)
        return
    mark = files.sha256_json({"settings": dict(settings), "inputs": dict(inputs), "seed": request.seed})[:12]
    folder = request.folder / f"evidence-{name}-{mark}"
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def score_settings(run: EvidenceRun, changes: Mapping[str, Any]) -> ScoreSettings:
    """What a run of its length is scored with by default, and what was asked to differ."""
    assert run.n_epochs is not None
    start = str(run.artifact.settings.get("start", SCRATCH))
    return default_score_settings(run.n_epochs, start).replace(**changes)


def scores_of(run: EvidenceRun, settings: ScoreSettings, progress: Progress) -> ScoreTable:
    """The scores of a recorded run's M images."""
    return compute_scores(open_trajectory(run.artifact.folder), settings=settings, progress=progress)
