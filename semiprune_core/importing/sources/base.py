"""What a source is: a stream of entries in a fixed order, each saying where its bytes are.

A source lists; it does not decode. Decoding happens in the import's worker processes, which receive
:class:`Entry` objects and read through :func:`semiprune_core.importing.sources.reading.read_entry`.

Facts given at registration:

    title      for people
    suffixes   optional: endings of files that mean this source, such as ``(".zip",)``
    form       optional: a :class:`Form`, how a person names it on the page; without one the page does not offer it
    beside     optional: True for a file whose images lie beside it
    bundled    optional: True for a pool that comes with the app and is named by its name alone
    fit        optional: how its images become square unless a person says otherwise; else they are cropped
    parse      optional: from what was typed behind ``NAME:`` to a :class:`SourceSpec`; else that is the location
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from semiprune_core.knobs import knobs_of
from semiprune_core.records import Problem
from semiprune_core.registry import Registry

POOL_SPLIT, TEST_SPLIT = "pool", "test"
Origin = Literal["file", "packed"]


@dataclass(frozen=True, slots=True)
class FileAt:
    """A file on disk (already guarded; the worker checks again that it is under ``root``)."""

    root: str
    path: str


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A member of a ZIP archive that was checked as a whole; a worker reads it without listing the archive again."""

    archive: str
    name: str
    offset: int
    compressed: int
    size: int
    method: int
    crc: int


@dataclass(frozen=True, slots=True)
class ArrayRow:
    """Row ``row`` of an uint8 ``.npy`` array of images (N, H, W) or (N, H, W, C)."""

    file: str
    row: int


@dataclass(frozen=True, slots=True)
class BlobPart:
    """``size`` bytes from ``offset`` of a file that holds many originals end to end, as a pool's segment packs them."""

    file: str
    offset: int
    size: int


Locator = FileAt | ArchiveMember | ArrayRow | BlobPart


@dataclass(frozen=True, slots=True)
class Entry:
    """One image to import. ``path`` is its relative name, in the one spelling of ``paths.normal_relative``."""

    path: str
    locator: Locator
    label: str | None = None
    split: str = POOL_SPLIT
    corruption: str | None = None
    corruption_seed: int = 0
    """``corruption`` names one of the corruptions; the worker applies it with ``corruption_seed``."""


@dataclass(frozen=True)
class SourceSpec:
    """A source as JSON: what a person chose. ``location`` is a path, a data set's name, or empty for a bundled pool."""

    kind: str
    location: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    variants: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "location": self.location,
            "options": dict(self.options),
            "variants": [dict(variant) for variant in self.variants],
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> SourceSpec:
        return cls(values["kind"], values["location"], values["options"], tuple(values["variants"]))


class Source(Protocol):
    """An opened source. ``problems`` fills while entries are counted or listed (bad rows, unreadable folders, ...).

    Each pass starts the list anew.
    """

    origin: Origin
    """``file``: originals stay where they are; ``packed``: the import keeps a copy of each original."""
    problems: list[Problem]
    class_names: tuple[str, ...] | None
    """Classes in the source's own order where it has one; otherwise None, and the import sorts the labels it met."""

    def count(self) -> int:
        """How many entries there will be, cheaply."""

    def entries(self) -> Iterator[Entry]:
        """All entries, streamed, in the same order each time."""


@dataclass(frozen=True)
class Form:
    """How a person names a source on the page: one field, ``label``, for a ``folder``, a ``file`` or a free ``text``.

    Sources that share a form are one choice there; which one is meant follows from the file's ending. Options of the
    source that are knobs (:mod:`semiprune_core.knobs`) are drawn below the field.
    """

    title: str
    explain: str
    label: str
    example: str
    is_a: Literal["folder", "file", "text"]
    icon: str = "add_photo_alternate"


ARCHIVE_FORM = Form(
    title="ZIP or .npz on the server",
    explain="A file this server can read.",
    label="File",
    example="~/pictures/my-pool.zip",
    is_a="file",
    icon="folder_zip",
)


OpenSource = Callable[..., Source]
"""``(location, *, guard, scratch, **options) -> Source``; the options are its own."""


def _check_source(name: str, opener: OpenSource) -> None:
    knobs_of(opener)  # raises for knobs that are declared wrongly


SOURCES: Registry[OpenSource] = Registry("source", check=_check_source)
VARIANTS: Registry[Any] = Registry("variant")
