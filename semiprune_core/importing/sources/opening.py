"""Opening what a person named, after it was checked: by its real path, following no link that came since."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TextIO

from semiprune_core.errors import SourceError
from semiprune_core.paths import open_real, shown


def opened(path: str | Path) -> BinaryIO:
    """The bytes of the file at a real path."""
    with named(os.path.basename(path)):
        return open(path, "rb", opener=_opener)


def opened_text(path: str | Path, encoding: str, errors: str = "strict") -> TextIO:
    """The text of the file at a real path, with the ends of its lines as they are."""
    with named(os.path.basename(path)):
        return open(path, encoding=encoding, errors=errors, newline="", opener=_opener)


def listed(folder: Path) -> list[tuple[str, str]]:
    """(name, kind) of what lies in the folder at a real path."""
    handle = open_real(folder)
    try:
        with os.scandir(handle) as entries:
            return [(entry.name, _kind(entry)) for entry in entries]
    finally:
        os.close(handle)


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _opener(path: str, _flags: int) -> int:
    return open_real(path)


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """A file that cannot be opened or read becomes a sentence about ``name``."""
    try:
        yield
    except OSError as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: OSError) -> SourceError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
        return SourceError(f"{shown(name)} is missing. Check its name, or put it back.", code="FILE_MISSING")
    return SourceError(
        f"{shown(name)} cannot be read ({error.strerror}). Check its permissions and the disk.", code="FILE_UNREADABLE"
    )
