"""What is measured of each image, and from which value on it is odd. Nothing here drops anything.

sharpness    the steepest edges of the thumbnail, as a share of its range of brightness, per pixel: low is blurred
brightness   what 95 of 100 pixels do not exceed, 0 to 1: low is dark
contrast     the range of brightness that 99 of 100 pixels lie in, 0 to 1: low is blank
shape        how often the sides' ratio is that of the pool's middle image, or the other way round: high is odd
scale        the same of the number of pixels
nearness     mean cosine with the tenth of a sample that is most alike by features: low is off-topic
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from semiprune_core.importing import images
from semiprune_core.learning.frozen.duplicates import SAMPLE
from semiprune_core.learning.frozen.neighbours import unit_rows
from semiprune_core.progress import Progress, Stopped
from semiprune_core.project.pool import Pool
from semiprune_core.records import BoolArray, FloatArray

EDGES, SHADE, RANGE = 99.5, 95, (0.5, 99.5)
"""Percentiles of the steepness, of the brightness of dark images, and of its range."""
ALIKE = 0.1
"""The share of the sample that an image is compared with: fewer, and a handful of strays are near each other."""
FAR = 3.25
"""Off-topic from so many robust deviations below the pool's middle on; docs/pool.md says how it was found."""
BLOCK = 1024


@dataclass(frozen=True)
class Oddity:
    """One kind of odd image: a measure and the value from which on an image is shown."""

    title: str
    explain: str
    measure: str
    limit: float
    low: bool
    """Whether low values are odd."""


ODDITIES: dict[str, Oddity] = {
    "blurred": Oddity("Blurred", "No edge rises quickly.", "sharpness", 0.16, True),
    "dark": Oddity("Dark", "95 of 100 pixels are darker than a quarter of white.", "brightness", 0.25, True),
    "blank": Oddity("Blank", "Hardly any difference between its pixels.", "contrast", 0.06, True),
    "odd_shape": Oddity(
        "Odd shape", "Over two and a half times as wide or as high as usual here.", "shape", 2.5, False
    ),
    "odd_size": Oddity("Odd size", "Over twelve times as many or as few pixels as usual here.", "scale", 12.0, False),
    "off_topic": Oddity("Off-topic", "Far from all other images, as features see it.", "nearness", 0.0, True),
}


def odd(kind: str, measures: Mapping[str, FloatArray]) -> BoolArray:
    """(N,) which images are odd in this way; a blank image is not called blurred or dark beside that."""
    oddity = ODDITIES[kind]
    values = measures[oddity.measure]
    limit = far_limit(values) if kind == "off_topic" else oddity.limit
    is_odd = values < limit if oddity.low else values > limit
    return is_odd & ~odd("blank", measures) if kind in ("blurred", "dark") else is_odd


def far_limit(nearness: FloatArray) -> float:
    """:data:`FAR` robust deviations below the middle; nothing is far where all are alike."""
    middle = float(np.median(nearness))
    return middle - FAR * 1.4826 * float(np.median(np.abs(nearness - middle)))


def measure(pool: Pool, progress: Progress | None = None) -> dict[str, FloatArray]:
    """What thumbnails and sizes say of each image of ``pool``, (N,) float32 by name."""
    looks = np.empty((len(pool), 3), np.float32)
    for position in range(len(pool)):
        if progress is not None and position % 200 == 0:
            _go_on(progress, position, len(pool), "thumbnails")
        looks[position] = look_at(np.asarray(images.decode(pool.thumb(position), name="thumbnail").image.convert("L")))
    width = pool.column("width").to_numpy().astype(np.float64)
    height = pool.column("height").to_numpy().astype(np.float64)
    return {
        "sharpness": looks[:, 0],
        "brightness": looks[:, 1],
        "contrast": looks[:, 2],
        "shape": _times_the_usual(width / height),
        "scale": _times_the_usual(width * height),
    }


def look_at(grey: np.ndarray) -> tuple[float, float, float]:
    """Sharpness, brightness and contrast of a grey picture (H, W) uint8.

    >>> look_at(np.full((8, 8), 51, np.uint8))
    (0.0, 0.2, 0.0)
    """
    values = grey.astype(np.float32) / 255
    low, high = np.percentile(values, RANGE)
    steps = np.concatenate([np.abs(np.diff(values, axis=axis)).ravel() for axis in (0, 1)])
    steepest = float(np.percentile(steps, EDGES))
    sharpness = steepest / float(high - low) if high > low else 0.0
    return min(sharpness, 1.0), round(float(np.percentile(values, SHADE)), 4), float(high - low)


def _times_the_usual(values: np.ndarray) -> FloatArray:
    """How many times the median, or the median how many times it: 1 and more."""
    ratio = values / np.median(values) if len(values) else values
    return np.maximum(ratio, 1 / ratio).astype(np.float32)


def nearness(features: np.ndarray, progress: Progress | None = None) -> FloatArray:
    """(N,) mean cosine of ``features`` (N, D) with those most like it among a sample, evenly spread over the pool.

    They are not centred: what all images of the pool have in common is what an image of another kind lacks. An image
    without features, a row of zeros, is not judged: 1.
    """
    rows = unit_rows(features)
    has_any = rows.any(axis=1)
    sample = np.flatnonzero(has_any)
    sample = sample[:: max(1, len(sample) // SAMPLE)]
    n_alike = max(0, min(max(1, round(ALIKE * len(sample))), len(sample) - 1))
    found = np.ones(len(rows), np.float32)
    for start in range(0, len(rows) if n_alike else 0, BLOCK):
        if progress is not None:
            _go_on(progress, start, len(rows), "off-topic")
        cosines = rows[start : start + BLOCK] @ rows[sample].T
        own = np.searchsorted(sample, np.arange(start, start + len(cosines)))
        is_own = sample[np.minimum(own, len(sample) - 1)] == np.arange(start, start + len(cosines))
        cosines[is_own, own[is_own]] = -1  # nobody is near by being itself
        found[start : start + BLOCK] = np.partition(cosines, -n_alike, axis=1)[:, -n_alike:].mean(1)
    return np.where(has_any, found, np.float32(1))


def _go_on(progress: Progress, done: int, total: int, stage: str) -> None:
    progress.report(done, total, unit="images", stage=stage)
    if progress.should_stop():
        raise Stopped
