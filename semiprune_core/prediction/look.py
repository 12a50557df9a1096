"""New images as a run saw those of its pool: decoded in the import's limited worker processes, a chunk at a time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from semiprune_core.embeddings.originals import SPARE
from semiprune_core.errors import SemiPruneError
from semiprune_core.importing import images
from semiprune_core.importing.sources import SourceSpec, open_source
from semiprune_core.importing.sources.base import Entry
from semiprune_core.importing.sources.reading import read_bytes, read_entry
from semiprune_core.importing.workers import Chunk, DecodePool, Place
from semiprune_core.project.workspace import Project
from semiprune_core.records import Problem

CHUNK = 32


@dataclass(frozen=True)
class View:
    """How images become arrays (side, side, channels): as training copies, or as an encoder sees originals."""

    side: int
    channels: int
    fit: str
    of_originals: bool


@dataclass
class Looked(Chunk):
    """``images`` (n, side, side, channels) of the images at ``paths``, those without a problem."""

    paths: list[str] = field(default_factory=list)


def look_chunk(entries: Sequence[Entry], *, view: View, at: Place) -> Looked:
    """What a worker does."""
    chunk, pixels = Looked(n_entries=len(entries)), []
    for number, entry in enumerate(entries):
        at.begin(number)
        try:
            pixels.append(_look(entry, view, at))
        except SemiPruneError as error:
            chunk.problems.append(Problem(entry.path, error.code, str(error)))
        else:
            chunk.paths.append(entry.path)
    empty = np.empty((0, view.side, view.side, view.channels), np.uint8)
    chunk.images = np.stack(pixels) if pixels else empty
    return chunk


def _look(entry: Entry, view: View, at: Place) -> np.ndarray:
    if not view.of_originals:
        decoded, _ = read_entry(entry, before_large=at.take_turn)
        return images.fit(decoded.image, view.side, view.channels, view.fit)
    least = SPARE * view.side
    decoded = images.decode(read_bytes(entry), name=entry.path, least_side=least, before_large=at.take_turn)
    return images.fit(decoded.image, view.side, view.channels, view.fit, reducing_gap=None)


@contextlib.contextmanager
def looking(
    project: Project, folder: Path, view: View, *, n_workers: int = 0
) -> Iterator[tuple[Iterator[Looked], int, list[Problem]]]:
    """(chunks in order, how many images there are, problems of the listing) of a folder."""
    spec = SourceSpec("folder", os.fspath(folder))
    source = open_source(spec, guard=project.workspace.guard, scratch=folder)
    entries = list(source.entries())  # one walk; counting them first would be another
    n_chunks = -(-len(entries) // CHUNK)
    with DecodePool(n_workers=max(1, min(n_workers or os.cpu_count() or 1, n_chunks))) as workers:
        chunks = workers.run(partial(look_chunk, view=view), iter(entries), chunk_size=CHUNK)
        yield chunks, len(entries), source.problems  # type: ignore[misc]
