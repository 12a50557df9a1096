"""What an evaluation stands on: the labels it trains with, the images it tests on, and what is said of both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiprune_core.checks import check_range
from semiprune_core.errors import InvalidDataError, MissingStepError, WorkspaceError
from semiprune_core.evaluation.settings import RANDOM, EvaluationSettings
from semiprune_core.labeling import open_store
from semiprune_core.labeling.class_names import Classes
from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.methods import METHODS
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import UNLABELED, BoolArray, IntArray
from semiprune_core.results import PseudoRun, check_same_pool, latest_pseudo
from semiprune_core.training import read_snapshot, reference_on, snapshot_path
from semiprune_core.training.data import pool_classes, reference_classes
from semiprune_core.trials import FULL, TESTED_BY
from semiprune_core.trials.apart import part_to_test
from semiprune_core.trials.kinds import for_full

SPLIT, FINAL, HELD_OUT = "split", "final", "held out"
"""What is tested on: test images that came with the pool, labels kept for it when they were drawn, or images of the
pool that are held out of every coreset."""
FEW_TESTS = 100
DIFFER = 0.15
"""The share of test images on which two networks are assumed to differ, one right and one wrong."""
Z_SHOWN = 1.96 + 0.84
"""Two-sided 5%, and seen four times in five."""
COARSE = 3.0
"""Leads of methods are rarely larger than so many points."""
TEST_FRACTION = 0.2
"""Of the truly labeled images, held out where there is no test split."""


@dataclass(frozen=True, eq=False)
class EvaluationData:
    """What coresets are trained with and tested on.

    ``labels`` (N,) for the pool's images, of the kind ``truth``. ``test`` is "split", "final" or "held out"; but for
    the first, ``held_mask`` (N,) marks the images of the pool that are tested on and ``held_labels`` (N,) are their
    true labels. ``left_mask`` (N,) marks others that are neither chosen nor trained on: ``n_copies`` of test images,
    ``n_near`` that are nearly alike, and those of the final test that nobody has labeled yet.
    """

    truth: str
    labels: IntArray
    class_names: tuple[str, ...]
    test: str
    n_test: int
    held_mask: BoolArray
    held_labels: IntArray
    left_mask: BoolArray
    n_copies: int = 0
    n_near: int = 0
    class_ids: tuple[int | None, ...] = ()

    @property
    def chosen_from(self) -> IntArray:
        """Positions of the images that coresets are chosen from."""
        return np.flatnonzero(~(self.held_mask | self.left_mask))


def tested_ids(project: Project, data: EvaluationData, pool: Pool) -> np.ndarray:
    """(n,) uint64: the images that are tested on."""
    if data.test == SPLIT:
        tests = project.test_set()
        return tests.ids[reference_on(data, tests) >= 0]
    return pool.ids[data.held_mask & (data.held_labels >= 0)]


def evaluation_data(
    project: Project,
    truth: str | None = None,
    *,
    pool: Pool | None = None,
    snapshot: LabelsSnapshot | None = None,
    final: LabelsSnapshot | None = None,
    pseudo: PseudoRun | None = None,
    alike: IntArray | None = None,
) -> EvaluationData:
    """The labels of kind ``truth``, or the best there are, and what to test on; refused in words where there is none.

    ``snapshot``, ``final`` and ``pseudo`` are the people's labels, those of the final test and the pseudo-labels to use
    instead of the present ones. ``alike`` (N + M,) has one number, a position, for images of the pool and then of the
    tests that are nearly alike (``trials.alike``); None where that is not known.
    """
    pool = pool or project.pool()
    snapshot = open_store(project).snapshot() if snapshot is None else snapshot  # one without labels is one, too
    final = open_store(project).final_test() if final is None else final
    kind, labels, classes = _truth(project, truth, pool, snapshot, pseudo)
    names = classes.class_names
    if len(names) < 2:
        raise InvalidDataError(f"An evaluation needs at least two classes; there are {len(names)}.")
    alike = np.arange(len(pool)) if alike is None else alike
    own = alike[: len(pool)]
    n_split = int((reference_on(classes, project.test_set()) >= 0).sum())
    test, held, true, n_test = SPLIT, np.zeros(len(pool), dtype=bool), labels, n_split
    if n_split:
        copies = _copies_of_tests(project, pool)
        near = np.isin(own, alike[len(pool) :])
    else:
        test, held, true = _held(kind, labels, classes, pool, snapshot, final, own)
        n_test = int(held.sum())
        copies = np.isin(pool.duplicate_of, pool.duplicate_of[held]) & ~held
        near = np.isin(own, own[held])
    near = near & ~copies & ~held
    left = copies | near | (snapshot.final_mask(pool.ids, pool.duplicate_of) & ~held)
    n_copies, n_near = int(copies.sum()), int(near.sum())
    return EvaluationData(
        kind, labels, names, test, n_test, held, true, left, n_copies, n_near, tuple(classes.class_ids)
    )


def _copies_of_tests(project: Project, pool: Pool) -> BoolArray:
    """(N,) the images of the pool that have the same pixels as a test image."""
    everything, tests = project.everything(), project.test_set()
    return np.isin(everything.duplicate_of[pool.rows], everything.duplicate_of[tests.rows])


def _held(
    kind: str,
    labels: IntArray,
    classes: Classes,
    pool: Pool,
    snapshot: LabelsSnapshot,
    final: LabelsSnapshot,
    alike: IntArray,
) -> tuple[str, BoolArray, IntArray]:
    """Which kind of test there is without a test split, the images (N,) it tests on, and the true labels (N,)."""
    by_people, _ = final.on_pool(pool.ids, pool.duplicate_of)
    by_people = pool_classes(pool, classes, final)[by_people]
    if (by_people >= 0).any():
        return FINAL, by_people >= 0, by_people
    true = labels if kind != "pseudo" else _uniform_truth(classes, pool, snapshot)
    labeled_idx = np.flatnonzero((true >= 0) & ~snapshot.final_mask(pool.ids, pool.duplicate_of))
    if len(labeled_idx) < 2:
        raise MissingStepError(
            "There is nothing to test on: the pool has no test split, and no uniformly drawn image has a true label. "
            "Import test images, or label some that were drawn uniformly."
        )
    held = part_to_test(labeled_idx, pool.ids, pool.duplicate_of, TEST_FRACTION, alike) & (true >= 0)
    if not held.any():
        raise MissingStepError(f"{len(labeled_idx):,} labeled images are too few to hold some out. Label more.")
    return HELD_OUT, held, true


def _truth(
    project: Project, wanted: str | None, pool: Pool, snapshot: LabelsSnapshot, pseudo: PseudoRun | None
) -> tuple[str, IntArray, Classes]:
    """The kind of labels to train with, the labels (N,) and their classes; the final test's own need none."""
    human, _ = snapshot.on_pool(pool.ids, pool.duplicate_of)
    trained = ~snapshot.final_mask(pool.ids, pool.duplicate_of)
    complete = {"reference": pool.reference_labels, "human": human}
    for kind, labels in complete.items():
        if wanted in (None, kind) and trained.any() and (labels[trained] >= 0).all():
            return kind, labels, reference_classes(pool) if kind == "reference" else snapshot
    if wanted == "pseudo":
        pseudo = pseudo or latest_pseudo(project)
        check_same_pool(pseudo.artifact, pool)
        return "pseudo", np.asarray(pseudo.labels().labels, dtype=np.int64), pseudo
    if wanted is not None:
        n = int((complete[wanted][trained] < 0).sum())
        raise MissingStepError(
            f"{n:,} of {len(pool):,} images have no {wanted} label. Choose other labels to train with."
        )
    raise MissingStepError(
        "Coresets are trained with true labels, but neither reference labels nor human labels cover every image. "
        "Use pseudo-labels instead (--truth pseudo)."
    )


def _uniform_truth(classes: Classes, pool: Pool, snapshot: LabelsSnapshot) -> IntArray:
    """(N,) true labels that may test, -1 elsewhere: a person's, else the reference one, where every image has one; else
    people's labels of uniformly drawn images alone."""
    human, uniform = snapshot.on_pool(pool.ids, pool.duplicate_of)
    by_people = pool_classes(pool, classes, snapshot)[human]
    every = np.where(by_people >= 0, by_people, reference_on(classes, pool))
    return every if (every >= 0).all() else np.where(uniform, by_people, UNLABELED)


# --- in words ------------------------------------------------------------------------------------------------------


def caveat(test: str, truth: str, methods: Iterable[str]) -> str:
    """What the numbers are where they are not those of new images, in a sentence; else nothing.

    A choice by chance learns nothing from the images that are tested on, unless it is trained with pseudo-labels.
    """
    if test != HELD_OUT or (truth != "pseudo" and set(methods) <= {RANDOM, FULL}):
        return ""
    if truth == "pseudo":
        return (
            "Transductive: the test images took part in learning, and their labels helped to make the pseudo-labels "
            "that coresets are trained with. New images may do worse."
        )
    return "Transductive: the test images took part in learning and scoring. New images may do worse."


def smallest_difference(n_test: int, n_seeds: int) -> float:
    """The smallest lead of one method over another, in points, that so many test images and seeds show four times in
    five (two-sided, 5%): both are tested on the same images, so only images count on which they differ.

    Networks that differ on DIFFER of the images are assumed; half of that goes away as seeds are averaged.

    >>> round(smallest_difference(59, 3), 1), round(smallest_difference(2000, 3), 1)
    (11.5, 2.0)
    """
    check_range("n_test", n_test, low=1)
    check_range("n_seeds", n_seeds, low=1)
    variance = DIFFER / n_test * (1 + 1 / n_seeds) / 2
    return float(min(100.0, 100 * Z_SHOWN * np.sqrt(variance)))


def resolution_words(n_test: int, n_seeds: int) -> str:
    """What an evaluation can tell, before it starts."""
    points = smallest_difference(n_test, n_seeds)
    shown = f"{points:.0f}" if points >= 10 else f"{points:.1f}"
    images = "1 test image" if n_test == 1 else f"{n_test:,} test images"
    seeds = "1 seed" if n_seeds == 1 else f"{n_seeds:,} seeds"
    return f"With {images} and {seeds}, leads below about {shown} points cannot be told from chance."


def few_words(n_test: int) -> str:
    """A sentence where there are so few test images that each of them weighs a point or more; else nothing."""
    if not 0 < n_test < FEW_TESTS:
        return ""
    images = "One test image" if n_test == 1 else f"{n_test:,} test images"
    return f"{images}: each weighs {100 / n_test:.1f} points, so small differences mean little."


def test_words(data: EvaluationData, methods: Iterable[str]) -> str:
    """On what was tested, and what that means."""
    n = f"{data.n_test:,}"
    words = {
        SPLIT: f"Tested on the {n} test images.",
        FINAL: f"Tested on the {n} labels of the final test, which were drawn uniformly and given to no training, "
        "scoring or search; their images were among the unlabeled ones.",
        HELD_OUT: f"The pool has no test split: {n} of its images were held out of every coreset and tested on.",
    }[data.test]
    return " ".join(
        filter(None, [words, caveat(data.test, data.truth, methods), few_words(data.n_test), copies_words(data)])
    )


def copies_words(data: EvaluationData) -> str:
    """How many images of the pool were left out because they are test images once more; nothing where none was."""
    counts = ((data.n_copies, "copy", "copies"), (data.n_near, "near-copy", "near-copies"))
    found = " and ".join(f"{n:,} {single if n == 1 else several}" for n, single, several in counts if n)
    were = "was" if data.n_copies + data.n_near == 1 else "were"
    return f"{found} of test images {were} left out of every coreset and of the full data." if found else ""


def seen_facts(project: Project, pseudo: PseudoRun | None, final: LabelsSnapshot) -> dict[str, Any]:
    """How many labels of the final test the run behind the pseudo-labels was given all the same: those that people had
    given before they were kept for it."""
    wanted = pseudo.artifact.inputs.get("labels") if pseudo is not None else None
    if wanted is None or not len(final):
        return {}
    try:
        learned = read_snapshot(snapshot_path(project, wanted), wanted)
    except WorkspaceError:  # a run from a copied project, without its labels
        return {}
    n_seen = int(np.isin(final.ids, learned.ids).sum())
    assert pseudo is not None
    words = (
        f"{n_seen:,} of the labels of the final test were given to {pseudo.artifact.id} before they were kept for it."
    )
    return {
        "n_final_seen": n_seen,
        "seen_words": f"{words} Train and score again, then evaluate again." if n_seen else "",
    }


def data_facts(settings: EvaluationSettings, data: EvaluationData, n_pool: int) -> dict[str, Any]:
    """What is said about an evaluation beside its numbers."""
    return {
        "class_names": list(data.class_names),
        "truth": data.truth,
        "test": data.test,
        "test_words": f"{test_words(data, settings.methods)} Tested by {TESTED_BY[settings.test]}.",
        "tested_by": settings.test,
        "n_pool": n_pool,
        "n_chosen_from": len(data.chosen_from),
        "n_test": data.n_test,
        "n_copies": data.n_copies,
        "n_near_copies": data.n_near,
        "copies_words": copies_words(data),
        "full_epochs": for_full(settings.supervised(), settings.ratios, len(data.chosen_from)).epochs,
        "methods": {name: "Full data" if name == FULL else METHODS.title(name) for name in settings.methods},
    }
