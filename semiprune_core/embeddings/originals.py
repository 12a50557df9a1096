"""Originals of a pool as an encoder sees them: decoded in the limited worker processes of the import, a bounded number
ahead of the net, so that decoding and computing overlap and memory does not grow with the pool."""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow.parquet as pq

from semiprune_core.errors import SemiPruneError, SourceError
from semiprune_core.importing import images
from semiprune_core.importing.sources.base import BlobPart, Entry, FileAt
from semiprune_core.importing.sources.reading import read_bytes
from semiprune_core.importing.workers import Chunk, DecodePool, Place
from semiprune_core.paths import shown
from semiprune_core.progress import Stopped
from semiprune_core.project.pool import Pool, Segment
from semiprune_core.records import Problem

COLUMNS = ("path", "file", "file_sha256")
ASK_SECONDS = 0.5
AHEAD = 4
"""Decoded chunks that may wait for the net."""
CHUNK_PIXELS = 16 * 224 * 224
"""Of a chunk: fewer images where the encoder sees larger ones."""
SPARE = 3
"""A JPEG is decoded at no less than this many times the encoder's side: cosine with full decoding 0.9996 and more."""


@dataclass(frozen=True, slots=True)
class Original(Entry):
    """An image of the pool: its ``row`` among all images, and the hash its file had at the import."""

    row: int = -1
    sha256: bytes = b""


@dataclass
class Seen(Chunk):
    """``images`` (n, side, side, 3) uint8 of the ``seen`` rows, those without a problem."""

    seen: list[int] = field(default_factory=list)


def originals(pool: Pool, start: int = 0) -> Iterator[Original]:
    """Where the originals of all images of ``pool`` (every split) lie, from row ``start`` on."""
    for segment, first in zip(pool.segments, pool.starts, strict=True):
        if start < int(first) + segment.n_images:
            yield from _of_segment(segment, int(first), max(0, start - int(first)))


def _of_segment(segment: Segment, first: int, skipped: int) -> Iterator[Original]:
    """Row group by row group: a table of a million rows is never in memory."""
    blob, root = segment.originals, str(segment.artifact.facts["root"])
    row = 0
    with pq.ParquetFile(segment.artifact.path("table.parquet"), memory_map=True) as table:
        for group in range(table.num_row_groups):
            n = table.metadata.row_group(group).num_rows
            if row + n <= skipped:
                row += n
                continue
            for facts in table.read_row_group(group, columns=list(COLUMNS)).to_pylist():
                if row >= skipped:
                    if blob is not None:
                        begin, end = int(blob.offsets[row]), int(blob.offsets[row + 1])
                        where: BlobPart | FileAt = BlobPart(os.fspath(blob.data), begin, end - begin)
                    else:
                        where = FileAt(root, os.path.join(root, facts["file"] or facts["path"]))
                    yield Original(facts["path"], where, row=first + row, sha256=facts["file_sha256"])
                row += 1


def see_chunk(entries: Sequence[Original], *, side: int, fit: str, at: Place) -> Seen:
    """What a worker does: read, check against the import, decode, resize."""
    chunk = Seen(n_entries=len(entries))
    pixels = []
    for number, entry in enumerate(entries):
        at.begin(number)
        try:
            pixels.append(see(entry, side=side, fit=fit, before_large=at.take_turn))
        except SemiPruneError as error:
            chunk.problems.append(Problem(entry.path, error.code, str(error)))
        else:
            chunk.seen.append(entry.row)
    chunk.images = np.stack(pixels) if pixels else np.empty((0, side, side, 3), np.uint8)
    return chunk


def see(entry: Original, *, side: int, fit: str, before_large: Callable[[], None] = lambda: None) -> np.ndarray:
    """(side, side, 3) uint8 of one original; a file that was changed since the import is refused."""
    data = read_bytes(entry)
    if isinstance(entry.locator, FileAt) and hashlib.sha256(data).digest() != entry.sha256:
        raise SourceError(f"{shown(entry.path)} was changed since the import. Restore it.", code="FILE_CHANGED")
    decoded = images.decode(data, name=entry.path, least_side=SPARE * side, before_large=before_large)
    return images.fit(decoded.image, side, 3, fit, reducing_gap=None)


def decoded(
    entries: Iterator[Original],
    *,
    side: int,
    fit: str,
    n_workers: int = 0,
    should_stop: Callable[[], bool] = lambda: False,
) -> Generator[Seen, None, None]:
    """The originals as the encoder sees them, in order, decoded ahead of whoever takes them.

    ``n_workers`` 0: one process per core. Raises :class:`Stopped` soon after ``should_stop``, whatever is decoded.
    """
    per_chunk = max(1, CHUNK_PIXELS // (side * side))
    task = partial(see_chunk, side=side, fit=fit)
    over = threading.Event()
    with (
        DecodePool(n_workers=n_workers or os.cpu_count() or 1) as workers,
        _ahead(workers.run(task, entries, chunk_size=per_chunk, should_stop=over.is_set), over, should_stop) as chunks,
    ):
        yield from chunks  # type: ignore[misc]


@contextlib.contextmanager
def _ahead(
    chunks: Iterator[Chunk], over: threading.Event, should_stop: Callable[[], bool]
) -> Iterator[Iterator[Chunk]]:
    """The same chunks, fetched by a thread while the last ones are being used; ``over`` tells it to end.

    An error is raised where it is met. Whoever waits for a chunk asks ``should_stop`` meanwhile.
    """
    waiting: queue.Queue[Chunk | BaseException | None] = queue.Queue(AHEAD)

    def put(item: Chunk | BaseException | None) -> bool:
        while not over.is_set():
            with contextlib.suppress(queue.Full):
                waiting.put(item, timeout=0.1)
                return True
        return False

    def fetch() -> None:
        try:
            for chunk in chunks:
                if not put(chunk):
                    return
            put(None)
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that asked
            put(error)

    def following() -> Chunk | BaseException | None:
        while True:
            with contextlib.suppress(queue.Empty):
                return waiting.get(timeout=ASK_SECONDS)
            if should_stop():
                raise Stopped

    def take() -> Iterator[Chunk]:
        while (item := following()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    thread = threading.Thread(target=fetch, name="decoded-ahead", daemon=True)
    thread.start()
    try:
        yield take()
    finally:
        over.set()
        thread.join()
