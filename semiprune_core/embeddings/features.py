"""Where a map's features come from: the SSL model, the dynamics model, raw pixels, or a pretrained encoder.

A source is ``(project, settings, progress) -> Features``; a new one registers under its name in FEATURES.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from semiprune_core.checks import check_range
from semiprune_core.embeddings.encoders import LEAST_SIDE, MOST_SIDE, encode, open_encoder
from semiprune_core.errors import InvalidDataError, InvalidSettingError, MissingStepError
from semiprune_core.progress import Progress, Stopped
from semiprune_core.project.workspace import Project
from semiprune_core.registry import Registry
from semiprune_core.results import TrajectoryRun, latest_features, latest_pseudo
from semiprune_core.settings import Settings

PIXEL_SIDE = 32
BLOCK = 4096


@dataclass(frozen=True, kw_only=True)
class FeatureSettings(Settings):
    """``encoder`` and ``weights`` belong to the features "pretrained", ``encoder_size`` is the side it looks at."""

    features: str = "ssl"
    encoder: str = ""
    weights: str = ""
    encoder_size: int = 128

    def check(self) -> None:
        FEATURES[self.features]
        check_range("encoder_size", self.encoder_size, low=LEAST_SIDE, high=MOST_SIDE)
        if (self.features == "pretrained") != bool(self.encoder):
            raise InvalidSettingError(
                "The features 'pretrained' need an encoder's name, such as torchvision:resnet18; others take none."
            )


@dataclass(frozen=True, eq=False)
class Features:
    """``values`` (N, D) float, maybe memory-mapped; ``inputs`` what they were made from, by content hash."""

    values: np.ndarray
    inputs: Mapping[str, str]


Source = Callable[[Project, FeatureSettings, Progress], Features]
FEATURES: Registry[Source] = Registry("feature source")


@FEATURES.register("ssl", title="SSL model", needs="pseudo")
def from_ssl(project: Project, settings: FeatureSettings, progress: Progress) -> Features:
    """The penultimate layer of the model that gave the pseudo-labels."""
    run = latest_pseudo(project)
    return Features(run.features(), {"pseudo": run.artifact.hash})


@FEATURES.register("originals", title="Pretrained features", needs="features")
def from_originals(project: Project, settings: FeatureSettings, progress: Progress) -> Features:
    """What an encoder saw in the originals, computed in the background after the import."""
    run = latest_features(project)
    return Features(run.features(), {"features": run.artifact.hash})


@FEATURES.register("dynamics", title="Dynamics model", needs="trajectory")
def from_dynamics(project: Project, settings: FeatureSettings, progress: Progress) -> Features:
    """The penultimate layer of the model whose training gave the scores."""
    artifact = project.latest("trajectory")
    if artifact is None:
        raise MissingStepError(f"Project '{project.name}' has no dynamics run yet. Start one on the Scores page.")
    values = TrajectoryRun(artifact).features()
    if values is None:
        raise MissingStepError(f"{artifact.id} has no features. Choose the SSL model's, or repeat the dynamics run.")
    return Features(values, {"trajectory": artifact.hash})


@FEATURES.register("pixels", title="Raw pixels", needs="pool")
def from_pixels(project: Project, settings: FeatureSettings, progress: Progress) -> Features:
    """The pixels themselves, made small by averaging; there is nothing to train for these."""
    pool = project.pool()
    images = pool.images()
    side = images.shape[1]
    step = max(1, side // PIXEL_SIDE)
    side_out = side // step
    values = np.empty((len(images), side_out * side_out * images.shape[3]), dtype=np.float32)
    for start in range(0, len(images), BLOCK):
        _go_on(progress, start, len(images))
        part = np.asarray(images[start : start + BLOCK, : side_out * step, : side_out * step], dtype=np.float32)
        part = part.reshape(len(part), side_out, step, side_out, step, -1).mean(axis=(2, 4)) / 255
        values[start : start + len(part)] = part.reshape(len(part), -1)
    return Features(values, {"pool": pool.hash})


@FEATURES.register("pretrained", title="Pretrained encoder", needs="pool")
def from_pretrained(
    project: Project,
    settings: FeatureSettings,
    progress: Progress,
    *,
    device: str = "cpu",
    folder: Path | None = None,
) -> Features:
    """An encoder the user has: torchvision or timm by name, with their weights or a local safetensors file.

    What is computed is kept in ``folder`` until all is done, see :func:`encode`.
    """
    pool = project.pool()
    encoder = open_encoder(settings.encoder, settings.weights, guard=project.workspace.guard)
    values = encode(
        encoder,
        pool.images(),
        side=settings.encoder_size,
        report=lambda done, n: _go_on(progress, done, n),
        device=device,
        folder=folder,
    )
    return Features(values, {"pool": pool.hash, "weights": encoder.weights_hash})


def available_features(project: Project) -> dict[str, str]:
    """Name -> "" where the source can be used now, else what is missing, in words."""
    words = {
        "pseudo": "needs pseudo-labels: train on the Train page",
        "features": "needs features of the originals: they are computed in the background after an import",
        "trajectory": "needs a dynamics run: start one on the Scores page",
        "pool": "needs images: import some on the Pool page",
    }
    problems: dict[str, str] = {}
    for name in FEATURES:
        kind = str(FEATURES.facts(name)["needs"])
        artifact = project.latest(kind)
        problems[name] = "" if artifact is not None else words[kind]
        if artifact is not None and name == "dynamics" and TrajectoryRun(artifact).features() is None:
            problems[name] = f"{artifact.id} has no features: repeat the dynamics run on the Scores page"
    return problems


def checked(features: Features, n_images: int) -> np.ndarray:
    """The values (N, D), if there is one finite row for every image."""
    values = features.values
    if values.ndim != 2 or not values.shape[1]:
        raise InvalidDataError(f"Features have shape {values.shape}, expected (images, dimensions).")
    if len(values) > n_images:
        raise InvalidDataError(
            f"There are features of {len(values):,} images, but the pool has {n_images:,}. Train again."
        )
    check_finite(values, "Train again, or choose other features.")
    return values


def check_finite(values: np.ndarray, way_out: str) -> None:
    """Refuse features (N, D) of a net that diverged, with ``way_out`` as what to do."""
    for start in range(0, len(values), BLOCK):
        if not np.isfinite(values[start : start + BLOCK]).all():
            raise InvalidDataError(f"The features hold values that are not finite. {way_out}")


def _go_on(progress: Progress, done: int, total: int) -> None:
    if progress.should_stop():
        raise Stopped
    progress.report(done, total, unit="images", stage="features")


def describe(settings: Mapping[str, Any]) -> str:
    """A map's features in words."""
    name = str(settings["features"])
    title = FEATURES.title(name) if name in FEATURES else name
    return f"{title} ({settings['encoder']})" if name == "pretrained" and settings.get("encoder") else title
