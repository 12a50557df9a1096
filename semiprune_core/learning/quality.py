"""How good the pseudo-labels are, measured without ground truth.

The labeled subset is random, so a random part of it, held out from training, is a fair sample of the whole pool.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from semiprune_core.checks import check_range
from semiprune_core.records import FloatArray, IntArray

AT_LEAST = 50
ENOUGH = 4 * AT_LEAST
"""From this many labels on, at least AT_LEAST are held out."""
FEWEST = 20
"""Below this many labels none are held out: the number would mean nothing."""
PER_CLASS = 5
"""A class's own accuracy is given from this many held-out labels on."""
RED_ACCURACY, AMBER_ACCURACY = 0.50, 0.75
"""Below these lower ends of the interval labels are not, or not without care, to be pruned with (``trust.check``)."""
Z95 = 1.959963984540054


@dataclass(frozen=True)
class Share:
    """``right`` of ``n``, as a share with its Wilson 95% interval."""

    right: int
    n: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Bin:
    """One bar of the reliability diagram: ``n`` images with confidence in [low, high)."""

    low: float
    high: float
    n: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Quality:
    """Accuracy overall and per class (None where a class has too few held-out labels), and calibration.

    ``ece`` is the expected calibration error: the mean gap between confidence and accuracy over the bins, weighted by
    their size. ``measured_on`` says in words what the numbers are about.
    """

    accuracy: Share
    per_class: tuple[Share | None, ...]
    ece: float
    bins: tuple[Bin, ...]
    measured_on: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def wilson(right: int, n: int, z: float = Z95) -> Share:
    """The Wilson score interval for ``right`` of ``n`` (Wilson 1927); never empty, never outside [0, 1]."""
    check_range("n", n, low=1)
    check_range("right", right, low=0, high=n)
    p = right / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low = 0.0 if right == 0 else float(middle - half)
    high = 1.0 if right == n else float(middle + half)
    return Share(int(right), int(n), p, low, high)


def on_held_out(n: int, *, refitted: bool) -> str:
    """What the accuracy stands on, in words; ``refitted`` where another model than the measured one answers."""
    if refitted:
        return (
            f"{n} human labels held out from a first model; the pseudo-labels come from a second one trained on all "
            "labels, which tends to be a little better."
        )
    return f"{n} human labels that the model never trained on."


def labels_needed(accuracy: float, half_width: float, z: float = Z95) -> int:
    """How many held-out labels give an interval of about +/- ``half_width`` around ``accuracy``."""
    check_range("half_width", half_width, low=0, high=0.5, low_open=True)
    return int(np.ceil(z * z * max(accuracy * (1 - accuracy), 0.01) / half_width**2))


def held_out_count(n_labels: int, fraction: float) -> int:
    """How many of ``n_labels`` are held out: the fraction, at least AT_LEAST where there are ENOUGH."""
    if fraction == 0 or n_labels < FEWEST:
        return 0
    wanted = round(fraction * n_labels)
    return max(wanted, AT_LEAST) if n_labels >= ENOUGH else max(wanted, 1)


def split_held_out(
    labels: IntArray, fraction: float, rng: np.random.Generator, measurable: IntArray | None = None
) -> tuple[IntArray, IntArray]:
    """Positions into ``labels`` (n,) to train on and to hold out, both sorted.

    The draw is uniform over the ``measurable`` positions (all where None). A draw that would leave a class without any
    label to train on is drawn anew; where that is hopeless, one label of such a class goes back to training.
    """
    candidates = np.arange(len(labels)) if measurable is None else measurable
    n_held = held_out_count(len(candidates), fraction)
    return _keep_classes(labels, lambda: rng.permutation(candidates)[:n_held], rng)


def split_folds(
    labels: IntArray, k: int, rng: np.random.Generator, measurable: IntArray | None = None
) -> list[tuple[IntArray, IntArray]]:
    """``k`` pairs (train, held out); every ``measurable`` label is held out in one, but for the last of a class."""
    candidates = np.arange(len(labels)) if measurable is None else measurable
    parts = np.array_split(rng.permutation(candidates), k)
    return [_keep_classes(labels, lambda part=part: part, rng, draws=1) for part in parts]


def _keep_classes(labels: IntArray, draw: Any, rng: np.random.Generator, draws: int = 50) -> tuple[IntArray, IntArray]:
    classes = np.unique(labels)
    held = np.zeros(len(labels), dtype=bool)
    for _ in range(draws):
        held[:] = False
        held[draw()] = True
        starved = np.setdiff1d(classes, labels[~held])
        if not len(starved):
            break
    for label in starved:
        held[rng.choice(np.flatnonzero(labels == label))] = False
    return np.flatnonzero(~held), np.flatnonzero(held)


def measure(
    predicted: IntArray, truth: IntArray, confidence: FloatArray, *, n_classes: int, measured_on: str, n_bins: int = 10
) -> Quality | None:
    """Quality of ``predicted`` (n,) against ``truth`` (n,); None for no images at all."""
    if not len(truth):
        return None
    right = predicted == truth
    per_class = []
    for label in range(n_classes):
        mine = truth == label
        per_class.append(wilson(int(right[mine].sum()), int(mine.sum())) if mine.sum() >= PER_CLASS else None)
    bins = reliability(right, confidence, n_bins)
    ece = sum(bar.n * abs(bar.confidence - bar.accuracy) for bar in bins) / len(truth)
    return Quality(wilson(int(right.sum()), len(right)), tuple(per_class), float(ece), bins, measured_on)


def reliability(right: np.ndarray, confidence: FloatArray, n_bins: int = 10) -> tuple[Bin, ...]:
    """Equal-width bins of confidence, empty ones left out."""
    edges = np.linspace(0, 1, n_bins + 1)
    place = np.clip(np.digitize(confidence, edges) - 1, 0, n_bins - 1)
    bins = []
    for number in range(n_bins):
        mine = place == number
        if mine.any():
            bins.append(
                Bin(
                    float(edges[number]),
                    float(edges[number + 1]),
                    int(mine.sum()),
                    float(confidence[mine].mean()),
                    float(right[mine].mean()),
                )
            )
    return tuple(bins)
