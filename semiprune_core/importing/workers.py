"""Decoding in parallel, in processes that may hang or die without taking the import with them.

The parent hands out chunks of entries and gets them back decoded, in order. A worker says which image it is at; if that
image takes too long or kills the worker, the image becomes a problem with its reason and a fresh worker does the rest.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import multiprocessing
import os
import secrets
import signal
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import psutil

from semiprune_core.errors import JobError, SemiPruneError
from semiprune_core.importing import images
from semiprune_core.importing.limited import limit_growth
from semiprune_core.importing.sources.base import Entry, FileAt
from semiprune_core.importing.sources.reading import read_entry
from semiprune_core.paths import shown
from semiprune_core.progress import Stopped
from semiprune_core.project.pool import PoolSettings
from semiprune_core.records import Problem

START_METHOD = "spawn"  # never a fork of the app with its threads
CPU_SECONDS_PER_IMAGE = 5.0
WALL_SECONDS_PER_IMAGE = 60.0
WORKER_GROWTH = 1 << 30  # bytes beyond what a worker begins with
THUMBNAIL_SIDE = 192
CHUNK = 64
BETWEEN = -1  # the place of a worker that is at no image
STILLBORN = 3  # workers that may die before their first image, one after the other
WINDOW = 4  # chunks in flight per worker, which bounds the memory


@dataclass(frozen=True, slots=True)
class Row:
    """One decoded image on its way to the table."""

    path: str
    file: str | None
    width: int
    height: int
    mode: str
    format: str
    file_bytes: int
    file_sha256: bytes
    content_hash: bytes
    label: str | None
    split: str
    corruption: str | None
    converted: str | None


@dataclass
class Chunk:
    """The work on some entries: ``images`` (n, size, size, channels), the others one item per row.

    Kept originals travel through the file ``spool``, end to end, so that large photographs never pile up in memory.
    """

    rows: list[Row] = field(default_factory=list)
    thumbs: list[bytes] = field(default_factory=list)
    original_sizes: list[int] = field(default_factory=list)
    spool: str | None = None
    problems: list[Problem] = field(default_factory=list)
    images: np.ndarray | None = None
    n_entries: int = 0


class Place:
    """Where a worker is, for its parent: how many images it began, and which of the chunk it is at.

    A picture that takes much memory waits for its turn; ``turn`` is a file that all workers of a pool lock for that. It
    is let go with the next image, and by the system if the worker dies.
    """

    def __init__(self, shared: Any = None, turn: int | None = None) -> None:
        self._shared, self._turn, self._has_turn = shared, turn, False

    def begin(self, number: int) -> None:
        """At the image ``number`` of the chunk from now on."""
        self.leave()
        if self._shared is not None:
            self._shared[1] = number
            self._shared[0] += 1

    def take_turn(self) -> None:
        """Wait until no other worker has a large picture in memory; that is not counted as this image's time."""
        if self._turn is None or self._shared is None:
            return
        number = self._shared[1]
        self._shared[1] = BETWEEN
        fcntl.flock(self._turn, fcntl.LOCK_EX)
        self._has_turn = True
        self._shared[1] = number
        self._shared[0] += 1

    def leave(self) -> None:
        """At no image: a parent that is slow to take the answer is not the fault of one."""
        if self._has_turn and self._turn is not None:
            fcntl.flock(self._turn, fcntl.LOCK_UN)
            self._has_turn = False
        if self._shared is not None:
            self._shared[1] = BETWEEN


class Task(Protocol):
    """What workers do with some entries; it keeps ``at`` true and lists as problems what cannot be decoded."""

    def __call__(self, entries: Sequence[Entry], *, at: Place) -> Chunk: ...


def decode_chunk(
    entries: Sequence[Entry], settings: PoolSettings, *, at: Place, spool_folder: str | None = None
) -> Chunk:
    """Decode entries one by one; ``at`` always names the one in work."""
    chunk = Chunk(n_entries=len(entries))
    cached = []
    if spool_folder is not None:
        chunk.spool = os.path.join(spool_folder, secrets.token_hex(8))
    with open(chunk.spool or os.devnull, "wb") as spool:
        for number, entry in enumerate(entries):
            at.begin(number)
            try:
                decoded, data = read_entry(entry, before_large=at.take_turn)
            except SemiPruneError as error:
                chunk.problems.append(Problem(entry.path, error.code, str(error)))
                continue
            chunk.rows.append(_row(entry, decoded, data))
            cached.append(images.fit(decoded.image, settings.size, settings.channels, settings.fit))
            chunk.thumbs.append(images.thumbnail(decoded.image, THUMBNAIL_SIDE))
            if chunk.spool is not None:
                chunk.original_sizes.append(spool.write(data))
    shape = (len(cached), settings.size, settings.size, settings.channels)
    chunk.images = np.stack(cached) if cached else np.empty(shape, dtype=np.uint8)
    return chunk


@dataclass
class Measured(Chunk):
    """What a first look at some entries found: the shorter side of each image, and how many have no colour."""

    sides: list[int] = field(default_factory=list)
    n_grey: int = 0


def measure_chunk(entries: Sequence[Entry], *, at: Place) -> Measured:
    """Look at entries one by one; what cannot be decoded is left to the import to list."""
    chunk = Measured(n_entries=len(entries))
    for number, entry in enumerate(entries):
        at.begin(number)
        with contextlib.suppress(SemiPruneError):
            image = read_entry(entry, before_large=at.take_turn)[0].image
            chunk.sides.append(min(image.size))
            chunk.n_grey += image.mode == "L"
    return chunk


def _row(entry: Entry, decoded: images.Decoded, data: bytes) -> Row:
    on_disk = os.path.relpath(entry.locator.path, entry.locator.root) if isinstance(entry.locator, FileAt) else None
    return Row(
        path=entry.path,
        file=on_disk if on_disk != entry.path else None,
        width=decoded.pixels.shape[1],
        height=decoded.pixels.shape[0],
        mode=decoded.mode,
        format=decoded.format,
        file_bytes=len(data),
        file_sha256=hashlib.sha256(data).digest(),
        content_hash=images.content_hash(decoded.pixels),
        label=entry.label,
        split=entry.split,
        corruption=entry.corruption,
        converted=decoded.converted,
    )


def _work(connection: Connection, shared: Any, turn: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit_growth(WORKER_GROWTH)
    with contextlib.suppress(EOFError, BrokenPipeError), open(turn, "rb") as file:
        at = Place(shared, file.fileno())
        while (work := connection.recv()) is not None:
            task, entries = work
            chunk = task(entries, at=at)
            at.leave()
            connection.send(chunk)


class Worker:
    """One process, the chunks it has been given, and the clock of the image it is at."""

    def __init__(self, context: Any, turn: str) -> None:
        self.at = context.RawArray("q", 2)
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, self.at, turn), daemon=True)
        self.process.start()
        theirs.close()
        self.given: deque[tuple[int, list[Entry]]] = deque()
        self._seen = -1
        self._since = (0.0, 0.0)

    def give(self, number: int, task: Task, entries: list[Entry]) -> None:
        self.given.append((number, entries))
        with contextlib.suppress(BrokenPipeError):  # a dead worker is noticed when its answer is awaited
            self.connection.send((task, entries))

    def is_stuck(self) -> bool:
        """Whether the image in work has used up its time."""
        if not self.given or not self.process.is_alive():
            return False
        with contextlib.suppress(psutil.Error):
            used = psutil.Process(self.process.pid).cpu_times()
            now = (time.monotonic(), used.user + used.system)
            if self.at[0] != self._seen or self.at[1] == BETWEEN:
                self._seen, self._since = self.at[0], now
            wall, cpu = now[0] - self._since[0], now[1] - self._since[1]
            return self.at[0] > 0 and (cpu > CPU_SECONDS_PER_IMAGE or wall > WALL_SECONDS_PER_IMAGE)
        return False

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def import_task(settings: PoolSettings, spool_folder: Path | None = None) -> Task:
    """What an import's workers do: see :func:`decode_chunk`."""
    return partial(decode_chunk, settings=settings, spool_folder=str(spool_folder) if spool_folder else None)


class DecodePool:
    """Worker processes that turn entries into :class:`Chunk` objects, in order."""

    def __init__(self, *, n_workers: int) -> None:
        self._context = multiprocessing.get_context(START_METHOD)
        self._partial: dict[int, Chunk] = {}
        self._stillborn = 0
        self._turn = tempfile.NamedTemporaryFile(prefix="semiprune-turn-")  # noqa: SIM115 - closed on exit
        self._workers = [self._start() for _ in range(n_workers)]

    def __enter__(self) -> DecodePool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()
        self._turn.close()

    def _start(self) -> Worker:
        return Worker(self._context, self._turn.name)

    def run(
        self,
        task: Task,
        entries: Iterator[Entry],
        *,
        chunk_size: int = CHUNK,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[Chunk]:
        """Do ``task`` with all entries, ``chunk_size`` at a time; chunks come back in the order of the entries.

        Raises :class:`Stopped` within a second of ``should_stop``, whatever the decoders are at: the pool ends them.
        """
        done: dict[int, Chunk] = {}
        chunks = enumerate(_chunks(entries, chunk_size))
        next_out, exhausted = 0, False
        while True:
            while not exhausted and (worker := self._least_busy()) is not None and len(done) < WINDOW * 4:
                number, chunk = next(chunks, (None, None))
                if chunk is None or number is None:
                    exhausted = True
                    break
                worker.give(number, task, chunk)
            while next_out in done:
                yield done.pop(next_out)
                next_out += 1
            if should_stop():
                raise Stopped
            if exhausted and not any(worker.given for worker in self._workers):
                return
            self._collect(task, done)

    def _least_busy(self) -> Worker | None:
        worker = min(self._workers, key=lambda worker: len(worker.given))
        return worker if len(worker.given) < WINDOW else None

    def _collect(self, task: Task, done: dict[int, Chunk]) -> None:
        by_connection = {worker.connection: worker for worker in self._workers if worker.given}
        for connection in wait(list(by_connection), timeout=0.5):
            worker = by_connection[connection]
            try:
                chunk = worker.connection.recv()
            except (EOFError, OSError):
                self._replace(worker, task, "DECODER_CRASHED", "the decoder crashed")
                continue
            number, _ = worker.given.popleft()
            left_out = self._partial.pop(number, Chunk())
            chunk.problems = left_out.problems + chunk.problems
            chunk.n_entries += left_out.n_entries
            done[number] = chunk
        for worker in list(self._workers):
            if worker.is_stuck():
                self._replace(
                    worker, task, "DECODE_TIMEOUT", f"it took more than {CPU_SECONDS_PER_IMAGE:g} s to decode"
                )

    def _replace(self, worker: Worker, task: Task, code: str, reason: str) -> None:
        """End a worker, list the image it was at, and let a fresh one do the rest of its chunks."""
        worker.end()
        position = int(worker.at[1])
        begun = worker.at[0] > 0 and position != BETWEEN
        self._stillborn = 0 if begun else self._stillborn + 1
        if self._stillborn > STILLBORN:
            raise JobError(
                "The decoding processes exit as soon as they start. Check the free memory. A script of your own must "
                "import images under `if __name__ == '__main__':`.",
                code="DECODERS_DO_NOT_START",
            )
        fresh = self._start()
        self._workers[self._workers.index(worker)] = fresh
        for turn, (number, entries) in enumerate(worker.given):
            if turn == 0 and entries and begun:
                culprit = entries.pop(min(position, len(entries) - 1))
                problem = Problem(culprit.path, code, f"{shown(culprit.path)} was left out: {reason}. Check the file.")
                partial = self._partial.setdefault(number, Chunk())
                partial.problems.append(problem)
                partial.n_entries += 1
            fresh.give(number, task, entries)


def _chunks(entries: Iterator[Entry], size: int) -> Iterator[list[Entry]]:
    chunk: list[Entry] = []
    for entry in entries:
        chunk.append(entry)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
