"""The frozen records that pass from step to step, sure of their shapes.

N images, T epochs, D feature dimensions. Image positions are positions in the pool, in its fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from semiprune_core.checks import check_finite, check_range
from semiprune_core.errors import InvalidDataError

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]

UNLABELED = -1
MOST_PROBS = 100
"""So many classes per image keep their probability; with more classes, the most likely ones."""


def coreset_size(n: int, pruning_ratio: float) -> int:
    """The budget: how many of ``n`` images are kept when the fraction ``pruning_ratio`` is removed.

    >>> coreset_size(50_000, 0.9)
    5000
    """
    check_range("pruning_ratio", pruning_ratio, low=0, high=1, high_open=True)
    return round(n * (1 - pruning_ratio))


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that could not be imported, in words for a person."""

    path: str
    code: str
    message: str


@dataclass(frozen=True, eq=False)
class PseudoLabels:
    """One label for every image of the pool; a person's label always wins over the model's.

    ``labels`` (N,) class indices, ``confidence`` (N,) in [0, 1] (1 for human labels), ``human_mask`` (N,).
    """

    labels: IntArray
    confidence: FloatArray
    human_mask: BoolArray
    class_names: tuple[str, ...]

    def __post_init__(self) -> None:
        _same_length(labels=self.labels, confidence=self.confidence, human_mask=self.human_mask)
        if len(self.labels) and not (self.labels.min() >= 0 and self.labels.max() < len(self.class_names)):
            raise InvalidDataError(f"Pseudo-labels must lie in 0..{len(self.class_names) - 1}; at least one does not.")
        check_finite("confidence", self.confidence)

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class ClassProbs:
    """The model's probability of each class.

    ``values`` (N, K) float16; ``classes`` (K,) when they are the same for every image, or (N, K) the most likely ones
    of each.
    """

    values: FloatArray
    classes: IntArray

    @classmethod
    def room(cls, n: int, n_classes: int) -> ClassProbs:
        """Room for ``n`` images, to be filled by :meth:`put`."""
        k = min(n_classes, MOST_PROBS)
        classes = np.arange(k, dtype=np.int32) if k == n_classes else np.zeros((n, k), dtype=np.int32)
        return cls(np.zeros((n, k), dtype=np.float16), classes)

    @classmethod
    def of(cls, probs: FloatArray) -> ClassProbs:
        """What is kept of ``probs`` (N, C)."""
        kept = cls.room(*probs.shape)
        kept.put(slice(None), probs)
        return kept

    def put(self, place: slice, probs: FloatArray) -> None:
        """Keep ``probs`` (n, C) for the images at ``place``."""
        if self.classes.ndim == 1:
            self.values[place] = probs
            return
        top = np.argpartition(probs, -self.values.shape[1], axis=1)[:, -self.values.shape[1] :]
        self.classes[place] = top
        self.values[place] = np.take_along_axis(probs, top, axis=1)

    def renumbered(self, numbers: IntArray) -> ClassProbs:
        """The same with class ``c`` called ``numbers[c]``."""
        return ClassProbs(self.values, np.asarray(numbers)[self.classes].astype(np.int32))

    def dense(self, rows: IntArray, n_classes: int) -> FloatArray:
        """(n, n_classes) float32, each row summing to 1: what was not kept is spread evenly over the other classes."""
        values = np.asarray(self.values[rows], dtype=np.float32)
        probs = np.zeros((len(values), n_classes), dtype=np.float32)
        if self.classes.ndim == 1:
            probs[:, self.classes] = values
        else:
            rest = np.maximum(1 - values.sum(axis=1, keepdims=True), 0) / max(1, n_classes - values.shape[1])
            probs[:] = rest
            np.put_along_axis(probs, np.asarray(self.classes[rows], dtype=np.int64), values, axis=1)
        return probs / probs.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Per-epoch facts of a training run, as (T, N) columns; row t is epoch t + 1.

    ``target_prob`` probability of the image's (pseudo-)label, ``margin`` that probability minus the largest other one,
    ``correct`` whether the label was the top class, ``el2n`` L2 norm of softmax minus one-hot.
    ``last_entropy`` (N,) is the entropy of the prediction in the last epoch, in nats.
    The arrays may be memory-mapped; nothing here loads them whole.
    """

    target_prob: FloatArray
    margin: FloatArray
    correct: BoolArray
    el2n: FloatArray
    last_entropy: FloatArray | None = None

    def __post_init__(self) -> None:
        shape = self.target_prob.shape
        if len(shape) != 2:
            raise InvalidDataError(f"A trajectory has shape (epochs, images), got {shape}.")
        for name in ("margin", "correct", "el2n"):
            if getattr(self, name).shape != shape:
                raise InvalidDataError(f"{name} has shape {getattr(self, name).shape}, target_prob {shape}.")
        if self.last_entropy is not None and self.last_entropy.shape != shape[1:]:
            raise InvalidDataError(f"last_entropy has shape {self.last_entropy.shape}, expected {shape[1:]}.")

    @property
    def n_epochs(self) -> int:
        return int(self.target_prob.shape[0])

    @property
    def n_images(self) -> int:
        return int(self.target_prob.shape[1])


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a selector may look at. All arrays are (N,); a missing one is simply absent.

    ``scores`` by name, each finite; ``mean_prob`` the mean target probability over the scored epochs;
    ``labels`` (pseudo-)class indices; ``human_mask`` images labeled by a person;
    ``duplicate_of`` position of the first image with the same content (its own position where there is none);
    ``alike`` the same for near-duplicates, where somebody looked for them.
    """

    n_images: int
    scores: Mapping[str, FloatArray] = field(default_factory=dict)
    mean_prob: FloatArray | None = None
    labels: IntArray | None = None
    human_mask: BoolArray | None = None
    duplicate_of: IntArray | None = None
    features: FloatArray | None = None
    alike: IntArray | None = None

    def __post_init__(self) -> None:
        arrays = dict(self.scores)
        for name in ("mean_prob", "labels", "human_mask", "duplicate_of", "features", "alike"):
            if getattr(self, name) is not None:
                arrays[name] = getattr(self, name)
        for name, array in arrays.items():
            if len(array) != self.n_images:
                raise InvalidDataError(f"{name} has {len(array)} values for {self.n_images} images.")
            if np.issubdtype(array.dtype, np.floating):
                check_finite(name, array)


@dataclass(frozen=True, eq=False)
class Coreset:
    """What is kept, and how it was chosen. ``indices`` are positions in the pool, best first."""

    indices: IntArray
    method: str
    settings: Mapping[str, Any]
    seed: int
    pruning_ratio: float
    n_pool: int

    def __post_init__(self) -> None:
        if len(self.indices) and not (self.indices.min() >= 0 and self.indices.max() < self.n_pool):
            raise InvalidDataError(f"A coreset of a pool of {self.n_pool} images holds a position outside the pool.")
        if np.count_nonzero(self.mask) != len(self.indices):  # np.unique takes 0.2 s for 400,000 of them
            raise InvalidDataError("A coreset lists each image once; this one lists some twice.")

    @property
    def mask(self) -> BoolArray:
        """(N,) True where kept."""
        mask = np.zeros(self.n_pool, dtype=bool)
        mask[self.indices] = True
        return mask


def _same_length(**arrays: np.ndarray) -> None:
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidDataError(f"Arrays of one record must have the same length, got {lengths}.")
