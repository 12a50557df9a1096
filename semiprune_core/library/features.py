"""What an encoder sees in images that are in memory: the same numbers as in a project of the same images."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from semiprune_core.embeddings.encoders import DEFAULT, open_encoder, own_side, widths_of
from semiprune_core.errors import InvalidDataError
from semiprune_core.importing import images as pictures
from semiprune_core.learning.frozen import Views
from semiprune_core.library.arrays import Images, as_images
from semiprune_core.library.showing import gallery
from semiprune_core.paths import PathGuard, real_path
from semiprune_core.progress import Progress, Silent, Stopped
from semiprune_core.project.pool import PoolSettings
from semiprune_core.records import FloatArray, IntArray

SHOWN = 24


@dataclass(frozen=True, eq=False)
class Features:
    """``values`` (N, D) float32 of N images, ``mirrored`` (N, D) float16 of the same images mirrored, or None.

    ``widths`` are the dimensions of each encoder where several stand side by side. A NumPy array where one is wanted.
    """

    values: FloatArray = field(repr=False)
    encoder: str = ""
    mirrored: FloatArray | None = field(default=None, repr=False)
    widths: tuple[int, ...] = ()
    images: Images | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return f"Features({len(self):,} images, {self.values.shape[1]:,} dimensions, {self.encoder or 'given'})"

    def _repr_html_(self) -> str:
        return gallery(repr(self), [(image, "") for image in _first(self.images)])

    @property
    def duplicate_of(self) -> IntArray:
        """(N,) position of the first image with the same pixels."""
        return self.images.duplicate_of if self.images is not None else np.arange(len(self), dtype=np.int64)

    def parts(self) -> list[tuple[FloatArray, Views]]:
        """For each encoder its features and the views of it, as heads take them."""
        edges = np.cumsum(self.widths or (self.values.shape[1],))[:-1]
        own = np.split(self.values, edges, axis=1)
        if self.mirrored is None:
            return [(part, Views()) for part in own]
        others = np.split(self.mirrored, edges, axis=1)
        return [(part, Views(weak=other[None])) for part, other in zip(own, others, strict=True)]


def _first(images: Images | None) -> list[Any]:
    return [] if images is None else [images[position] for position in range(min(SHOWN, len(images)))]


def as_features(data: Any) -> Features | None:
    """Features as they are, or given as an array (N, D); None for images."""
    if isinstance(data, Features):
        return data
    if hasattr(data, "detach"):
        data = data.detach().cpu().numpy()
    if not isinstance(data, np.ndarray) or data.ndim != 2:
        return None
    values = np.asarray(data, dtype=np.float32)
    if not len(values) or not np.isfinite(values).all():
        raise InvalidDataError("Features are a finite array (N, D) of at least one image; these are not.")
    return Features(values)


def embed(
    images: Any,
    *,
    encoder: str = DEFAULT,
    weights: str = "",
    mirrored: bool = True,
    device: str = "auto",
    progress: Progress | None = None,
) -> Features:
    """Embed images: what a pretrained encoder sees in each of them.

    ``images``: an array (N, H, W), (N, H, W, C) or (N, C, H, W), uint8 or floats in 0..1, or a list of arrays or Pillow
    images of any size. ``encoder`` by name, ``a+b`` for two side by side; ``weights`` a .safetensors file of your own.
    ``mirrored`` shows it every image a second time, mirrored: labels are learned better from both.
    """
    from semiprune_core.features.embed import opened_engine
    from semiprune_core.learning.device import choose_device

    seen, progress = as_images(images), progress or Silent()
    guard = PathGuard((real_path(weights).parent,) if weights else ())
    opened, side = open_encoder(encoder, weights, guard=guard), own_side(encoder)
    engine, _ = opened_engine(opened, side, choose_device(device).type, "auto")
    form, own, others = PoolSettings().fit, [], []
    for start in range(0, len(seen), engine.batch):
        if progress.should_stop():
            raise Stopped
        rows = range(start, min(start + engine.batch, len(seen)))
        pixels = np.stack([pictures.fit(seen[row], side, 3, form, reducing_gap=None) for row in rows])
        own.append(engine(pixels))
        if mirrored:
            others.append(engine(pixels[:, :, ::-1]).astype(np.float16))
        progress.report(rows.stop, len(seen), unit="images")
    values = np.concatenate(own)
    if not np.isfinite(values).all():
        raise InvalidDataError("The features hold values that are not finite. Choose another encoder.")
    widths = widths_of(opened, side) or (values.shape[1],)
    return Features(values, encoder, np.concatenate(others) if mirrored else None, tuple(widths), seen)
