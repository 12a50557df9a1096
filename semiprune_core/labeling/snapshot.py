"""Settled labels: what people decided so far, image by image, and the snapshot of it that a job pins."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from semiprune_core.files import canonical_json
from semiprune_core.records import UNLABELED, BoolArray, IntArray

if TYPE_CHECKING:
    from semiprune_core.labeling.drawing import Drawing

REFERENCE, FIRST, SETTLED, REVIEWED = range(4)
"""How much a label weighs; settled and reviewed ones weigh the same, and the later of them counts."""


@dataclass(frozen=True, eq=False)
class Labels:
    """What people decided so far: one settled class per image.

    ``ids`` (M,) uint64 ascending, ``class_ids`` (M,), ``by_person_mask`` (M,) False for reference labels,
    ``seqs`` (M,) number of the deciding event; ``disputed_ids`` (K,) images whose annotators disagree and which
    nobody settled: they have no label until then.
    """

    ids: np.ndarray
    class_ids: IntArray
    by_person_mask: BoolArray
    seqs: IntArray
    disputed_ids: np.ndarray


@dataclass(frozen=True, eq=False)
class LabelsSnapshot:
    """The labels a job pins. ``ids`` (M,) uint64 ascending, ``labels`` (M,) indices into ``class_names``.

    ``uniform_mask`` (M,) is True where the image was drawn uniformly *and* labeled without a suggestion in view:
    only those may serve unbiased estimates. ``final_ids`` (K,) are the images whose labels are kept for the final test:
    no label of theirs, or of a copy, is here. ``class_ids`` are the numbers of the classes, () in snapshots from before
    they were kept.

    ``hash`` covers which image has which class, by number: names, order and classes without a label change nothing.
    ``hash_by_name`` is what it was before classes had numbers here; older runs pin that one.
    """

    ids: np.ndarray
    labels: IntArray
    uniform_mask: BoolArray
    class_names: tuple[str, ...]
    class_ids: tuple[int, ...] = ()
    final_ids: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    hash: str = field(init=False)
    hash_by_name: str = field(init=False)

    def __post_init__(self) -> None:
        by_name = self._digest(canonical_json(list(self.class_names)), self.labels)
        by_id = self._digest("by class id", self.label_ids) if self.class_ids else by_name
        object.__setattr__(self, "hash", by_id)
        object.__setattr__(self, "hash_by_name", by_name)

    def _digest(self, first: str, labels: IntArray) -> str:
        digest = hashlib.sha256(first.encode())
        for array, kind in ((self.ids, np.uint64), (labels, np.int64), (self.uniform_mask, np.uint8)):
            digest.update(np.ascontiguousarray(array, dtype=kind).tobytes())
        if len(self.final_ids):  # absent before there were final tests
            digest.update(b"final" + np.ascontiguousarray(self.final_ids, dtype=np.uint64).tobytes())
        return digest.hexdigest()

    @property
    def label_ids(self) -> IntArray:
        """(M,) the labels by the numbers of their classes."""
        return np.array([*self.class_ids, UNLABELED], dtype=np.int64)[self.labels]

    def __len__(self) -> int:
        return len(self.ids)

    def on_pool(self, ids: np.ndarray, duplicate_of: IntArray) -> tuple[IntArray, BoolArray]:
        """Labels (N,) for every image of a pool, -1 for none, and the uniform mask (N,).

        Images with the same content have one label: that of the first among them if it has one, else that of the
        first copy that has one. So a picture is never labeled on one side and unlabeled on the other.
        """
        labels: IntArray = np.full(len(ids), UNLABELED, dtype=np.int64)
        uniform: BoolArray = np.zeros(len(ids), dtype=bool)
        if len(self.ids):
            place = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
            in_snapshot = self.ids[place] == ids
            labels[in_snapshot] = self.labels[place[in_snapshot]]
            uniform[in_snapshot] = self.uniform_mask[place[in_snapshot]]
        labels, uniform = shared_with_copies(labels, uniform, duplicate_of)
        final = self.final_mask(ids, duplicate_of)
        labels[final], uniform[final] = UNLABELED, False
        return labels, uniform

    def final_mask(self, ids: np.ndarray, duplicate_of: IntArray) -> BoolArray:
        """(N,) which images of a pool are kept for the final test, copies included."""
        return np.isin(duplicate_of, duplicate_of[np.isin(ids, self.final_ids)])


def shared_with_copies(labels: IntArray, uniform: BoolArray, duplicate_of: IntArray) -> tuple[IntArray, BoolArray]:
    """Labels and uniform mask (N,) with those of the first labeled one of equal images at all of them.

    >>> labels, uniform = shared_with_copies(np.array([-1, 2, 1]), np.array([False, True, False]), np.array([0, 0, 2]))
    >>> labels.tolist(), uniform.tolist()
    ([2, 2, 1], [True, True, False])
    """
    labels, uniform = labels.copy(), uniform.copy()
    labeled = np.flatnonzero(labels != UNLABELED)[::-1]  # backwards, so that the first one is written last
    chosen = np.full(len(labels), -1, dtype=np.int64)
    chosen[duplicate_of[labeled]] = labeled
    chosen = chosen[duplicate_of]
    has = chosen >= 0
    labels[has], uniform[has] = labels[chosen[has]], uniform[chosen[has]]
    return labels, uniform


def settle(rows: np.ndarray, into: Mapping[int, int]) -> Labels:
    """Settled labels from rows (image, class, seq, weight): the heaviest decide; of the settled, the latest does."""
    ids = np.ascontiguousarray(rows[:, 0]).view(np.uint64)
    if not len(rows):
        empty = np.empty(0, dtype=np.int64)
        return Labels(ids, empty, empty.astype(bool), empty, ids)
    lookup = np.arange(int(rows[:, 1].max()) + 1)
    for class_id, target in into.items():
        if class_id < len(lookup):
            lookup[class_id] = target
    class_ids, seqs, ranks = lookup[rows[:, 1]], rows[:, 2], np.minimum(rows[:, 3], SETTLED)
    order = np.lexsort((seqs, ranks, ids))
    ids, class_ids, seqs, ranks = ids[order], class_ids[order], seqs[order], ranks[order]
    last = np.flatnonzero(np.append(ids[1:] != ids[:-1], True))  # the deciding event of each image
    starts = np.append(0, last[:-1] + 1)
    of_image = np.repeat(np.arange(len(last)), last - starts + 1)
    top = last[of_image]
    differs = (ranks == ranks[top]) & (class_ids != class_ids[top]) & (ranks[top] < SETTLED)
    disputed = np.zeros(len(last), dtype=bool)
    disputed[of_image[differs]] = True
    chosen = last[~disputed]
    return Labels(ids[chosen], class_ids[chosen], ranks[chosen] > 0, seqs[chosen], ids[last[disputed]])


def uniform_order(drawings: Sequence[Drawing], seed: int, decided: Mapping[int, int]) -> tuple[np.ndarray, int]:
    """The images (M,) of a seed's uniform drawings in order, and how many of them met no image from elsewhere.

    From elsewhere: in an earlier drawing that was not uniform, or decided earlier without being in a uniform one;
    ``decided`` has the number of the event that first decided an image. Numbers, not times: a clock can be set back.
    """
    others: set[int] = set()
    uniform: set[int] = set()
    ids, sure, is_sure = np.empty(0, np.uint64), 0, True
    for drawing in drawings:  # oldest first; a larger drawing begins with the smaller one of its seed
        if drawing.uniform and drawing.seed == seed and len(drawing) > len(ids):
            new = drawing.ids[len(ids) :].tolist()
            early = {image for image in new if decided.get(image, drawing.seq) < drawing.seq} - uniform
            is_sure = is_sure and not early and others.isdisjoint(new)
            ids = drawing.ids
            sure = len(ids) if is_sure else sure
        (uniform if drawing.uniform else others).update(drawing.ids.tolist())
    return ids, sure
