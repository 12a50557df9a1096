"""Which classes are taken for which: against reference labels, or against held-out labels where there are none.

N images, K classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.project.pool import Pool
from semiprune_core.records import FloatArray, IntArray
from semiprune_core.results import PseudoRun
from semiprune_core.trust.quality_report import (
    confusion_matrix,
    held_out_truth,
    is_blind,
    pool_of_run,
    reference_labels_of,
    tagged_subsets,
)


@dataclass(frozen=True, eq=False)
class Confusion:
    """True classes and the model's answers, ``truth`` and ``predicted`` (n,) over ``names``, of the images at
    ``positions`` (n,); ``measured_on`` says in words on what and how many labels it stands."""

    positions: IntArray
    truth: IntArray
    predicted: IntArray
    names: tuple[str, ...]
    measured_on: str

    @property
    def counts(self) -> IntArray:
        """(K, K) true class by row."""
        return confusion_matrix(self.truth, self.predicted, len(self.names))

    def cell(self, true_class: int, model_class: int) -> IntArray:
        """Positions of the images in one cell, least sure first."""
        return self.positions[(self.truth == true_class) & (self.predicted == model_class)]


def confusion_of(
    pool: Pool, run: PseudoRun, uniform: LabelsSnapshot | None = None, subset: str | None = None
) -> Confusion | None:
    """The model's answers beside the true classes, least sure first.

    Against reference labels of images that no person labeled; where there are none, against held-out labels. None
    where these are missing too, or a run did not keep what its measured models said of them.
    """
    pool = pool_of_run(pool, run)
    mask = np.ones(len(pool), dtype=bool) if subset is None else tagged_subsets(pool)[subset]
    truth, names = reference_labels_of(pool, run)
    use = mask & ~run.labels().human_mask & (truth >= 0)
    if use.any():
        predicted, confidence = np.asarray(run.predicted()), np.asarray(run.confidence())
        said = f"the reference labels of {use.sum():,} image{'s' if use.sum() > 1 else ''} that no person labeled."
        return _confusion(np.flatnonzero(use), truth[use], predicted[use], confidence[use], names, said)
    blind = run.blind_answers()
    if blind is None:
        return None
    truth, remark = blind.labels, ""
    if is_blind(run):
        on_pool, remark = held_out_truth(pool, run, uniform)
        truth = on_pool[blind.positions]
    use = mask[blind.positions] & (truth >= 0)
    if not use.any():
        return None
    how = "answered by models that never saw them (cross-fitted)"
    if not blind.is_cross_fitted:
        how = "which the model never trained on"
    said = f"{use.sum():,} held-out label{'s' if use.sum() > 1 else ''}, {how}.{remark}"
    return _confusion(
        blind.positions[use], truth[use], blind.predicted[use], blind.confidence[use], run.class_names, said
    )


def _confusion(
    positions: IntArray,
    truth: IntArray,
    predicted: IntArray,
    confidence: FloatArray,
    names: tuple[str, ...],
    measured_on: str,
) -> Confusion:
    order = np.argsort(confidence, kind="stable")
    return Confusion(positions[order], truth[order], predicted[order], names, measured_on)
