"""How common each class is in the pool: only labels that were drawn uniformly may say so; numpy only.

Labels that a person added on purpose teach, and nothing else. Wherever learning depends on how common a class is (the
labeled batches, the weights of a logistic regression, distribution alignment) it goes by :func:`drawn_counts`.
"""

from __future__ import annotations

import numpy as np

from semiprune_core.records import BoolArray, FloatArray, IntArray

FEWEST = 20
"""Fewer uniformly drawn labels among others say nothing about class shares."""
UNSEEN = 0.5
"""What a class counts that has labels, none of them drawn: it is there, and rare."""


def drawn_counts(labels: IntArray, uniform_mask: BoolArray | None, n_classes: int) -> FloatArray | None:
    """(C,) uniformly drawn labels of each class; None where there are too few of them to say anything.

    ``labels`` (n,) are those to learn from, ``uniform_mask`` (n,) which of them were drawn uniformly (all where None).

    >>> drawn_counts(np.array([0] * 15 + [1] * 10 + [2]), np.array([True] * 15 + [True] * 5 + [False] * 6), 3)
    array([15. ,  5. ,  0.5])
    """
    counts = np.bincount(labels, minlength=n_classes).astype(float)
    if uniform_mask is None or uniform_mask.all():
        return counts
    if uniform_mask.sum() < FEWEST:
        return None
    drawn = np.bincount(labels[uniform_mask], minlength=n_classes)
    return np.where(counts > 0, np.maximum(drawn, UNSEEN), 0.0)


def image_weights(labels: IntArray, drawn: FloatArray | None) -> FloatArray | None:
    """(n,) what each label weighs, so that classes weigh as they were ``drawn`` (C,); None where all weigh the same.

    >>> image_weights(np.array([0, 1, 1, 1]), np.array([1.0, 1.5]))
    array([1. , 0.5, 0.5, 0.5])
    """
    if drawn is None:
        return None
    counts = np.bincount(labels, minlength=len(drawn))
    weights = (drawn / np.maximum(counts, 1))[labels]
    return None if (weights == 1).all() else weights
