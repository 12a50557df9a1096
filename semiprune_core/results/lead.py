"""How sure the lead of one coreset over another is: the interval of a mean over seeds and test images.

A lead is the mean of a table (seeds, images) of differences -1, 0 or 1: right with the one coreset and wrong with the
other. Seeds waver, as other weights and other random coresets would have given another lead; images waver, as others
would have been compared on. Both are drawn, so their variances add up (a two-way layout of random effects, Searle et
al. 1992, "Variance Components", chapter 4). What is left when both are taken out is in both, and is counted once.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from semiprune_core.records import BoolArray, FloatArray

CONFIDENCE = 0.95
"""Of the interval of a difference, all that were compared together."""


def packed(right: BoolArray) -> str:
    """Which of the compared images (n,) were right, as a short text.

    >>> packed(np.array([True, False, True])), unpacked(packed(np.array([True, False, True])), 3).tolist()
    ('oA==', [True, False, True])
    """
    return base64.b64encode(np.packbits(right).tobytes()).decode("ascii")


def unpacked(text: str, n_images: int) -> BoolArray:
    """(n,) what :func:`packed` made a text of."""
    return np.unpackbits(np.frombuffer(base64.b64decode(text), np.uint8), count=n_images).astype(bool)


@dataclass(frozen=True)
class Waver:
    """The variance of a mean that is due to one cause, and the degrees of freedom it was estimated with."""

    variance: float
    freedom: float


def seed_waver(tried: FloatArray, other: FloatArray, *, resolution: float) -> Waver:
    """Of the mean difference over seeds between one of ``tried`` (values, seeds) and ``other`` (seeds,).

    Both are accuracies, measured in steps of ``resolution``. The deviation is pooled over all values. All differences
    share the few trainings of ``other``, which by luck may waver little: the deviation is not taken for less than that
    of two trainings that waver like all others here, once what is common to a seed is taken out.
    """
    n_values, n_seeds = tried.shape
    freedom = n_values * (n_seeds - 1)
    differences = (tried - other).var(axis=1, ddof=1).mean()
    every = np.vstack([tried, other])
    left = every - every.mean(axis=1, keepdims=True) - every.mean(axis=0) + every.mean()
    deviation = max(math.sqrt(max(differences, 2 * (left**2).sum() / freedom)), resolution)
    return Waver(deviation**2 / n_seeds, freedom)


def image_waver(leads: FloatArray) -> Waver:
    """Of the mean of ``leads`` (seeds, images) over images, beyond what seeds waver by.

    >>> image_waver(np.array([[1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]])).variance  # the variance 1/3 of 4 images
    0.08333333333333333
    """
    n_seeds, n_images = leads.shape
    if n_images < 2:
        return Waver(0.25, 1)  # the most that an image can waver
    by_image = leads.mean(axis=0)
    left = leads - by_image - leads.mean(axis=1, keepdims=True) + leads.mean()
    common = (left**2).sum() / ((n_seeds - 1) * (n_images - 1)) / (n_seeds * n_images)
    return Waver(max(float(by_image.var(ddof=1)) / n_images - common, 0.0), n_images - 1)


def half_interval(wavers: Sequence[Waver], *, n_compared: int = 1) -> float:
    """Half of Student's interval for the sum of ``wavers``, with Satterthwaite's degrees of freedom; Bonferroni's
    correction where it is the best of ``n_compared``."""
    variance = sum(waver.variance for waver in wavers)
    if variance == 0:
        return 0.0
    freedom = variance**2 / sum(waver.variance**2 / waver.freedom for waver in wavers)
    return float(stdtrit(freedom, 1 - (1 - CONFIDENCE) / (2 * n_compared)) * math.sqrt(variance))
