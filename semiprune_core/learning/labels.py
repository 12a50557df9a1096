"""What labels must be for anything to be learned from them. Nothing here loads torch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from semiprune_core.errors import InvalidDataError
from semiprune_core.records import UNLABELED, IntArray


def check_learnable(labels: IntArray, class_names: Sequence[str]) -> None:
    """Refuse labels of fewer than two classes; the other classes may wait for theirs."""
    counts = np.bincount(labels[labels >= 0], minlength=len(class_names))
    if len(class_names) < 2:
        raise InvalidDataError(f"Training needs at least two classes; this project has {len(class_names)}.")
    if not counts.any():
        raise InvalidDataError("No image is labeled yet. Label some of every class, then train.")
    if np.count_nonzero(counts) < 2:
        only = class_names[int(counts.argmax())]
        raise InvalidDataError(f"All labels are of one class, {only}. Label some of another class, then train.")


def check_labels(labels: IntArray, n_images: int, class_names: Sequence[str]) -> None:
    """Refuse labels that a net cannot be trained on, with what is missing: it needs one of every class."""
    if len(labels) != n_images:
        raise InvalidDataError(f"There are {len(labels)} labels for {n_images} images; give one each, -1 for none.")
    if len(class_names) < 2:
        raise InvalidDataError(f"Training needs at least two classes; this project has {len(class_names)}.")
    if len(labels) and not (labels.min() >= UNLABELED and labels.max() < len(class_names)):
        raise InvalidDataError(f"Labels must lie in -1..{len(class_names) - 1}; at least one does not.")
    counts = np.bincount(labels[labels >= 0], minlength=len(class_names))
    if not counts.any():
        raise InvalidDataError("No image is labeled yet. Label some of every class, then train.")
    missing = [name for name, count in zip(class_names, counts) if not count]
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise InvalidDataError(
            f"{len(missing)} of {len(class_names)} classes have no labeled image: {shown}. "
            "Label at least one of each, or remove the class."
        )
