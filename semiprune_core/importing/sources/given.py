"""What a file of another tool says about images: rows of (path, label, split, remark), judged as those of a table.

A reader unpacks the file in a process that may not grow; a source that has one is a subclass of the table's source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from semiprune_core.errors import SourceError
from semiprune_core.importing.sources.manifest import ManifestSource, Row, Table
from semiprune_core.paths import is_inside, shown

COLUMNS = ("path", "label", "split", "remark")
SEVERAL = "several"
"""The remark of an image with more than one class: it is imported without a label."""
ROOTS = (".", "data", "images", "train")
"""Where below the file's own folder images may lie."""


@dataclass(frozen=True)
class GivenTable(Table):
    """A table whose rows ``read`` makes anew each time."""

    read: Callable[[], Iterable[list[str]]] = tuple

    def rows(self) -> Iterator[Row]:
        yield from enumerate(self.read(), start=1)


class GivenSource(ManifestSource):
    """The images a file speaks of, below ``root``."""

    def __init__(self, path: Path, root: Path, read: Callable[[], Iterable[list[str]]]) -> None:
        first = next(iter(read()), None)
        if first is None:
            raise SourceError(f"{shown(path.name)} speaks of no image.", code="NO_IMAGES")
        table = GivenTable(path, COLUMNS, "", "", ((1, first),), read)
        super().__init__(table, _root_of(root, first[0]), 0, 1, 2)

    def _relative(self, number: int, cells: list[str]) -> str | None:
        if cells[3] == SEVERAL:
            self._note(number, cells[0], "SEVERAL_CLASSES", "has several classes and was imported without a label.")
        return super()._relative(number, cells)


def _root_of(folder: Path, name: str) -> Path:
    """Below which of the usual folders the first image lies; the file's own where it lies in none."""
    places = ((folder / place).resolve() for place in ROOTS)
    return next((place for place in places if is_inside(place, folder) and (place / name).is_file()), folder)
