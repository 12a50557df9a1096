"""Reading one entry: bytes in, picture out. Safe to call in worker processes and in threads.

Open archives and memory-maps are kept per process, a few at a time. A file is checked again at the moment it is read:
that it still lies under its root, is a plain file, and is not too large.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from PIL import Image

from semiprune_core.errors import SourceError
from semiprune_core.importing import corruptions, images
from semiprune_core.importing.sources import ziplist
from semiprune_core.importing.sources.base import ArchiveMember, ArrayRow, BlobPart, Entry, FileAt
from semiprune_core.importing.sources.opening import named
from semiprune_core.paths import open_beneath, open_real, shown

MAX_FILE_BYTES = 200 * 10**6


def read_entry(entry: Entry, *, before_large: Callable[[], None] = lambda: None) -> tuple[images.Decoded, bytes]:
    """The decoded picture, corrupted where the entry says so, and its original file.

    The original is the file's or member's bytes; for array rows and corrupted pictures it is a PNG of the pixels.
    """
    if isinstance(entry.locator, ArrayRow):
        decoded, data = images.from_array(_array(entry.locator, entry.path), name=entry.path), None
    else:
        data = read_bytes(entry)
        decoded = images.decode(data, name=entry.path, before_large=before_large)
    if entry.corruption is not None:
        pixels = corruptions.apply(entry.corruption, decoded.pixels, entry.corruption_seed)
        decoded = images.Decoded(Image.fromarray(pixels), decoded.mode, decoded.format, decoded.converted)
        data = None
    return decoded, images.encode_png(decoded.image) if data is None else data


def read_bytes(entry: Entry) -> bytes:
    """The original bytes of a file, an archive's member or a part of a blob."""
    if isinstance(entry.locator, FileAt):
        return _file(entry.locator, entry.path)
    if isinstance(entry.locator, BlobPart):
        at = entry.locator
        return os.pread(_blob(at.file, _version(at.file)).number, at.size, at.offset)
    assert isinstance(entry.locator, ArchiveMember)
    return _member(entry.locator)


def _file(at: FileAt, name: str) -> bytes:
    with named(name):
        handle = open_beneath(at.root, at.path)
    with open(handle, "rb") as file:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            raise SourceError(f"{shown(name)} is not a plain file and was left out.", code="NOT_A_FILE")
        _check_bytes(name, info.st_size)
        with named(name):
            data = file.read(MAX_FILE_BYTES + 1)
        _check_bytes(name, len(data))
        return data


def _check_bytes(name: str, size: int) -> None:
    if size > MAX_FILE_BYTES:
        raise SourceError(
            f"{shown(name)} is {size / 1e6:.0f} MB, more than the {MAX_FILE_BYTES / 1e6:g} MB allowed for one image. "
            "Make it smaller.",
            code="FILE_TOO_LARGE",
        )


def _version(path: str) -> tuple[int, int]:
    """Changes when the file does, so that a cache never serves an old one."""
    with named(path):
        info = os.stat(path)
    return info.st_mtime_ns, info.st_size


class _Handle:
    """An open file that closes itself when the cache lets go of it."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


@lru_cache(maxsize=4)
def _archive(path: str, version: tuple[int, int]) -> _Handle:
    with named(path):
        return _Handle(open_real(path))


@lru_cache(maxsize=4)
def _blob(path: str, version: tuple[int, int]) -> _Handle:
    with named(path):
        return _Handle(os.open(path, os.O_RDONLY | os.O_CLOEXEC))


@lru_cache(maxsize=4)
def _mapped(path: str, version: tuple[int, int]) -> np.ndarray:
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _member(at: ArchiveMember) -> bytes:
    _check_bytes(at.name, at.size)
    handle = _archive(at.archive, _version(at.archive))
    return b"".join(ziplist.unpack(handle.number, at))


def _array(at: ArrayRow, name: str) -> np.ndarray:
    rows = _mapped(at.file, _version(at.file))
    if not 0 <= at.row < len(rows):
        raise SourceError(f"{shown(name)} is row {at.row} of an array that has {len(rows)}.", code="ARRAY_SHAPE")
    return rows[at.row]
