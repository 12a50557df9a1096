"""What a frozen run gives: labels for the pool, answers of the folds, and how good they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiprune_core.learning.quality import Quality
from semiprune_core.records import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Views:
    """Features of other views of the same images: ``weak`` and ``strong`` (V, N, D), each may be missing.

    Weak views (mirrored, slightly shifted) are averaged into the features; strong ones serve the semi-supervised head.
    """

    weak: FloatArray | None = None
    strong: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Answers for labeled images by models that saw neither them nor their near-duplicates.

    ``positions`` (n,) in the pool, ``labels`` (n,) human classes, ``probs`` (n, C), ``folds`` (n,) which fold each was
    held out in, ``groups`` (n,) their near-duplicates. Only uniformly drawn labels are here.
    """

    positions: IntArray
    labels: IntArray
    probs: FloatArray
    folds: IntArray
    groups: IntArray

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def predicted(self) -> IntArray:
        return self.probs.argmax(1) if len(self) else np.zeros(0, np.int64)

    @property
    def right(self) -> BoolArray:
        return self.predicted == self.labels

    def at(self, positions: IntArray) -> BoolArray:
        """(m,) whether the answers at these ``positions`` of the pool are right, for a paired comparison."""
        place = {int(position): row for row, position in enumerate(self.positions)}
        return self.right[[place[int(position)] for position in positions]]


@dataclass(frozen=True, eq=False)
class FrozenResult:
    """``labels`` (N,) with human ones in their places, ``probs`` (N, C) and ``confidence`` (N,) of the model.

    ``quality`` is of ``out_of_fold``; None where too few labels were drawn uniformly. ``balanced`` is the mean over
    classes there. ``missing`` names classes without a label, which are never predicted. ``facts`` are the choices made
    on the way (penalty, weights), ``seconds`` what each part took.
    """

    labels: IntArray
    probs: FloatArray
    out_of_fold: OutOfFold
    quality: Quality | None
    balanced: float | None
    missing: IntArray
    facts: Mapping[str, Any]
    seconds: dict[str, float]

    @property
    def confidence(self) -> FloatArray:
        return self.probs.max(1)
