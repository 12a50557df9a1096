"""One process tries many inputs of a kind and is watched: what it says, its time, its memory, what it touches.

It is forked from the tests' server of decoders, so that an input which kills it or never ends fails one test with its
number. Processor time is counted, never the clock.
"""

from __future__ import annotations

import importlib
import io
import json
import math
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from PIL import Image

from semiprune_core.errors import SemiPruneError, SourceError
from semiprune_core.importing import limited, workers

KINDS = {
    "images": "sources",
    "archives": "sources",
    "arrays": "sources",
    "tables": "sources",
    "uploads": "sources",
    "label_files": "labels",
    "requests": "requests",
    "paths": "paths",
}
"""Each kind, and the module here whose function of that name prepares it: ``images(base)(rng)`` tries one input."""
CPU_SECONDS = 5.0
MOST_GROWTH = 500 << 20
PATIENCE = 600.0
"""Seconds without any answer, after which a process that neither ends nor computes is given up."""

SECRET_SIZE = (77, 55)
"""Of a picture outside; all others are smaller."""
READY, DONE = -1, -2
"""In the place of a number: before the first input, after the last."""

Said = tuple[str, str]
"""A code and a sentence, as a person gets them."""
TryOne = Callable[[Random], Iterable[Said]]


def prepare_folders(base: Path) -> None:
    """``base`` lies deep in a folder of its own, so that a name which climbs ends up where it is seen."""
    for name in ("allowed", "outside", "home", "scratch", "temporary", "here"):
        (base / name).mkdir(parents=True, exist_ok=True)
    Image.new("RGB", SECRET_SIZE).save(base / "outside" / "secret.png")


def top_of(base: Path) -> Path:
    return base.parents[3]


def new_base(folder: Path) -> Path:
    base = folder / "around" / "a" / "b" / "c" / "fuzz"
    prepare_folders(base)
    return base


# --- in the process --------------------------------------------------------------------------------------------------


class Escapes:
    """Files that were written outside, and connections that were opened, seen by Python's audit hook."""

    CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate")
    MADE = ("os.rename", "os.link", "os.symlink")  # from what, where

    def __init__(self, inside: Path) -> None:
        self.seen: list[str] = []
        self._inside = f"{inside}/"
        sys.addaudithook(self._look)

    def _look(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "socket.connect":
            self.seen.append(f"a connection to {args[1]!r}")
        elif event in self.CHANGES:
            self._note(event, args[0])
        if event in self.MADE:
            self._note(event, args[1])
        if event == "open" and (args[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            self._note(event, args[0])

    def _note(self, event: str, path: Any) -> None:
        if isinstance(path, str | bytes | os.PathLike):
            name = os.path.abspath(os.fsdecode(path))
            if not name.startswith((self._inside, "/dev/null", "/proc/self")) and "__pycache__" not in name:
                self.seen.append(f"{event} {name!r}")


def _tree(base: Path) -> set[tuple[str, float]]:
    """What lies around the workspace, and when it was written."""
    own = {os.fspath(base / name) for name in ("allowed", "home", "scratch", "temporary")}
    found = set()
    for folder, folders, names in os.walk(top_of(base)):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in own]
        found |= {(os.path.join(folder, name), os.lstat(os.path.join(folder, name)).st_mtime) for name in names}
        found |= {(os.path.join(folder, name), 0.0) for name in folders}
    return found


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _soft_limit(kind: int, value: int) -> int:
    """Set a limit that can be lifted again; what it was before."""
    before, most = resource.getrlimit(kind)
    resource.setrlimit(kind, (value if most == resource.RLIM_INFINITY else min(value, most), most))
    return before


def read_here(read: Callable[..., Iterable[Any]], *args: str, name: str, data: bytes = b"") -> Iterator[Any]:
    """In the place of ``limited.stream``: the same reader and limit without a process for each, so that nothing it
    raises is hidden."""
    items = []
    given, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(data))
    before = _soft_limit(resource.RLIMIT_DATA, workers.psutil.Process().memory_info().data + limited.GROWTH)
    try:
        for line in limited._lines(read(*args)):
            items += json.loads(line) or []
    except MemoryError:
        raise SourceError(f"{name} needs more than 384 MB of memory to read.", code="FILE_TOO_LARGE") from None
    finally:
        _soft_limit(resource.RLIMIT_DATA, before)
        sys.stdin = given
    yield from items


def complaint_about(code: str, sentence: str) -> str | None:
    """What is wrong with an answer, if anything."""
    if not code.isupper() or code == "ERROR":
        return f"the code {code!r} names nothing"
    if not sentence.endswith((".", "…", "?", ")")) or len(sentence) < 12 or " " not in sentence:
        return f"no sentence: {sentence!r}"
    if not sentence.isprintable() or len(sentence) > 2000:
        return f"cannot be shown: {sentence!r}"
    return None


class Watch:
    """Tries inputs and says what was wrong with how they were taken."""

    def __init__(self, base: Path) -> None:
        self._base, self._escapes = base, Escapes(top_of(base))
        self._around, self._peak = _tree(base), _peak()
        self.codes: Counter[str] = Counter()

    def fault_of(self, try_one: TryOne, rng: Random) -> str | None:
        begun = time.process_time()
        _soft_limit(resource.RLIMIT_CPU, math.ceil(begun + CPU_SECONDS) + 1)
        try:
            said = list(try_one(rng))
        except SemiPruneError as error:
            said = [(error.code, str(error))]
        except BaseException:  # noqa: BLE001 - everything else is a defect
            return f"an error without a name:\n{traceback.format_exc()}"
        self.codes.update({code for code, _ in said} or {"fine"})
        return self._trouble(time.process_time() - begun) or next(
            (f"{code}: {bad}" for code, sentence in said if (bad := complaint_about(code, sentence))), None
        )

    def _trouble(self, seconds: float) -> str | None:
        if seconds > CPU_SECONDS:
            return f"it took {seconds:.1f} s of computing"
        if (growth := _peak() - self._peak) > MOST_GROWTH:
            self._peak += growth
            return f"memory grew by {growth >> 20} MB"
        if self._escapes.seen:
            first, *_ = self._escapes.seen
            self._escapes.seen.clear()
            return f"it left its folder: {first}"
        around, self._around = self._around, _tree(self._base)
        if around != self._around:
            return f"it changed what lies around the workspace: {sorted(around ^ self._around)[:4]}"
        return None


def _work(kind: str, seed: int, numbers: list[int], base: Path, answers: Connection) -> None:
    os.environ["SEMIPRUNE_ROOTS"], os.environ["SEMIPRUNE_HOME"] = str(base / "allowed"), str(base / "home")
    tempfile.tempdir = os.fspath(base / "temporary")
    os.chdir(base / "here")
    limited.stream = read_here
    try_one = getattr(importlib.import_module(f"tests.fuzz.{KINDS.get(kind, kind)}"), kind)(base)
    watch = Watch(base)
    answers.send((READY, ""))
    for number in numbers:
        answers.send((number, watch.fault_of(try_one, Random(f"{seed} {kind} {number}"))))
    codes = ", ".join(f"{code} {n}" for code, n in watch.codes.most_common())
    answers.send((DONE, f"{time.process_time():.1f} s, {_peak() - watch._peak >> 20} MB more; {codes}"))


# --- outside of it ---------------------------------------------------------------------------------------------------


def faults(kind: str, seed: int, numbers: Iterable[int], base: Path) -> Iterator[tuple[int, str]]:
    """(number, what was wrong) of the inputs that were not taken well; last :data:`DONE` and what it cost."""
    context = multiprocessing.get_context(workers.START_METHOD)
    left = list(numbers)
    while left:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(kind, seed, left, base, theirs))
        process.start()
        theirs.close()
        answers = _answers(ours)
        if next(answers, None) != (READY, ""):
            raise RuntimeError(f"{kind} could not be prepared.")
        for number, fault in answers:
            if fault:
                yield number, fault
            left = left[1:] if number != DONE else []
        process.kill()
        process.join()
        if left:
            yield left.pop(0), f"the process ended ({process.exitcode}) or gave no answer"


def _answers(connection: Connection) -> Iterator[tuple[int, str]]:
    with connection:
        while connection.poll(PATIENCE):
            try:
                yield connection.recv()
            except EOFError:
                return
