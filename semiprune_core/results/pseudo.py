"""The artifact ``pseudo``: what a finished SSL run says of every image.

labels, predicted, confidence, margin, probs, probs_classes, human_mask, held_out_mask, features, quality, history,
model
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from semiprune_core import files
from semiprune_core.errors import MissingStepError
from semiprune_core.labeling import class_book
from semiprune_core.labeling.class_names import ClassBook
from semiprune_core.project.artifacts import Artifact, Draft
from semiprune_core.project.workspace import Project
from semiprune_core.records import BoolArray, ClassProbs, FloatArray, IntArray, PseudoLabels

FROZEN, FINETUNED, SCRATCH = "frozen", "finetuned", "scratch"
"""Where learning can begin."""
HELD_OUT_POSITIONS, HELD_OUT_PREDICTED, HELD_OUT_CONFIDENCE = (
    "held_out_positions",
    "held_out_predicted",
    "held_out_confidence",
)
"""Files of what the measured models said of held-out labels, where the final answers come from models that saw them."""


@dataclass(frozen=True, eq=False)
class BlindAnswers:
    """What models said of the n human labels at ``positions`` (n,) that they never saw: ``predicted`` (n,) classes.

    ``same_models`` is False where ``confidence`` (n,) is not of the model that answered for the rest of the pool.
    """

    positions: IntArray
    predicted: IntArray
    confidence: FloatArray
    labels: IntArray
    is_cross_fitted: bool
    same_models: bool

    @property
    def right(self) -> BoolArray:
        return self.predicted == self.labels

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True, eq=False)
class PseudoRun:
    """A finished SSL run: its artifact, opened lazily."""

    artifact: Artifact

    def _array(self, name: str) -> np.ndarray:
        return np.load(self.artifact.path(f"{name}.npy"), mmap_mode="r", allow_pickle=False)

    @property
    def recorded_names(self) -> tuple[str, ...]:
        """The classes as they were called when the run was made."""
        return tuple(self.artifact.facts["class_names"])

    @cached_property
    def class_ids(self) -> tuple[int | None, ...]:
        """The numbers of the classes; in a run from before they were kept, found by the names they have or had."""
        numbers = self.artifact.facts.get("class_ids")
        return tuple(numbers) if numbers else self._book.ids_of(self.recorded_names)

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """The classes as they are called now."""
        return self._book.names_now(self.class_ids, self.recorded_names)

    @cached_property
    def _book(self) -> ClassBook:
        return class_book(self.artifact.folder.parents[1])

    @property
    def start(self) -> str:
        """Where learning began: "frozen", "finetuned" or "scratch", as runs did before there was a choice.

        Where several starts were compared, the one whose answers were taken.
        """
        return str(self.artifact.facts.get("start") or self.artifact.settings.get("start") or SCRATCH)

    @property
    def encoder(self) -> str | None:
        """Whose features, or whose weights, learning began from; None from scratch."""
        return None if self.start == SCRATCH else str(self.artifact.settings["encoder"])

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

    def probs(self) -> ClassProbs | None:
        """The model's probabilities of the classes; None in runs from before they were kept."""
        if not self.artifact.path("probs.npy").is_file():
            return None
        return ClassProbs(self._array("probs"), self._array("probs_classes"))

    def held_out_mask(self) -> BoolArray:
        """(N,) human labels that the measured model never saw."""
        return self._array("held_out_mask")

    def blind_answers(self) -> BlindAnswers | None:
        """What is known of held-out labels; None where the run did not keep the answers of models that missed them."""
        settings, labels = self.artifact.settings, np.asarray(self._array("labels"))
        folds = int(settings.get("cross_fit") or 0) > 1
        if self.artifact.path(f"{HELD_OUT_POSITIONS}.npy").is_file():
            positions, predicted, confidence = (
                np.asarray(self._array(name)) for name in (HELD_OUT_POSITIONS, HELD_OUT_PREDICTED, HELD_OUT_CONFIDENCE)
            )
            return BlindAnswers(positions, predicted, confidence, labels[positions], folds, same_models=False)
        if self.start != FROZEN and (folds or settings.get("refit")):
            return None
        positions = np.flatnonzero(self.held_out_mask())
        predicted = np.asarray(self.predicted()[positions])
        confidence = np.asarray(self.confidence()[positions])
        return BlindAnswers(positions, predicted, confidence, labels[positions], self.start == FROZEN, same_models=True)

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
    class_ids: tuple[int, ...] = (),
    quality: Mapping[str, Any] | None,
    history: list[dict[str, Any]],
    margin: FloatArray | None = None,
    probs: ClassProbs | None = None,
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
    if probs is not None:
        arrays |= {"probs": probs.values, "probs_classes": probs.classes}
    for name, array in arrays.items():
        np.save(draft.path(f"{name}.npy"), array, allow_pickle=False)
    files.write_json(draft.path("quality.json"), quality)
    files.write_json(draft.path("history.json"), history)
    counts = np.bincount(labels, minlength=len(class_names))
    draft.facts.update(
        class_names=list(class_names),
        class_ids=list(class_ids),
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
