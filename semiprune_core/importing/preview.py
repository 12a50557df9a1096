"""What the net sees: a few training copies at every size and fit, of a source that was not imported yet or of a pool.

They are made in a process of its own, see :mod:`semiprune_core.importing.limited`, whose processor time and files on
disk are limited too: what is chosen need not be harmless.
"""

from __future__ import annotations

import base64
import contextlib
import io
import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from PIL import Image

from semiprune_core.errors import SemiPruneError, SourceError
from semiprune_core.importing import images, limited
from semiprune_core.importing.run import PEEK, settings_for
from semiprune_core.importing.sources import open_source
from semiprune_core.importing.sources.base import ArrayRow, Entry, SourceSpec
from semiprune_core.importing.sources.reading import read_bytes, read_entry
from semiprune_core.importing.workers import WORKER_GROWTH
from semiprune_core.project.pool import SIZES, Pool, PoolSettings
from semiprune_core.project.workspace import Project, Workspace

SHOWN = 8
WITHIN = 2_000
"""The pictures are spread over so many first images of a source."""
SPARE = 3
"""A JPEG is decoded at no less than this many times the largest training copy."""
CPU_SECONDS = 40
NOT_LOOKED_AT = ("torchvision",)
"""Sources that may fetch what they are to show."""
OBLONG = 0.15
"""From this share on that cropping cuts off, an image is not nearly square."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Preview:
    """``copies`` are PNG files of each picture by fit and size; ``shapes`` (n, 2) widths and heights of more images."""

    copies: tuple[Mapping[tuple[str, int], bytes], ...]
    shapes: np.ndarray
    n_grey: int

    def pictures(self, settings: PoolSettings) -> list[bytes]:
        """The training copies with these settings, as PNG files."""
        chosen = [by_form[settings.fit, settings.size] for by_form in self.copies]
        return [grey(png) for png in chosen] if settings.channels == 1 else chosen

    def suggested(self, fit: str) -> PoolSettings:
        """What *Auto* takes."""
        return settings_for(self.shapes.min(axis=1).tolist(), self.n_grey, fit=fit)


def preview_source(workspace: Workspace, spec: SourceSpec) -> Preview:
    """The training copies of some of a source's images; nothing of it is kept."""
    if spec.kind in NOT_LOOKED_AT:
        raise SourceError("A known data set is shown once it is imported.", code="NO_PREVIEW")
    with tempfile.TemporaryDirectory(prefix="semiprune-look-") as scratch:
        told = limited.stream(
            look_at_source,
            str(workspace.root),
            json.dumps(spec.to_json()),
            scratch,
            name=Path(spec.location).name,
            growth=WORKER_GROWTH,
        )
        return _preview(list(told))


def preview_pool(project: Project) -> Preview:
    """The same of a pool, from its originals."""
    told = list(
        limited.stream(look_at_pool, str(project.workspace.root), project.name, name=project.name, growth=WORKER_GROWTH)
    )
    return _preview(told)


def look_at_source(root: str, spec: str, scratch: str) -> Iterator[dict[str, Any]]:
    """What :func:`preview_source` is told: the shapes of the first images, then copies."""
    limited.limit_effort(CPU_SECONDS)
    guard = Workspace(Path(root)).guard
    source = open_source(SourceSpec.from_json(json.loads(spec)), guard=guard, scratch=Path(scratch))
    first = list(itertools.islice(source.entries(), WITHIN))
    yield from _told(_shape, first[:PEEK])
    yield from _told(lambda entry: _forms(_picture(entry)), _spread(first))


def look_at_pool(root: str, name: str) -> Iterator[dict[str, Any]]:
    """What :func:`preview_pool` is told."""
    limited.limit_effort(CPU_SECONDS)
    pool = Workspace(Path(root)).project(name).pool()
    for position in _spread(range(len(pool))):
        with contextlib.suppress(SemiPruneError):
            yield _forms(images.decode(pool.original(position), name="image", least_side=SPARE * SIZES[-1]).image)


def shapes_of(pool: Pool) -> np.ndarray:
    """(N, 2) widths and heights."""
    return np.stack([pool.column(name).to_numpy() for name in ("width", "height")], axis=1)


def present_copies(pool: Pool) -> list[bytes]:
    """The same pictures of ``pool`` as it has them, as PNG files."""
    return [images.encode_png(picture) for picture in pool.images()[list(_spread(range(len(pool))))]]


def cut_off(shapes: np.ndarray) -> float:
    """The share of a usual image (the median) that cropping to its middle square leaves out.

    >>> cut_off(np.array([[300, 200], [200, 300], [100, 100]])).__round__(2)
    0.33
    """
    return float(np.median(1 - shapes.min(axis=1) / shapes.max(axis=1))) if len(shapes) else 0.0


def advice(shapes: np.ndarray, settings: PoolSettings) -> str:
    """One plain sentence on how images of these ``shapes`` (n, 2) become square with ``settings``."""
    lost = cut_off(shapes)
    if lost < OBLONG:
        return "These images are square or nearly so: how they become square hardly matters."
    what = "wide" if np.median(shapes[:, 0] / shapes[:, 1]) > 1 else "tall"
    return {
        "crop": f"Most of these images are {what}: cropping leaves out {lost:.0%} of a usual one. Pad keeps all of it.",
        "pad": f"Most of these images are {what}: nothing of them is lost, and bars take {lost:.0%} of a usual copy.",
        "stretch": f"Most of these images are {what}: stretching changes their proportions. Pad keeps them.",
    }[settings.fit]


def size_advice(shapes: np.ndarray, settings: PoolSettings, usual: int) -> str:
    """What the size of the copies costs beside the ``usual`` one, or where it brings nothing; "" where it does not."""
    side = float(np.median(shapes.min(axis=1))) if len(shapes) else settings.size
    if settings.size > 1.5 * side and settings.size > usual:
        return f"The images have about {side:.0f} px: larger copies show nothing more and train longer."
    times = (settings.size / usual) ** 2
    if times > 1.3:
        return f"A network from scratch trains about {times:.1f} times as long as with {usual} px."
    return f"Fine details are lost at {settings.size} px." if times < 0.7 else ""


def grey(png: bytes) -> bytes:
    """The same picture without colour."""
    return images.encode_png(Image.open(io.BytesIO(png)).convert("L"))


def _spread(items: Sequence[Item]) -> list[Item]:
    """At most :data:`SHOWN` of them, from the first on in equal steps."""
    if not len(items):
        return []
    return [items[place] for place in np.unique(np.linspace(0, len(items) - 1, SHOWN).round().astype(int)).tolist()]


def _told(tell: Callable[[Entry], dict[str, Any]], entries: Sequence[Entry]) -> Iterator[dict[str, Any]]:
    """What is to be told of the images that can be used; what is wrong with the others is the import's to say."""
    for entry in entries:
        with contextlib.suppress(SemiPruneError):
            yield tell(entry)


def _shape(entry: Entry) -> dict[str, Any]:
    """Width, height and whether it is grey, from an image's header."""
    if isinstance(entry.locator, ArrayRow):
        image = read_entry(entry)[0].image
        return {"shape": image.size, "grey": image.mode == "L"}
    size, is_grey = images.header(read_bytes(entry), name=entry.path)
    return {"shape": size, "grey": is_grey}


def _picture(entry: Entry) -> Image.Image:
    if isinstance(entry.locator, ArrayRow) or entry.corruption is not None:
        return read_entry(entry)[0].image
    return images.decode(read_bytes(entry), name=entry.path, least_side=SPARE * SIZES[-1]).image


def _forms(image: Image.Image) -> dict[str, Any]:
    """Every training copy of one picture, as JSON has it."""
    channels = 1 if image.mode == "L" else 3
    return {
        f"{how}-{side}": base64.b64encode(images.encode_png(images.fit(image, side, channels, how))).decode()
        for how in images.FITS
        for side in SIZES
    }


def _preview(told: Sequence[Mapping[str, Any]]) -> Preview:
    shapes = np.array([item["shape"] for item in told if "shape" in item], dtype=np.int64).reshape(-1, 2)
    copies = tuple(_read(item) for item in told if "shape" not in item)
    if not copies:
        raise SourceError("None of the first images can be shown. The import lists why.", code="NO_PREVIEW")
    return Preview(copies, shapes, sum(bool(item.get("grey")) for item in told))


def _read(item: Mapping[str, str]) -> dict[tuple[str, int], bytes]:
    forms = {}
    for name, text in item.items():
        how, _, side = name.partition("-")
        forms[how, int(side)] = base64.b64decode(text)
    return forms
