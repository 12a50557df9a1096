"""The artifacts of the line after the pool, each written by one function and read by one.

    pseudo       labels, predicted, confidence, margin, human_mask, held_out_mask, features, quality, history, model
    trajectory   (T, N) columns of the dynamics run of one seed, its history, the trained model's features
    scores       one Parquet table: image_id and a column per score, the mean over the trajectories it was made from
    coreset      indices.npy: which images are kept, best first; how they were chosen stands in the settings

``inputs`` of each name what it was made from by content hash, so that what is out of date can be told.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from semiprune_core import files
from semiprune_core.artifacts import Artifact, Draft
from semiprune_core.errors import InvalidDataError, MissingStepError
from semiprune_core.records import BoolArray, Coreset, FloatArray, IntArray, PseudoLabels, Trajectory
from semiprune_core.scores import ScoreSettings, ScoreTable
from semiprune_core.selection import Basis
from semiprune_core.trajectory_store import open_trajectory
from semiprune_core.workspace import Project

FEATURES = "features.npy"


@dataclass(frozen=True, eq=False)
class PseudoRun:
    """A finished SSL run: its artifact, opened lazily."""

    artifact: Artifact

    def _array(self, name: str) -> np.ndarray:
        return np.load(self.artifact.path(f"{name}.npy"), mmap_mode="r", allow_pickle=False)

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(self.artifact.facts["class_names"])

    def labels(self) -> PseudoLabels:
        """One label per image of the pool; human labels have confidence 1."""
        human = np.asarray(self._array("human_mask"))
        confidence = np.where(human, 1.0, self._array("confidence")).astype(np.float32)
        return PseudoLabels(np.asarray(self._array("labels")), confidence, human, self.class_names)

    def predicted(self) -> IntArray:
        """(N,) the model's own answer for every image, labeled ones included."""
        return self._array("predicted")

    def confidence(self) -> FloatArray:
        """(N,) of the model's own answer."""
        return self._array("confidence")

    def margin(self) -> FloatArray | None:
        """(N,) how far the model's answer leads its second one in probability; None in runs from before it was kept."""
        return self._array("margin") if self.artifact.path("margin.npy").is_file() else None

    def held_out_mask(self) -> BoolArray:
        """(N,) human labels that the measured model never saw."""
        return self._array("held_out_mask")

    def features(self) -> np.ndarray:
        """(N, D) float16, memory-mapped."""
        return self._array("features")

    def quality(self) -> Mapping[str, Any] | None:
        return files.read_json(self.artifact.path("quality.json"))

    def history(self) -> list[dict[str, Any]]:
        """One entry per epoch."""
        return files.read_json(self.artifact.path("history.json"))


def write_pseudo(
    draft: Draft,
    *,
    labels: IntArray,
    predicted: IntArray,
    confidence: FloatArray,
    human_mask: BoolArray,
    held_out_mask: BoolArray,
    features: np.ndarray,
    class_names: tuple[str, ...],
    quality: Mapping[str, Any] | None,
    history: list[dict[str, Any]],
    margin: FloatArray | None = None,
) -> None:
    """Fill the draft of a ``pseudo`` artifact (the model's weights are added by the caller as model.safetensors)."""
    arrays = {
        "labels": labels.astype(np.int32),
        "predicted": predicted.astype(np.int32),
        "confidence": confidence.astype(np.float32),
        "human_mask": human_mask.astype(bool),
        "held_out_mask": held_out_mask.astype(bool),
        "features": features.astype(np.float16),
    }
    if margin is not None:
        arrays["margin"] = margin.astype(np.float32)
    for name, array in arrays.items():
        np.save(draft.path(f"{name}.npy"), array, allow_pickle=False)
    files.write_json(draft.path("quality.json"), quality)
    files.write_json(draft.path("history.json"), history)
    counts = np.bincount(labels, minlength=len(class_names))
    draft.facts.update(
        class_names=list(class_names),
        class_counts=counts.tolist(),
        n_images=len(labels),
        n_human=int(human_mask.sum()),
        quality=quality,
    )


def latest_pseudo(project: Project) -> PseudoRun:
    artifact = project.latest("pseudo")
    if artifact is None:
        raise MissingStepError(f"Project '{project.name}' has no pseudo-labels yet. Train on the Train page first.")
    return PseudoRun(artifact)


@dataclass(frozen=True, eq=False)
class TrajectoryRun:
    """A finished dynamics run of one seed."""

    artifact: Artifact

    @property
    def n_epochs(self) -> int:
        return int(self.artifact.facts["n_epochs"])

    def trajectory(self, n_epochs: int | None = None) -> Trajectory:
        """Its (T, N) columns, memory-mapped; with ``n_epochs`` the first of them."""
        return open_trajectory(self.artifact.folder, n_epochs)

    def features(self) -> np.ndarray | None:
        """(N, D) float16 of the trained model, memory-mapped; None in runs from before they were kept."""
        path = self.artifact.path(FEATURES)
        return np.load(path, mmap_mode="r", allow_pickle=False) if path.is_file() else None

    def history(self) -> list[dict[str, Any]]:
        """One entry per epoch: loss, accuracy against the pseudo-labels, and on the test images where tested."""
        return files.read_json(self.artifact.path("history.json"))


def write_trajectory(
    draft: Draft, recorded: Path, history: list[dict[str, Any]], *, features: Path | None = None
) -> None:
    """Fill the draft of a ``trajectory`` artifact with what a TrajectoryWriter left in the folder ``recorded``.

    ``features`` is the file of the model's features, where they were kept. Files are linked, not moved: a crash before
    the artifact is complete leaves the run as it was.
    """
    for path in [*sorted(recorded.iterdir()), *([features] if features else [])]:
        try:
            os.link(path, draft.path(path.name))
        except OSError:  # another disk, or one that knows no links
            shutil.copyfile(path, draft.path(path.name))
    files.write_json(draft.path("history.json"), history)
    shape = open_trajectory(draft.folder).target_prob.shape
    draft.facts.update(n_epochs=int(shape[0]), n_images=int(shape[1]), last=history[-1] if history else None)


@dataclass(frozen=True, eq=False)
class ScoreRun:
    """The scores of every image of the pool."""

    artifact: Artifact

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.artifact.facts["scores"])

    @property
    def n_epochs(self) -> int:
        """How many epochs its trajectories have."""
        return int(self.artifact.facts["n_epochs"])

    @property
    def trajectory_ids(self) -> tuple[str, ...]:
        return tuple(self.artifact.facts["trajectories"])

    def basis(self) -> Basis:
        """What starting values depend on."""
        aum = pq.read_table(self.artifact.path("scores.parquet"), columns=["aum"], memory_map=True)["aum"]
        return Basis.learned(aum.to_numpy(), self.n_epochs)

    def table(self) -> ScoreTable:
        read = pq.read_table(self.artifact.path("scores.parquet"), columns=list(self.names), memory_map=True)
        columns = {name: read[name].to_numpy() for name in self.names}
        return ScoreTable(columns, ScoreSettings.from_json(self.artifact.settings), read.num_rows)


def write_scores(draft: Draft, ids: np.ndarray, table: ScoreTable) -> None:
    """Fill the draft of a ``scores`` artifact; ``ids`` (N,) are the pool's image ids."""
    columns = {"image_id": pa.array(ids), **{name: pa.array(values) for name, values in table.columns.items()}}
    with files.open_atomic(draft.path("scores.parquet")) as file:
        pq.write_table(pa.table(columns), file, use_dictionary=False, compression="none", row_group_size=1 << 17)
    draft.facts.update(n_images=table.n_images, scores=list(table.columns))


@dataclass(frozen=True, eq=False)
class CoresetRun:
    """A saved coreset."""

    artifact: Artifact

    @property
    def aim(self) -> str:
        """What its default knobs were to serve."""
        return str(self.artifact.facts.get("aim", "accuracy"))

    def coreset(self) -> Coreset:
        settings = self.artifact.settings
        return Coreset(
            np.load(self.artifact.path("indices.npy"), allow_pickle=False),
            settings["method"],
            {name: value for name, value in settings.items() if name not in ("method", "pruning_ratio")},
            int(self.artifact.manifest["seed"]),
            float(settings["pruning_ratio"]),
            int(self.artifact.facts["n_pool"]),
        )


def coreset_settings(coreset: Coreset) -> dict[str, Any]:
    """What the manifest says about how a coreset was chosen."""
    return {"method": coreset.method, "pruning_ratio": coreset.pruning_ratio, **coreset.settings}


def write_coreset(draft: Draft, coreset: Coreset) -> None:
    """Fill the draft of a ``coreset`` artifact, drafted with :func:`coreset_settings` and the coreset's seed."""
    np.save(draft.path("indices.npy"), coreset.indices.astype(np.int64), allow_pickle=False)
    draft.facts.update(n_pool=coreset.n_pool, n_kept=len(coreset.indices))


def latest_scores(project: Project) -> ScoreRun:
    artifact = project.latest("scores")
    if artifact is None:
        raise MissingStepError(f"Project '{project.name}' has no scores yet. Do the dynamics run first.")
    return ScoreRun(artifact)


def open_coreset(project: Project, coreset_id: str | None = None) -> CoresetRun:
    """A saved coreset by its id; the latest one for None."""
    artifact = project.latest("coreset") if coreset_id is None else project.artifact(coreset_id)
    if artifact is None:
        raise MissingStepError(f"Project '{project.name}' has no coreset yet. Select one first.")
    if artifact.kind != "coreset":
        raise InvalidDataError(f"{artifact.id} is not a coreset. `semiprune select` makes one.")
    return CoresetRun(artifact)


def made_from(project: Project, artifact: Artifact, kind: str) -> Artifact:
    """The artifact of ``kind`` that ``artifact`` names among its inputs, by content hash."""
    wanted = artifact.inputs.get(kind)
    found = next((one for one in reversed(project.artifacts(kind)) if one.hash == wanted), None)
    if found is None:
        raise MissingStepError(f"{artifact.id} was made from {kind} that this project no longer has. Make it anew.")
    return found
