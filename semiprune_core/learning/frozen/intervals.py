"""How sure a cross-fitted accuracy is.

What is estimated is the accuracy of the final model, trained on all labels, on the images without one. The share of
held-out answers that were right differs from it for three reasons: the labels are a sample; the images without a label
are a finite rest, itself a sample; and the folds' models share most of their labels, so a lucky set of labels is lucky
in all of them and the final model differs from each. The first two are counted exactly. The third is of the order of
1 / n beside the first, as models change less and less with one label more; how much it is was measured by simulation
(``shared_part``, docs/frozen.md). Near-duplicates are right or wrong together: they count as fewer labels.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from semiprune_core.learning.quality import PER_CLASS, Z95, Quality, Share, measure
from semiprune_core.records import BoolArray, FloatArray, IntArray

SHARED = 30.0
"""The folds' dependence widens the variance of n answers by ``SHARED / n``."""


def shared_part(n_labels: int) -> float:
    """What the dependence of folds that share ``n_labels`` adds to the variance, as a multiple of the labels' part."""
    return SHARED / n_labels


def interval(right: BoolArray, groups: IntArray, n_rest: int | None, *, shared: float | None = None) -> Share:
    """The share of ``right`` (n,) answers with its 95% interval, for ``n_rest`` images without a label.

    None or 0 for ``n_rest`` means a rest without end. ``shared`` is what the folds' dependence adds; None: as these n
    labels are all there are.
    """
    n = len(right)
    shared = shared_part(n) if shared is None else shared
    variance = (1 + shared) * design_effect(right, groups) / n + (1 / n_rest if n_rest else 0)
    share = score_interval(float(right.mean()), 1 / variance)
    return Share(int(right.sum()), n, float(right.mean()), *share)


def score_interval(p: float, n: float, z: float = Z95) -> tuple[float, float]:
    """Wilson's interval for a share ``p`` that is worth ``n`` independent answers, which need not be whole."""
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * float(np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)))
    return (0.0 if p == 0 else max(0.0, middle - half)), (1.0 if p == 1 else min(1.0, middle + half))


def design_effect(right: BoolArray, groups: IntArray) -> float:
    """How many times the variance of the mean grows because answers come in groups; at least 1.

    Where all answers are equal nothing can be seen of it: then each group counts once.
    """
    n = len(right)
    _, member = np.unique(groups, return_inverse=True)
    sizes = np.bincount(member)
    if len(sizes) == n:
        return 1.0
    p = right.mean()
    if p in (0.0, 1.0):
        return n / len(sizes)
    apart = np.bincount(member, right - p)
    return max(1.0, float((apart**2).sum() / (n * p * (1 - p))))


def measure_out_of_fold(
    predicted: IntArray,
    truth: IntArray,
    confidence: FloatArray,
    groups: IntArray,
    *,
    n_classes: int,
    n_rest: int,
) -> Quality | None:
    """Quality of held-out answers, overall and per class, with intervals for the images without a label."""
    words = (
        f"{len(truth):,} uniformly drawn labels, each answered by a model that saw neither it nor its near-duplicates; "
        "the pseudo-labels come from all labels, which tends to be a little better."
    )
    quality = measure(predicted, truth, confidence, n_classes=n_classes, measured_on=words)
    if quality is None:
        return None
    right = predicted == truth
    per_class: list[Share | None] = []
    for label in range(n_classes):
        mine = truth == label
        rest = round(n_rest * mine.mean())
        share = interval(right[mine], groups[mine], rest, shared=shared_part(len(truth))) if mine.any() else None
        per_class.append(share if mine.sum() >= PER_CLASS else None)
    return dataclasses.replace(quality, accuracy=interval(right, groups, n_rest), per_class=tuple(per_class))


def balanced_accuracy(predicted: IntArray, truth: IntArray) -> float | None:
    """Mean over the classes of the share of each that was found."""
    classes = np.unique(truth)
    if not len(classes):
        return None
    return float(np.mean([(predicted[truth == label] == label).mean() for label in classes]))
