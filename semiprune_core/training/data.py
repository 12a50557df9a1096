"""What a training run would learn from: the labels laid on the pool, and whether both are fit for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from semiprune_core import files
from semiprune_core.errors import InvalidDataError, SemiPruneError, WorkspaceError
from semiprune_core.labeling import class_book, open_store
from semiprune_core.labeling.class_names import NO_CLASSES, ClassBook, Classes, NamedClasses
from semiprune_core.labeling.drawing import FEW_LABELS
from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.learning.labels import check_learnable
from semiprune_core.learning.quality import held_out_count
from semiprune_core.learning.settings import SSLSettings
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import UNLABELED, BoolArray, IntArray

HASHED_BYTES = 2 << 30
"""Training caches up to this size are checked by content before a run, larger ones by their size alone."""


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
    return to_learn_from(human, uniform, pool.duplicate_of)


def to_learn_from(human: IntArray, uniform: BoolArray, duplicate_of: IntArray) -> PoolLabels:
    """Labels (N,) that equal images share, as a run learns from them: of each picture its first copy."""
    first = duplicate_of == np.arange(len(human))
    return PoolLabels(human, np.where(first, human, UNLABELED), uniform & first & (human != UNLABELED))


def reference_on(classes: Classes, pool: Pool) -> IntArray:
    """(N,) the pool's reference labels as indices into ``classes``, whatever these were renamed to since; -1 where
    there is none of them."""
    return pool_classes(pool, classes)[pool.reference_labels]


def pool_classes(pool: Pool, classes: Classes, given: Classes | None = None) -> IntArray:
    """The place among ``classes`` of each class of the pool's project that is ``given``.

    Where None: of each class that the pool came with. Behind them stands -1, for no label.
    """
    book = pool_book(pool)
    numbers, names = _numbered(book, reference_classes(pool) if given is None else given)
    places = book.places(numbers, names, *_numbered(book, classes))
    return np.array([*places, UNLABELED], dtype=np.int64)


def pool_book(pool: Pool) -> ClassBook:
    """The classes of the pool's project."""
    return class_book(pool.segments[0].artifact.folder.parents[1]) if pool.segments else NO_CLASSES


def reference_classes(pool: Pool) -> NamedClasses:
    """The classes that the pool came with."""
    return NamedClasses(pool.class_names, pool_book(pool).reference_ids(pool.class_names))


def _numbered(book: ClassBook, classes: Classes) -> tuple[Sequence[int | None], Sequence[str]]:
    """Numbers and names; the numbers by the names where they are not known."""
    return classes.class_ids or book.ids_of(classes.class_names), classes.class_names


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
    def missing_classes(self) -> tuple[str, ...]:
        """Classes without a label: nothing can be learned of them, and no image gets them."""
        return tuple(name for name, count in self.per_class.items() if not count)

    @property
    def thin_classes(self) -> tuple[str, ...]:
        """Classes with so few labels that little can be learned of them."""
        return tuple(name for name, count in self.per_class.items() if 0 < count < FEW_LABELS)

    def n_held_out(self, settings: SSLSettings) -> int:
        """How many labels a run with these settings measures itself on."""
        if settings.cross_fit > 1:
            return self.n_measurable
        return held_out_count(self.n_measurable, settings.held_out)


def training_data(project: Project, pool: Pool | None = None, snapshot: LabelsSnapshot | None = None) -> TrainingData:
    """The pool and the labels as they are now, or those that are given."""
    pool = pool or project.pool()
    snapshot = snapshot or open_store(project).snapshot()
    labels = labels_on_pool(snapshot, pool)
    names = snapshot.class_names
    learned = labels.learned[labels.learned >= 0]
    counts = np.bincount(learned, minlength=len(names)).tolist()
    problem = None
    try:
        check_learnable(labels.learned, names)
    except SemiPruneError as error:
        problem = str(error)
    reference = reference_on(snapshot, pool)
    return TrainingData(
        snapshot=snapshot,
        n_images=len(pool),
        per_class=dict(zip(names, counts)),
        n_measurable=int(labels.measurable_mask.sum()),
        n_reference=int(((reference >= 0) & (labels.human < 0)).sum()),
        problem=problem,
    )


def check_pool(pool: Pool, pinned: str) -> None:
    """Refuse a pool that is not the one the run was started on, or whose training cache is gone or changed."""
    if pool.hash != pinned:
        raise InvalidDataError(
            "The pool changed since this run was started: images were added or removed. Start a new run.",
            code="POOL_CHANGED",
        )
    check_cache(pool, by_content=True)


def check_cache(pool: Pool, *, by_content: bool) -> None:
    """Refuse a pool whose training cache is gone or changed: by its size, or in a worker, which has the time, by its
    content too."""
    for segment in pool.segments:
        path, entry = segment.artifact.path("images.npy"), segment.artifact.manifest["files"]["images.npy"]
        if not path.is_file():
            raise WorkspaceError(
                f"The training cache {path} is missing. Restore it from a backup, or import the images again.",
                code="CACHE_MISSING",
            )
        same = path.stat().st_size == entry["bytes"]
        if same and by_content and entry["bytes"] <= HASHED_BYTES:
            same = files.sha256_file(path) == entry["sha256"]
        if not same:
            raise WorkspaceError(
                f"The training cache {path} was changed since the import. "
                "Restore it from a backup, or import the images again.",
                code="CACHE_CHANGED",
            )
