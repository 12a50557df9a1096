"""A ZIP archive, uploaded or by its path. Nothing is extracted; originals are packed into the pool.

Decisions: a name that stands in the archive twice is left out both times and listed; names that differ only in case
are both kept and both reported. Entries come in the archive's own order.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from semiprune_core.errors import SourceError
from semiprune_core.importing.sources import layout, ziplist
from semiprune_core.importing.sources.base import ARCHIVE_FORM, SOURCES, Entry, Origin
from semiprune_core.paths import PathGuard, normal_relative, shown
from semiprune_core.records import Problem


def name_hash(text: str) -> int:
    """64 bits of a name; two different ones among millions do not meet in practice."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def repeated(hashes: array[int]) -> frozenset[int]:
    """The values that occur more than once."""
    values, counts = np.unique(np.frombuffer(hashes, dtype=np.uint64), return_counts=True)
    return frozenset(values[counts > 1].tolist())


class ArchiveSource:
    """All images of a checked archive, streamed from its directory."""

    origin: Origin = "packed"
    class_names: tuple[str, ...] | None = None

    def __init__(self, path: Path, folder_labels: str = layout.AUTO) -> None:
        self.problems: list[Problem] = []
        self._path = path
        self._directory = ziplist.check(path)
        self._prefix = ""
        self._read_names()
        found = layout.layout_of_paths(path for path, _ in self._visible())
        self._layout = layout.with_folder_labels(found, folder_labels)

    def class_folders(self) -> tuple[str, ...]:
        """The folders whose names could be reference labels."""
        return self._layout.class_folders(path for path, _ in self._visible())

    def _visible(self) -> Iterator[tuple[str, ziplist.Member]]:
        """(relative path, member) of all files a person would see."""
        for member in ziplist.members(self._path, self._directory):
            path = normal_relative(member.name)
            if not member.is_folder and not layout.has_hidden_part(path):
                yield path.removeprefix(self._prefix), member

    def _read_names(self) -> None:
        """Find the folder around everything, and the names that stand in the archive twice."""
        exact, folded = array("Q"), array("Q")
        wrapper = layout.Wrapper()
        for path, _ in self._visible():
            exact.append(name_hash(path))
            folded.append(name_hash(path.casefold()))
            wrapper.see(path)
        self._exact, self._folded = repeated(exact), repeated(folded)
        self._prefix = wrapper.prefix

    def count(self) -> int:
        return sum(1 for _ in self.entries())

    def entries(self) -> Iterator[Entry]:
        self.problems.clear()
        for path, member in self._visible():
            if self._is_usable(path, member):
                label, split = self._layout.place(path)
                yield Entry(path, member.inside(self._path), label, split)

    def _is_usable(self, path: str, member: ziplist.Member) -> bool:
        if name_hash(self._prefix + path) in self._exact:
            return self._note(path, "ZIP_DUPLICATE_NAME", "appears in the archive more than once; none was imported.")
        if member.is_link:
            return self._note(path, "ZIP_LINK", "is a link inside the archive and was left out. Pack the file itself.")
        suffix = layout.suffix_of(path.rpartition("/")[2])
        if suffix in layout.ARCHIVE_SUFFIXES:
            return self._note(path, "ZIP_NESTED", "is an archive inside the archive. Unpack it, or import it alone.")
        if suffix not in layout.IMAGE_SUFFIXES:
            self.problems.append(layout.not_an_image(path))
            return False
        if name_hash((self._prefix + path).casefold()) in self._folded:
            self._note(path, "ZIP_DUPLICATE_NAME", "has a twin whose name differs only in case; both were imported.")
        return True

    def _note(self, path: str, code: str, what: str) -> bool:
        """List a problem; False, so that a check can end with it."""
        self.problems.append(Problem(path, code, f"{shown(path)} {what}"))
        return False


def guarded_file(location: str, guard: PathGuard, what: str) -> Path:
    """The real path of a file a person named."""
    path = guard.resolve(location)
    if not path.is_file():
        raise SourceError(f"{shown(location)} does not exist. Check the name of the {what}.", code="FILE_MISSING")
    return path


@SOURCES.register("zip", title="ZIP archive", suffixes=(".zip",), form=ARCHIVE_FORM)
def open_archive(location: str, *, guard: PathGuard, scratch: Path, folder_labels: str = layout.AUTO) -> ArchiveSource:
    return ArchiveSource(guarded_file(location, guard, "archive"), folder_labels)
