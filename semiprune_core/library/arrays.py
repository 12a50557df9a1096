"""What people have, as what the steps take: images of any usual form, labels as numbers or names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from PIL import Image

from semiprune_core.errors import InvalidDataError, SourceError
from semiprune_core.importing import images as pictures
from semiprune_core.importing.run import settings_for
from semiprune_core.project.pool import PoolSettings
from semiprune_core.records import UNLABELED, BoolArray, IntArray

CHANNELS = (1, 3, 4)
FORMS = "(N, H, W), (N, H, W, C) or (N, C, H, W) with C of 1, 3 or 4"
PEEK = 32
"""Images that decide about the form of the training copies, as in an import."""


@dataclass(frozen=True, eq=False)
class Images:
    """N images, each uint8 (H, W) or (H, W, C); one array (N, ...) where all have one size."""

    arrays: np.ndarray | Sequence[np.ndarray] = field(repr=False)

    def __len__(self) -> int:
        return len(self.arrays)

    def __getitem__(self, position: int) -> Image.Image:
        """One of them in grey or RGB, as an import decodes it."""
        try:
            return pictures.from_array(self.arrays[position], name=f"Image {position}").image
        except SourceError as error:
            raise InvalidDataError(str(error)) from None

    def __iter__(self) -> Iterator[Image.Image]:
        return (self[position] for position in range(len(self)))

    @cached_property
    def duplicate_of(self) -> IntArray:
        """(N,) position of the first image with the same pixels; its own position where it is the first."""
        first: dict[bytes, int] = {}
        hashes = (pictures.content_hash(np.asarray(image)) for image in self)
        return np.array(
            [first.setdefault(content, position) for position, content in enumerate(hashes)], dtype=np.int64
        )

    @cached_property
    def copies(self) -> np.ndarray:
        """(N, size, size, channels) uint8: what a net is trained on, in the form that an import chooses."""
        looks = [self[position] for position in range(min(PEEK, len(self)))]
        form: PoolSettings = settings_for([min(look.size) for look in looks], sum(look.mode == "L" for look in looks))
        return np.stack([pictures.fit(image, form.size, form.channels, form.fit) for image in self])


def as_images(images: Any) -> Images:
    """Arrays, tensors, Pillow images or a list of them; floats in 0..1, channels first or last."""
    if isinstance(images, Images):
        return images
    if hasattr(images, "detach"):
        images = images.detach().cpu().numpy()
    if not isinstance(images, np.ndarray):
        return _from_list(images)
    if images.ndim == 4 and images.shape[3] not in CHANNELS and images.shape[1] in CHANNELS:
        images = np.moveaxis(images, 1, 3)
    if images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] not in CHANNELS) or not len(images):
        raise InvalidDataError(f"Images are an array {FORMS}; got one of shape {images.shape}.")
    return Images(_as_bytes(images, _span([images])))


def _from_list(images: Any) -> Images:
    if isinstance(images, str | bytes) or not hasattr(images, "__iter__"):
        raise InvalidDataError(
            f"Images are an array {FORMS}, or a list of arrays or Pillow images; got {type(images).__name__}. "
            "For files on the disk make a project: semiprune new NAME --from FOLDER"
        )
    arrays = [_one(image) for image in images]
    if not arrays:
        raise InvalidDataError("There are no images. Give at least one.")
    span = _span(arrays)
    return Images([_as_bytes(array, span) for array in arrays])


def _one(image: Any) -> np.ndarray:
    if isinstance(image, Image.Image):
        return np.asarray(image if image.mode in ("L", "RGB", "RGBA") else image.convert("RGB"))
    array = np.asarray(image.detach().cpu() if hasattr(image, "detach") else image)
    first = array.ndim == 3 and array.shape[2] not in CHANNELS and array.shape[0] in CHANNELS
    return np.moveaxis(array, 0, 2) if first else array


def _span(arrays: Sequence[np.ndarray]) -> tuple[float, float]:
    """(smallest, largest) value of arrays that are not bytes."""
    others = [array for array in arrays if array.dtype != np.uint8 and array.size]
    if not others:
        return 0.0, 255.0
    if any(array.dtype.kind not in "fiub" for array in others):
        raise InvalidDataError(f"Images hold numbers; got {others[0].dtype}. Give uint8, or floats in 0..1.")
    low, high = min(float(array.min()) for array in others), max(float(array.max()) for array in others)
    if not (low >= 0 and high <= 255):  # NaN as well
        raise InvalidDataError(
            f"Images that are no bytes must lie in 0..1 or in 0..255; these lie in {low:.3g}..{high:.3g}. "
            "Undo their normalisation, or give uint8."
        )
    return low, high


def _as_bytes(array: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    if array.dtype == np.uint8:
        return array
    is_share = array.dtype.kind in "fb" and span[1] <= 1
    return np.rint(array.astype(np.float64) * (255 if is_share else 1)).astype(np.uint8)


def as_labels(labels: Any, n_images: int, class_names: Sequence[str] | None = None) -> tuple[IntArray, tuple[str, ...]]:
    """Labels (N,) as class numbers, -1 for none, and the names of the classes.

    Numbers name a class by its place, -1 (or NaN) is none; texts name it, "" and None are none.
    """
    if hasattr(labels, "detach"):
        labels = labels.detach().cpu().numpy()
    values = np.asarray(labels)
    if values.shape != (n_images,):
        raise InvalidDataError(
            f"There are labels of shape {values.shape} for {n_images} images. Give one each, -1 or None where there is "
            "none."
        )
    if values.dtype.kind in "iuf":
        return _numbers(values, class_names)
    return _names(values, class_names)


def _numbers(values: np.ndarray, class_names: Sequence[str] | None) -> tuple[IntArray, tuple[str, ...]]:
    filled = np.where(np.isnan(values), UNLABELED, values) if values.dtype.kind == "f" else values
    numbers = filled.astype(np.int64)
    if (numbers != filled).any() or (len(numbers) and numbers.min() < UNLABELED):
        raise InvalidDataError("Labels are whole numbers from 0, or -1 for none; at least one is not.")
    n_classes = int(numbers.max(initial=-1)) + 1
    names = tuple(class_names) if class_names is not None else tuple(str(number) for number in range(n_classes))
    if n_classes > len(names):
        raise InvalidDataError(f"A label is {n_classes - 1}, but there are names for {len(names)} classes, from 0.")
    return numbers, names


def _names(values: np.ndarray, class_names: Sequence[str] | None) -> tuple[IntArray, tuple[str, ...]]:
    texts = ["" if value is None or value != value else str(value) for value in values.tolist()]
    names = tuple(class_names) if class_names is not None else tuple(sorted({*texts} - {""}))
    place = {"": UNLABELED, **{name: number for number, name in enumerate(names)}}
    if unknown := sorted({*texts} - {*place}):
        raise InvalidDataError(f"'{unknown[0]}' is a label, but none of the classes: {', '.join(names)}.")
    return np.array([place[text] for text in texts], dtype=np.int64), names


def as_drawn(drawn_at_random: Any, labels: IntArray) -> BoolArray:
    """(N,) which labels were drawn at random: all, none, or those of a mask."""
    if isinstance(drawn_at_random, bool):
        return (labels != UNLABELED) & drawn_at_random
    mask = np.asarray(drawn_at_random)
    if mask.shape != labels.shape or mask.dtype != np.bool_:
        raise InvalidDataError(f"drawn_at_random is True, False or a mask of {len(labels)} booleans.")
    return mask & (labels != UNLABELED)
