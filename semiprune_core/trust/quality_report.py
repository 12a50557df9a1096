"""How good are the pseudo-labels, and how sure can we be? Everything the page and the command line say about it.

Without ground truth the held-out human labels answer: they are a random sample, so their accuracy estimates the whole
pool's, with a Wilson interval. With reference labels accuracy, balanced accuracy, NMI, ARI and the confusion matrix
stand beside it, over the images no person labeled. N images, C classes of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow.compute as pc

from semiprune_core.errors import InvalidDataError
from semiprune_core.labeling import LabelStore
from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.learning.quality import Z95, Bin, Share, measure, wilson
from semiprune_core.project.pool import Pool
from semiprune_core.records import UNLABELED, BoolArray, FloatArray, IntArray
from semiprune_core.results import PseudoRun
from semiprune_core.results.pseudo import FROZEN
from semiprune_core.training.data import pool_classes

SMALL_SUBSET = 5
"""Subsets with fewer images are not listed."""


@dataclass(frozen=True)
class HeldOut:
    """Accuracy on held-out human labels, per class (None where there are too few), and calibration."""

    accuracy: Share
    per_class: tuple[Share | None, ...]
    ece: float
    bins: tuple[Bin, ...]
    measured_on: str

    @property
    def gap(self) -> float:
        """Mean confidence minus accuracy: above 0 the model is surer than it may be."""
        return sum(bar.n * (bar.confidence - bar.accuracy) for bar in self.bins) / max(1, sum(b.n for b in self.bins))


@dataclass(frozen=True, eq=False)
class AgainstReference:
    """The model's answers against reference labels on ``n`` images that no person labeled.

    ``confusion`` (K, K) counts, true class by row, in the order of ``names``: the run's classes, then reference
    classes the run does not know.
    """

    n: int
    accuracy: float
    balanced_accuracy: float
    nmi: float
    ari: float
    confusion: IntArray
    names: tuple[str, ...]


@dataclass(frozen=True)
class ClassRow:
    """One class: what the pool's labels hold of it, and what the random labels lead us to expect.

    ``expected`` is the human labels' share scaled to the pool, ``low`` and ``high`` its 95% interval; None without
    uniformly drawn labels. ``verdict`` is "", "none", "too few" or "too many".
    """

    name: str
    n_pseudo: int
    n_human: int
    expected: float | None
    low: float | None
    high: float | None
    n_reference: int | None
    verdict: str


@dataclass(frozen=True, eq=False)
class Report:
    """Everything about one run, over the whole pool or one subset of it."""

    run: PseudoRun
    class_names: tuple[str, ...]
    held_out: HeldOut | None
    reference: AgainstReference | None
    classes: tuple[ClassRow, ...]
    subset: str
    n_images: int

    def to_json(self) -> dict[str, Any]:
        """The form of ``semiprune quality --json``."""
        held, reference = self.held_out, self.reference
        return {
            "run": self.run.artifact.id,
            "subset": self.subset,
            "n_images": self.n_images,
            "held_out": None
            if held is None
            else {
                "accuracy": held.accuracy.value,
                "low": held.accuracy.low,
                "high": held.accuracy.high,
                "n": held.accuracy.n,
                "ece": held.ece,
                "measured_on": held.measured_on,
                "labels_to_halve": labels_to_halve(held.accuracy),
                "per_class": {
                    name: None
                    if share is None
                    else {
                        "accuracy": share.value,
                        "low": share.low,
                        "high": share.high,
                        "n": share.n,
                        "labels_to_halve": labels_to_halve(share),
                    }
                    for name, share in zip(self.class_names, held.per_class, strict=True)
                },
            },
            "reference": None
            if reference is None
            else {
                "accuracy": reference.accuracy,
                "balanced_accuracy": reference.balanced_accuracy,
                "nmi": reference.nmi,
                "ari": reference.ari,
                "n": reference.n,
            },
            "classes": [vars(row) for row in self.classes],
        }


# --- the numbers -----------------------------------------------------------------------------------------------------


def confusion_matrix(truth: IntArray, predicted: IntArray, n_classes: int) -> IntArray:
    """(n_classes, n_classes) counts, true class by row."""
    if len(truth) != len(predicted):
        raise InvalidDataError(f"There are {len(predicted)} predictions for {len(truth)} images.")
    flat = np.asarray(truth, np.int64) * n_classes + predicted
    return np.bincount(flat, minlength=n_classes * n_classes).reshape(n_classes, n_classes)


def balanced_accuracy(confusion: IntArray) -> float:
    """The mean of the accuracies of the classes that occur."""
    n = confusion.sum(axis=1)
    return float((np.diag(confusion)[n > 0] / n[n > 0]).mean())


def nmi(confusion: IntArray) -> float:
    """Normalised mutual information, by the arithmetic mean of the two entropies; 1 for equal partitions."""
    p = confusion / confusion.sum()
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    seen = p > 0
    information = float((p[seen] * np.log(p[seen] / np.outer(rows, columns)[seen])).sum())
    middle = (_entropy(rows) + _entropy(columns)) / 2
    return 1.0 if middle == 0 else max(0.0, information) / middle


def _entropy(p: FloatArray) -> float:
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


def ari(confusion: IntArray) -> float:
    """The adjusted Rand index (Hubert and Arabie 1985): pairs put together by both, corrected for chance."""
    together = _pairs(confusion).sum()
    rows, columns = _pairs(confusion.sum(axis=1)).sum(), _pairs(confusion.sum(axis=0)).sum()
    total = _pairs(np.array([confusion.sum()])).sum()
    by_chance = rows * columns / total if total else 0.0
    most = (rows + columns) / 2
    return 1.0 if most == by_chance else float((together - by_chance) / (most - by_chance))


def _pairs(n: IntArray) -> FloatArray:
    n = np.asarray(n, np.float64)
    return n * (n - 1) / 2


def interval_width(share: float, n: int, z: float = Z95) -> float:
    """The width of the Wilson interval around ``share`` of ``n``, for a share that need not be a whole count."""
    return float(2 * z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)))


def labels_to_halve(share: Share) -> int:
    """How many more held-out labels, at the same accuracy, make the interval half as wide.

    >>> labels_to_halve(wilson(85, 100))
    301
    """
    wanted = (share.high - share.low) / 2
    low, high = share.n, 16 * share.n + 64  # a width falls at least like 1 / sqrt(n), and like 1 / n at the ends
    while low < high:
        middle = (low + high) // 2
        if interval_width(share.value, middle) <= wanted:
            high = middle
        else:
            low = middle + 1
    return low - share.n


def class_rows(
    labels: IntArray, human: IntArray, uniform: IntArray, reference: IntArray | None, names: Sequence[str]
) -> tuple[ClassRow, ...]:
    """Class by class, what ``labels`` (N,) hold against the shares of uniformly drawn human labels ``uniform`` (M,).

    ``human`` (N,) is -1 where no person spoke; ``reference`` (N,) is -1 where unknown. A class is called out when its
    count lies outside the interval that all classes together keep with 95% (Bonferroni), so that among many classes
    no more than one false alarm in twenty reports is to be expected.
    """
    n_classes, n = len(names), len(labels)
    counts = np.bincount(labels, minlength=n_classes)
    by_people = np.bincount(human[human >= 0], minlength=n_classes)
    drawn = np.bincount(uniform, minlength=n_classes)
    truth = None if reference is None else np.bincount(reference[reference >= 0], minlength=n_classes)
    strict = NormalDist().inv_cdf(1 - 0.025 / n_classes)
    rows = []
    for number, name in enumerate(names):
        share = wilson(int(drawn[number]), len(uniform)) if len(uniform) else None
        verdict = "none" if not counts[number] else ""
        if share is not None and not verdict:
            wide = wilson(share.right, share.n, strict)
            verdict = (
                "too few" if counts[number] < wide.low * n else "too many" if counts[number] > wide.high * n else ""
            )
        rows.append(
            ClassRow(
                name,
                int(counts[number]),
                int(by_people[number]),
                None if share is None else share.value * n,
                None if share is None else share.low * n,
                None if share is None else share.high * n,
                None if truth is None else int(truth[number]),
                verdict,
            )
        )
    return tuple(rows)


# --- one run ---------------------------------------------------------------------------------------------------------


def match_classes(labels: IntArray, names: Sequence[str], wanted: Sequence[str]) -> IntArray:
    """``labels`` over ``names`` as indices into ``wanted``; -1 for a name it does not have."""
    place = {name: number for number, name in enumerate(wanted)}
    lookup = np.array([*(place.get(name, UNLABELED) for name in names), UNLABELED], dtype=np.int64)
    return lookup[labels]


def pool_of_run(pool: Pool, run: PseudoRun) -> Pool:
    """The images a run knows: the pool may have grown behind them since."""
    n = int(run.artifact.facts["n_images"])
    if n > len(pool):
        raise InvalidDataError(
            f"{run.artifact.id} labels {n:,} images, the pool has {len(pool):,}. Train again on the Train page."
        )
    return pool if n == len(pool) else pool.take(np.arange(n))


def reference_labels_of(pool: Pool, run: PseudoRun) -> tuple[IntArray, tuple[str, ...]]:
    """Reference labels (N,) over the run's classes followed by the classes it does not know; -1 for none."""
    places = pool_classes(pool, run)
    missing = [name for name, place in zip(pool.class_names, places) if place < 0]
    unknown = tuple(f"{name} (reference)" if name in run.class_names else name for name in missing)
    places[:-1][places[:-1] < 0] = len(run.class_names) + np.arange(len(unknown))
    return places[pool.reference_labels], (*run.class_names, *unknown)


def tagged_subsets(pool: Pool) -> dict[str, BoolArray]:
    """Masks (N,) of the subsets worth a look of their own: corrupted or not, each corruption, each import."""
    masks: dict[str, BoolArray] = {}
    column = pool.column("corruption")
    corrupted = pc.is_valid(column).to_numpy(zero_copy_only=False)
    if corrupted.any():
        masks["Corrupted images"] = corrupted
        masks["Images as they came"] = ~corrupted
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        for code, name in enumerate(column.dictionary.to_pylist()):
            masks[f"Corruption: {name.replace('_', ' ')}"] = codes == code
    if len(pool.segments) > 1:
        owner = np.searchsorted(pool.starts, pool.rows, side="right") - 1
        for number, segment in enumerate(pool.segments):
            masks[f"Import: {segment.artifact.id}"] = owner == number
    return {name: mask for name, mask in masks.items() if mask.sum() >= SMALL_SUBSET}


def is_blind(run: PseudoRun) -> bool:
    """Whether the model that gave the pseudo-labels never saw the held-out labels."""
    settings = run.artifact.settings
    if run.start == FROZEN:  # cross-fitted
        return False
    return not settings.get("refit") and int(settings.get("cross_fit") or 0) <= 1


def held_out_truth(pool: Pool, run: PseudoRun, uniform: LabelsSnapshot | None) -> tuple[IntArray, str]:
    """(N,) the human label of every held-out image that may serve an unbiased estimate, -1 elsewhere; and a remark.

    The first, blind labels of uniformly drawn images count. Where none are recorded (labels came from a file), the
    run's own held-out labels are taken and the remark says so.
    """
    held = np.asarray(run.held_out_mask())
    own = np.where(held, np.asarray(run.labels().labels), UNLABELED)
    if uniform is None or not len(uniform):
        return own, " They were not drawn here, so it is unknown whether they are a random sample."
    blind, drawn = uniform.on_pool(pool.ids, pool.duplicate_of)
    truth = match_classes(blind, uniform.class_names, run.class_names)
    usable = held & drawn & (truth >= 0)
    if not usable.any():
        return own, " None of them was drawn uniformly, so the estimate may be biased."
    left_out = int((held & ~usable).sum())
    remark = f" {left_out} more were held out but not drawn uniformly; they are left out." if left_out else ""
    return np.where(usable, truth, UNLABELED), remark


def report(
    pool: Pool,
    run: PseudoRun,
    *,
    store: LabelStore | None = None,
    subset: str | None = None,
) -> Report:
    """Everything known about the pseudo-labels of ``run``, or of one tagged subset of the pool only."""
    pool = pool_of_run(pool, run)
    mask = np.ones(len(pool), dtype=bool)
    if subset is not None:
        subsets = tagged_subsets(pool)
        if subset not in subsets:
            listed = ", ".join(subsets) or "none"
            raise InvalidDataError(f"There is no subset '{subset}' in this pool. Known: {listed}.")
        mask = subsets[subset]
    labels = run.labels()
    predicted, confidence = np.asarray(run.predicted()), np.asarray(run.confidence())
    uniform = store.uniform_labels() if store is not None else None
    truth, names = reference_labels_of(pool, run)
    human = np.where(labels.human_mask, labels.labels, UNLABELED)
    drawn: IntArray = np.empty(0, np.int64)
    if uniform is not None and len(uniform):
        blind, is_drawn = uniform.on_pool(pool.ids, pool.duplicate_of)
        blind = match_classes(blind, uniform.class_names, run.class_names)
        drawn = blind[is_drawn & (blind >= 0) & mask]
    has_reference = bool((truth >= 0).any())
    return Report(
        run,
        run.class_names,
        _held_out(pool, run, uniform, predicted, confidence, mask, subset),
        _against(predicted, truth, mask & ~labels.human_mask & (truth >= 0), names) if has_reference else None,
        class_rows(
            labels.labels[mask],
            human[mask],
            drawn,
            np.where(truth < len(run.class_names), truth, UNLABELED)[mask] if has_reference else None,
            run.class_names,
        ),
        subset or "All images",
        int(mask.sum()),
    )


def _held_out(
    pool: Pool,
    run: PseudoRun,
    uniform: LabelsSnapshot | None,
    predicted: IntArray,
    confidence: FloatArray,
    mask: BoolArray,
    subset: str | None,
) -> HeldOut | None:
    if not is_blind(run):  # the final model saw them; what the measured models said was kept by the run
        stored = run.quality()
        return held_out_from_json(stored) if stored and subset is None else None
    truth, remark = held_out_truth(pool, run, uniform)
    use = (truth >= 0) & mask
    measured = measure(
        predicted[use],
        truth[use],
        confidence[use],
        n_classes=len(run.class_names),
        measured_on=f"{int(use.sum())} human labels that the model never trained on.{remark}",
    )
    if measured is None:
        return None
    return HeldOut(measured.accuracy, measured.per_class, measured.ece, measured.bins, measured.measured_on)


def held_out_from_json(values: Mapping[str, Any]) -> HeldOut:
    """What a run wrote down about itself."""
    shares = [None if entry is None else Share(**entry) for entry in values["per_class"]]
    bins = tuple(Bin(**entry) for entry in values["bins"])
    return HeldOut(Share(**values["accuracy"]), tuple(shares), values["ece"], bins, values["measured_on"])


def _against(predicted: IntArray, truth: IntArray, use: BoolArray, names: tuple[str, ...]) -> AgainstReference | None:
    n = int(use.sum())
    if not n:
        return None
    table = confusion_matrix(truth[use], predicted[use], len(names))
    right = float(np.trace(table) / n)
    return AgainstReference(n, right, balanced_accuracy(table), nmi(table), ari(table), table, names)


def rightness(pool: Pool, run: PseudoRun, human: IntArray | None = None) -> IntArray:
    """(N,) 1 where the model's answer is right, 0 where it is wrong, -1 where nobody knows.

    ``human`` (N,), labels over the run's classes, wins over reference labels.
    """
    truth, _ = reference_labels_of(pool_of_run(pool, run), run)
    if human is not None:
        truth = np.where(human >= 0, human, truth)
    return np.where(truth < 0, -1, (np.asarray(run.predicted()) == truth).astype(np.int64))


# --- two runs --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two runs over the images both know. ``differ`` are positions, ``only_first``/``only_second`` were right alone.

    These two counts come from held-out labels that neither model saw, ``n_common`` of them.
    """

    agreement: float
    differ: IntArray
    n_common: int
    only_first: int
    only_second: int
    counts: tuple[tuple[str, int, int], ...]
    """(class, images of the first, images of the second)"""


def agreement(first: PseudoRun, second: PseudoRun) -> float:
    """The share of images to which two runs give the same class name."""
    n = min(len(first.predicted()), len(second.predicted()))
    other = match_classes(np.asarray(second.predicted()[:n]), second.class_names, first.class_names)
    return float((np.asarray(first.predicted()[:n]) == other).mean()) if n else 1.0


def compare(pool: Pool, first: PseudoRun, second: PseudoRun, *, uniform: LabelsSnapshot | None = None) -> Comparison:
    n = min(len(pool_of_run(pool, first)), len(pool_of_run(pool, second)))
    names = (*first.class_names, *(name for name in second.class_names if name not in first.class_names))
    first_labels = np.asarray(first.predicted()[:n])
    second_labels = match_classes(np.asarray(second.predicted()[:n]), second.class_names, names)
    sure = np.maximum(np.asarray(first.confidence()[:n]), np.asarray(second.confidence()[:n]))
    differ = np.flatnonzero(first_labels != second_labels)
    common = np.zeros(n, dtype=bool)
    truth = np.full(n, UNLABELED)
    if is_blind(first) and is_blind(second):
        truth = held_out_truth(pool_of_run(pool, first), first, uniform)[0][:n]
        common = (truth >= 0) & np.asarray(second.held_out_mask()[:n])
    first_right, second_right = (first_labels == truth)[common], (second_labels == truth)[common]
    counts = tuple(
        (name, int((first_labels == number).sum()), int((second_labels == number).sum()))
        for number, name in enumerate(names)
    )
    return Comparison(
        float(1 - len(differ) / n) if n else 1.0,
        differ[np.argsort(-sure[differ], kind="stable")],
        int(common.sum()),
        int((first_right & ~second_right).sum()),
        int((second_right & ~first_right).sum()),
        counts,
    )
