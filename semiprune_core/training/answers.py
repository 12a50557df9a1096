"""What a training run says of the pool, wherever it began: the one form in which it becomes an artifact."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from semiprune_core.learning.quality import Quality, on_held_out
from semiprune_core.records import UNLABELED, BoolArray, ClassProbs, FloatArray, IntArray
from semiprune_core.results.pseudo import HELD_OUT_CONFIDENCE, HELD_OUT_POSITIONS, HELD_OUT_PREDICTED

if TYPE_CHECKING:
    from semiprune_core.learning.ssl_run import SSLResult


@dataclass(frozen=True, eq=False)
class Answers:
    """For every image (N,): ``predicted`` class, ``confidence``, ``margin`` to the second one; ``features`` (N, D).

    ``held_out_mask`` (N,) are labels that the measured models never saw, ``held_out_answers`` (N,) what these models
    said of them (-1 elsewhere), ``quality`` how right that is. ``groups`` (N,) are near-duplicates, where they were
    looked for, ``probs`` what is kept of all classes' probabilities. ``arrays`` are further files of the artifact by
    name, ``weights`` the model's tensors.
    """

    predicted: IntArray
    confidence: FloatArray
    margin: FloatArray
    held_out_mask: BoolArray
    held_out_answers: IntArray
    features: np.ndarray
    quality: Quality | None
    weights: Mapping[str, np.ndarray]
    history: Sequence[dict[str, Any]] = ()
    notes: tuple[str, ...] = ()
    groups: IntArray | None = None
    probs: ClassProbs | None = None
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_net(cls, result: SSLResult, labeled: IntArray, n_classes: int) -> Self:
        """The answers of a net that knows the classes ``labeled`` (K,) alone, in terms of all ``n_classes``."""
        quality = result.quality
        if quality is not None:
            per_class = dict(zip(labeled.tolist(), quality.per_class))
            quality = dataclasses.replace(quality, per_class=tuple(per_class.get(n) for n in range(n_classes)))
        history = [_all_classes(entry, labeled, n_classes) for entry in result.history]
        weights = {name: tensor.detach().cpu().contiguous().numpy() for name, tensor in result.net.state_dict().items()}
        return cls(
            predicted=labeled[result.predicted],
            confidence=result.confidence,
            margin=result.margin,
            probs=result.probs.renumbered(labeled),
            held_out_mask=result.held_out_mask,
            held_out_answers=np.where(result.held_out_mask, labeled[result.held_out_answers], UNLABELED),
            features=result.features,
            quality=quality,
            weights=weights,
            history=history,
            notes=result.notes,
            arrays=_seen_blindly(result, labeled),
        )

    def refitted(self, final: Answers) -> Answers:
        """The answers of a ``final`` model that learned from all labels; measured is this one, which held some out."""
        held = self.held_out_mask
        quality = self.quality
        if quality is not None:
            quality = dataclasses.replace(quality, measured_on=on_held_out(int(held.sum()), refitted=True))
        blindly: dict[str, np.ndarray] = {
            HELD_OUT_POSITIONS: np.flatnonzero(held),
            HELD_OUT_PREDICTED: self.held_out_answers[held].astype(np.int32),
            HELD_OUT_CONFIDENCE: self.confidence[held].astype(np.float32),
        }
        return dataclasses.replace(
            final,
            held_out_mask=held,
            held_out_answers=self.held_out_answers,
            quality=quality,
            history=[*self.history, *({**entry, "round": 2} for entry in final.history)],
            notes=(*self.notes, *final.notes),
            arrays={**self.arrays, **blindly},
        )


def _seen_blindly(result: SSLResult, labeled: IntArray) -> dict[str, np.ndarray]:
    """What the measured models said of held-out labels, where the final answers come from models that saw them."""
    held = result.held_out_mask
    if np.array_equal(result.held_out_confidence[held], result.confidence[held]):
        return {}
    return {
        HELD_OUT_POSITIONS: np.flatnonzero(held),
        HELD_OUT_PREDICTED: labeled[result.held_out_answers[held]].astype(np.int32),
        HELD_OUT_CONFIDENCE: result.held_out_confidence[held].astype(np.float32),
    }


def _all_classes(entry: dict[str, Any], labeled: IntArray, n_classes: int) -> dict[str, Any]:
    """An epoch's history with its counts of pseudo-labels for all classes."""
    if entry.get("class_counts") is None:
        return entry
    counts = np.zeros(n_classes, dtype=np.int64)
    counts[labeled] = entry["class_counts"]
    return {**entry, "class_counts": counts.tolist()}
