"""Which images of a data set may tune and which only confirm, and pools cut from one side or the other.

Starting values, thresholds and everything else that is chosen by looking at accuracy is chosen on tuning images alone.
What is claimed is measured on the others, whose coresets nobody looks at before.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from image_data import Data, fashion, npz_file

TUNE, CONFIRM = "tune", "confirm"
WORDS = {TUNE: "may tune", CONFIRM: "only confirm"}
TESTS_OF_TUNING = 5
"""One in so many tuning images is kept for testing, as the test images proper belong to the claims."""


@dataclass(frozen=True)
class Part:
    """Images ``first`` to ``last`` of a data set, counted from 1 in the order of its file."""

    first: int
    last: int
    role: str


PARTS: dict[str, tuple[Part, ...]] = {
    "fashion": (Part(1, 30_000, TUNE), Part(30_001, 60_000, CONFIRM)),
    "cifar10": (Part(1, 6_000, TUNE), Part(6_001, 12_000, CONFIRM)),
    "photos": (Part(1, 1_500, CONFIRM),),
    "signs": (Part(1, 6_000, CONFIRM),),
}
FILES = {"cifar10": "cifar10_12k.npz", "photos": "clothing_photos.zip", "signs": "traffic_signs_6k.npz"}
TITLES = {"fashion": "Fashion-MNIST", "cifar10": "CIFAR-10", "photos": "Clothing photos", "signs": "Traffic signs"}
NO_FLIPS = ("signs",)
"""A mirrored sign is another sign."""
VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "standard": (),
    "corrupt": ({"name": "corrupt", "share": 0.3, "severity": "paper"},),
    "longtail-0.1": ({"name": "longtail", "factor": 0.1},),
    "longtail-0.01": ({"name": "longtail", "factor": 0.01},),
}


def images_asked(text: str | None, dataset: str) -> Part:
    """The images ``FIRST-LAST`` of a data set, by default all that confirm; refused where they lie on both sides.

    >>> images_asked("1-6000", "cifar10").role
    'tune'
    """
    parts = PARTS[dataset]
    if text is None:
        return parts[-1]
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last) <= parts[-1].last):
        raise SystemExit(f"--images must be FIRST-LAST within 1-{parts[-1].last} for {TITLES[dataset]}; got {text}.")
    touched = [part for part in parts if part.first <= int(last) and int(first) <= part.last]
    if len(touched) > 1:
        sides = ", ".join(f"{part.first:,} to {part.last:,} {WORDS[part.role]}" for part in parts)
        raise SystemExit(
            f"Images {int(first):,} to {int(last):,} of {TITLES[dataset]} mix tuning with claims: {sides}. "
            "Take images of one side."
        )
    return Part(int(first), int(last), touched[0].role)


def check_role(part: Part, args: argparse.Namespace) -> None:
    """Refuse to tune on images that only confirm."""
    if part.role == CONFIRM and args.knobs:
        raise SystemExit(
            f"Knobs set by hand would tune on images {part.first:,} to {part.last:,} of {TITLES[args.dataset]}, which "
            "only confirm. Try them on tuning images (--images), or leave --knobs out."
        )


def cut(dataset: str, part: Part, n_images: int | None, n_test: int | None, folder: Path) -> Data:
    """A pool of ``n_images`` drawn from ``part``, always the same, with its test images: those of the data set for
    claims; for tuning others of the same part."""
    data = fashion() if dataset == "fashion" else npz_file(folder / FILES[dataset])
    rng = np.random.default_rng(0)
    order = part.first - 1 + rng.permutation(part.last - part.first + 1)
    if part.role == CONFIRM:
        tests = rng.permutation(len(data.test_labels))[:n_test]
        return data.taken(order[:n_images], tests)
    n_kept = len(order) // TESTS_OF_TUNING
    kept, rest = order[:n_kept], order[n_kept:]
    tuning = Data(data.name, data.images, data.labels, data.images, data.labels, data.class_names)
    return tuning.taken(rest[:n_images], kept[:n_test])


def has_folders(dataset: str) -> bool:
    """Whether the data set is a ZIP of pictures in class folders, imported as it is."""
    return FILES.get(dataset, "").endswith(".zip")
