"""Which images of a pool may tune and which may test, where it has no test split: two halves that never meet.

A hash of its id gives every picture a place between 0 and 1. Those below one half may be tested on by evaluations,
those above may be compared on by searches; both take what they want of their own half. So no search tunes on the test
images of an evaluation, whatever the seeds, the fractions, the labels at hand, and which of the two came first.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from semiprune_core import files
from semiprune_core.checks import check_range
from semiprune_core.errors import ConflictError
from semiprune_core.labeling.drawing import ranks
from semiprune_core.records import BoolArray, FloatArray, IntArray
from semiprune_core.trials.book import TrialBook

HALF = 0.5
RULE = "place = rank of the image id by purpose 'test or tune', seed 0; tests from below 0.5, searches from above"
"""In the manifests of searches and evaluations."""
TESTED = "tested.json"
"""In a job's own folder: the hash of what its trials are tested on."""


def places(ids: np.ndarray, duplicate_of: IntArray) -> FloatArray:
    """(N,) in [0, 1]: the place of each image; copies of a picture have that of the first."""
    return (ranks(np.asarray(ids, np.uint64), 0, "test or tune") / 2.0**64)[duplicate_of]


def part_to_test(
    candidates: IntArray, ids: np.ndarray, duplicate_of: IntArray, fraction: float, together: IntArray | None = None
) -> BoolArray:
    """(N,) True for a ``fraction`` of the pictures at ``candidates`` (positions), copies included, of the test half.

    ``together`` (N,) has one number, a position, for images that are nearly alike; it is theirs whose half counts too.
    """
    check_range("fraction", fraction, low=0, high=1, low_open=True, high_open=True)
    together = duplicate_of if together is None else together
    place, pictures = places(ids, duplicate_of), np.unique(duplicate_of[candidates])
    eligible = pictures[(place[pictures] < HALF) & (place[together[pictures]] < HALF)]
    order = eligible[np.lexsort((place[eligible], place[together[eligible]]))]
    return np.isin(duplicate_of, order[: _count(fraction, pictures)])


def part_to_compare(
    candidates: IntArray,
    ids: np.ndarray,
    duplicate_of: IntArray,
    fraction: float,
    seed: int,
    together: IntArray | None = None,
) -> BoolArray:
    """(N,) the same of the other half, drawn with ``seed``."""
    check_range("fraction", fraction, low=0, high=1, low_open=True, high_open=True)
    together = duplicate_of if together is None else together
    place, pictures = places(ids, duplicate_of), np.unique(duplicate_of[candidates])
    eligible = pictures[(place[pictures] >= HALF) & (place[together[pictures]] >= HALF)]
    drawn = ranks(np.asarray(ids, np.uint64), seed, "compare")
    order = eligible[np.lexsort((drawn[eligible], drawn[together[eligible]]))]
    return np.isin(duplicate_of, order[: _count(fraction, pictures)])


def _count(fraction: float, pictures: IntArray) -> int:
    return max(1, round(fraction * len(pictures)))


def hold_out(candidates: IntArray, duplicate_of: IntArray, fraction: float, seed: int) -> BoolArray:
    """(N,) True for a random ``fraction`` of the ``candidates`` and their copies, whichever half they are of: what
    searches compared on before there were halves.

    >>> hold_out(np.arange(10), np.arange(10), 0.2, seed=0).sum()
    np.int64(2)
    """
    pictures = np.unique(duplicate_of[candidates])
    chosen = np.random.default_rng(seed).permutation(pictures)[: _count(fraction, pictures)]
    return np.isin(duplicate_of, chosen)


def ids_hash(ids: np.ndarray) -> str:
    """Of a set of images, whatever their order."""
    return hashlib.sha256(np.sort(np.asarray(ids, np.uint64)).tobytes()).hexdigest()


def held_out_facts(ids: np.ndarray, seed: int) -> dict[str, Any]:
    """For a manifest: which images were held out and by what rule; their ids are in a file beside it."""
    return {"rule": RULE, "seed": seed, "n_images": len(ids), "ids_sha256": ids_hash(ids)}


def keep_to_test(folder: Path, book: TrialBook, tested: str) -> None:
    """Note what the trials of a job are tested on (by hash); refuse to go on with those that were tested otherwise."""
    path = folder / TESTED
    noted = files.read_json(path)["sha256"] if path.is_file() else None
    if len(book) and noted != tested:
        raise ConflictError(
            "This run began with other test images, as earlier versions held them out. Start a new one.",
            code="PINS_CHANGED",
        )
    files.write_json(path, {"sha256": tested})
