"""What an evaluation stands on: the labels it trains with, the images it tests on, and what is said of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from semiprune_core.errors import InvalidDataError, MissingStepError
from semiprune_core.evaluation.settings import EvaluationSettings
from semiprune_core.labeling import open_store
from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.methods import METHODS
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import BoolArray, IntArray
from semiprune_core.results import PseudoRun, check_same_pool, latest_pseudo
from semiprune_core.training import reference_on
from semiprune_core.training.data import pool_classes
from semiprune_core.trials import FULL, TESTED_BY
from semiprune_core.trials.apart import part_to_test

TEST_FRACTION = 0.2
"""Of the truly labeled images, held out where there is no test split."""


@dataclass(frozen=True, eq=False)
class EvaluationData:
    """What coresets are trained with and tested on.

    ``labels`` (N,) for the pool's images, of the kind ``truth``. ``test`` is "split" or "held out"; for the latter
    ``held_mask`` (N,) marks the images of the pool that are tested on and never trained on, and ``held_labels`` (N,)
    are their true labels.
    """

    truth: str
    labels: IntArray
    class_names: tuple[str, ...]
    test: str
    n_test: int
    held_mask: BoolArray
    held_labels: IntArray

    @property
    def chosen_from(self) -> IntArray:
        """Positions of the images that coresets are chosen from."""
        return np.flatnonzero(~self.held_mask)


def tested_ids(project: Project, data: EvaluationData, pool: Pool) -> np.ndarray:
    """(n,) uint64: the images that are tested on."""
    if data.test == "split":
        tests = project.test_set()
        return tests.ids[reference_on(data.class_names, tests) >= 0]
    return pool.ids[data.held_mask & (data.held_labels >= 0)]


def evaluation_data(
    project: Project,
    truth: str | None = None,
    *,
    pool: Pool | None = None,
    snapshot: LabelsSnapshot | None = None,
    pseudo: PseudoRun | None = None,
) -> EvaluationData:
    """The labels of kind ``truth``, or the best there are, and what to test on; refused in words where there is none.

    ``snapshot`` and ``pseudo`` are the people's labels and the pseudo-labels to use instead of the present ones.
    """
    pool = pool or project.pool()
    snapshot = open_store(project).snapshot() if snapshot is None else snapshot  # one without labels is one, too
    kind, labels, names = _truth(project, truth, pool, snapshot, pseudo)
    if len(names) < 2:
        raise InvalidDataError(f"An evaluation needs at least two classes; there are {len(names)}.")
    nobody = np.zeros(len(pool), dtype=bool)
    n_split = int((reference_on(names, project.test_set()) >= 0).sum())
    if n_split:
        return EvaluationData(kind, labels, names, "split", n_split, nobody, labels)
    true = labels if kind != "pseudo" else _true_labels(names, pool, snapshot)
    labeled_idx = np.flatnonzero(true >= 0)
    if len(labeled_idx) < 2:
        raise MissingStepError(
            "There is nothing to test on: the pool has no test split and no image has a true label. "
            "Import test images, or label some."
        )
    held = part_to_test(labeled_idx, pool.ids, pool.duplicate_of, TEST_FRACTION)
    n_test = int((held & (true >= 0)).sum())
    if not n_test:
        raise MissingStepError(f"{len(labeled_idx):,} labeled images are too few to hold some out. Label more.")
    return EvaluationData(kind, labels, names, "held out", n_test, held, true)


def _truth(
    project: Project, wanted: str | None, pool: Pool, snapshot: LabelsSnapshot, pseudo: PseudoRun | None
) -> tuple[str, IntArray, tuple[str, ...]]:
    human, _ = snapshot.on_pool(pool.ids, pool.duplicate_of)
    complete = {"reference": pool.reference_labels, "human": human}
    for kind, labels in complete.items():
        if wanted in (None, kind) and len(labels) and (labels >= 0).all():
            return kind, labels, pool.class_names if kind == "reference" else snapshot.class_names
    if wanted == "pseudo":
        pseudo = pseudo or latest_pseudo(project)
        check_same_pool(pseudo.artifact, pool)
        return "pseudo", np.asarray(pseudo.labels().labels, dtype=np.int64), pseudo.class_names
    if wanted is not None:
        n = int((complete[wanted] < 0).sum())
        raise MissingStepError(
            f"{n:,} of {len(pool):,} images have no {wanted} label. Choose other labels to train with."
        )
    raise MissingStepError(
        "Coresets are trained with true labels, but neither reference labels nor human labels cover every image. "
        "Use pseudo-labels instead (--truth pseudo)."
    )


def _true_labels(names: tuple[str, ...], pool: Pool, snapshot: LabelsSnapshot) -> IntArray:
    """(N,) the true label of each image where one is known: a person's, else the reference one; -1 elsewhere."""
    human, _ = snapshot.on_pool(pool.ids, pool.duplicate_of)
    by_people = pool_classes(pool, names, snapshot.class_names)[human]
    return np.where(by_people >= 0, by_people, reference_on(names, pool))


def data_facts(settings: EvaluationSettings, data: EvaluationData, n_pool: int) -> dict[str, Any]:
    """What is said about an evaluation beside its numbers."""
    test_words = {
        "split": f"Tested on the {data.n_test:,} test images.",
        "held out": f"The pool has no test split: {data.n_test:,} of its images were held out of every coreset "
        "and tested on.",
    }
    return {
        "class_names": list(data.class_names),
        "truth": data.truth,
        "test": data.test,
        "test_words": f"{test_words[data.test]} Tested by {TESTED_BY[settings.test]}.",
        "tested_by": settings.test,
        "n_pool": n_pool,
        "n_chosen_from": len(data.chosen_from),
        "n_test": data.n_test,
        "methods": {name: "Full data" if name == FULL else METHODS.title(name) for name in settings.methods},
    }
