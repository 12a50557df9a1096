"""Reading what somebody else wrote in a process that may not grow: a file of kilobytes can unpack to gigabytes.

``python -m semiprune_core.importing.limited GROWTH MODULE FUNCTION [ARGUMENT ...]`` writes what the function yields as
lines of JSON. It is a command, not a child of multiprocessing, because that would run the page which asked for it
again.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import psutil

from semiprune_core import errors
from semiprune_core.errors import SemiPruneError, SourceError
from semiprune_core.jobs.launch import own_modules
from semiprune_core.paths import shown

GROWTH = 384 << 20  # bytes that the process may take beyond what it began with
PATIENCE = 120.0  # seconds without an answer
LINE = 1 << 20  # letters of an answer, about; the next one is made smaller or larger
END = b"null"
OUT_OF_MEMORY = 75  # the status of a process that met its limit; 1 is that of an error nobody thought of


def stream(
    read: Callable[..., Iterable[Any]], *args: str, name: str, data: bytes = b"", growth: int = GROWTH
) -> Generator[Any, None, None]:
    """What ``read(*args)`` yields (as JSON has it), made in a process of its own that is given ``data`` as its input.

    It may take ``growth`` bytes of memory. Errors with a sentence come through as they are; running out of memory or
    out of time becomes one about ``name``.
    """
    command = [sys.executable, "-m", __name__, str(growth), read.__module__, read.__name__, *args]
    variables = {**os.environ, **own_modules(), "PYTHONIOENCODING": "utf-8"}
    with tempfile.TemporaryFile() as given:
        given.write(data)
        given.seek(0)
        process = subprocess.Popen(
            command, env=variables, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, close_fds=True
        )
    assert process.stdout is not None
    try:
        for line in _lines_of(process.stdout.fileno(), name):
            yield from _items(line)
    except EOFError:
        raise _early_end(process.wait(), name, growth) from None
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _lines_of(output: int, name: str) -> Iterator[bytes]:
    """The lines up to the last one, which says that all is told."""
    rest = b""
    while True:
        if not select.select([output], [], [], PATIENCE)[0]:
            raise SourceError(
                f"{shown(name)} took more than {PATIENCE:g} s to read. Split the file.", code="FILE_TOO_SLOW"
            )
        part = os.read(output, LINE)
        if not part:
            raise EOFError
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            if line == END:
                return
            yield line


def _early_end(status: int, name: str, growth: int) -> SourceError:
    """Why a reader ended before it had told all: out of memory, or a file that its decoder cannot bear."""
    if status == -signal.SIGXCPU:
        return SourceError(f"{shown(name)} took too long to read. Make it smaller, or split it.", code="FILE_TOO_SLOW")
    if status in (OUT_OF_MEMORY, -signal.SIGKILL, -signal.SIGABRT):  # our own limit, the system's, a decoder's
        return SourceError(
            f"{shown(name)} needs more than {growth >> 20} MB of memory to read. Look for a very large cell or "
            "list in it, or split the file.",
            code="FILE_TOO_LARGE",
        )
    return SourceError(
        f"{shown(name)} is damaged: its reader ended with status {status}. Write the file again.", code="FILE_DAMAGED"
    )


def _items(line: bytes) -> list[Any]:
    answer = json.loads(line)
    if isinstance(answer, dict):
        raise getattr(errors, answer["error"])(answer["message"], code=answer["code"])
    return answer


def limit_growth(growth: int) -> None:
    """From here on this process may take ``growth`` more bytes of memory, where the system can say so."""
    with contextlib.suppress(ValueError, OSError, AttributeError):
        limit = psutil.Process().memory_info().data + growth
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def limit_effort(cpu_seconds: int, file_bytes: int = 1 << 30) -> None:
    """From here on this process may work so long, and write no file beyond that."""
    for what, most in ((resource.RLIMIT_CPU, cpu_seconds), (resource.RLIMIT_FSIZE, file_bytes)):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))


def _lines(items: Iterable[Any]) -> Iterator[str]:
    """The items in lists of about :data:`LINE` letters, and the end."""
    batch: list[Any] = []
    size = 1
    for item in items:
        batch.append(item)
        if len(batch) >= size:
            line = json.dumps(batch)
            size = 2 * size if len(line) < LINE else max(1, size // 2)
            batch = []
            yield line
    yield json.dumps(batch)
    yield END.decode()


def main(arguments: list[str]) -> int:
    growth, module, function, *args = arguments
    read = getattr(importlib.import_module(module), function)
    limit_growth(int(growth))
    try:
        for line in _lines(read(*args)):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    except SemiPruneError as error:
        answer = {"error": type(error).__name__, "message": str(error), "code": error.code}
        sys.stdout.write(json.dumps(answer) + "\n")
    except (MemoryError, BrokenPipeError):
        return OUT_OF_MEMORY
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
