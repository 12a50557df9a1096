"""The pool: all images of a project in fixed order, each with a stable id.

Every import leaves one artifact of kind ``pool``, a *segment*; the pool is the segments one after the other.
A segment is

    table.parquet      one row per image, columns of SCHEMA
    problems.parquet   what could not be imported, with its reason
    images.npy         training cache, uint8 (N, size, size, channels), memory-mapped
    thumbs.bin, thumbs.npy        thumbnails end to end, and their N + 1 offsets
    originals.bin, originals.npy  the same for originals, where the import keeps them ("packed")

Ids are 64-bit numbers, shown as 16 hex digits: the first bytes of SHA-256 over content hash and relative path. What
leaves the building carries them with a letter in front, because spreadsheets take some of them for numbers.
The content hash is taken over the decoded pixels, so the same picture has the same id from a folder, a ZIP or an array.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from semiprune_core.checks import check_choice
from semiprune_core.errors import InvalidDataError, UnsafePathError, WorkspaceError
from semiprune_core.paths import is_inside
from semiprune_core.project.artifacts import Artifact
from semiprune_core.records import UNLABELED, IntArray, Problem
from semiprune_core.settings import Settings

SIZES = (28, 32, 40, 48, 64, 96, 128, 224)
TEXT = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        ("image_id", pa.uint64()),
        ("path", pa.string()),
        ("file", pa.string()),  # name on disk where it is spelt differently from path; null otherwise
        ("width", pa.int32()),
        ("height", pa.int32()),
        ("mode", TEXT),  # as in the file: RGB, L, CMYK, I;16, ...
        ("format", TEXT),  # JPEG, PNG, array, ...
        ("file_bytes", pa.int64()),
        ("file_sha256", pa.binary(32)),
        ("content_hash", pa.binary(16)),
        ("label", TEXT),  # reference label; null where there is none
        ("split", TEXT),  # pool or test
        ("corruption", TEXT),  # null for images as they came
        ("converted", TEXT),  # what decoding had to change, in words; null for nothing
    ]
)
ID_LETTER = "i"
"""In front of an exported id: without it some are all digits, or like 5e25."""
PROBLEM_SCHEMA = pa.schema([("path", pa.string()), ("code", TEXT), ("message", pa.string())])
MIME = {b"\xff\xd8": "image/jpeg", b"\x89P": "image/png", b"RI": "image/webp", b"GI": "image/gif", b"BM": "image/bmp"}


@dataclass(frozen=True, kw_only=True)
class PoolSettings(Settings):
    """The training cache's form, one for the whole project."""

    size: int = 32
    channels: int = 3
    fit: str = "crop"
    """How an image that is not square becomes square: crop its middle, pad it, or stretch it."""

    def check(self) -> None:
        check_choice("size", self.size, SIZES)
        check_choice("channels", self.channels, (1, 3))
        check_choice("fit", self.fit, ("crop", "pad", "stretch"))


def image_id(content_hash: bytes, path: str) -> int:
    """The stable id of an image with this content under this relative path."""
    return int.from_bytes(hashlib.sha256(content_hash + b"\0" + path.encode()).digest()[:8], "big")


def show_id(number: int) -> str:
    return f"{int(number):016x}"


def export_id(number: int) -> str:
    """The id as files hold it that leave the building.

    >>> export_id(0x5E25)
    'i0000000000005e25'
    """
    return f"{ID_LETTER}{show_id(number)}"


def read_id(text: str) -> int:
    """The number of an id as shown or as exported; anything else is refused."""
    digits = text.removeprefix(ID_LETTER)
    if len(digits) != 16 or any(char not in "0123456789abcdef" for char in digits):
        raise InvalidDataError(f"An image id is 16 hex digits, got {text[:40]!r}.", code="BAD_IMAGE_ID")
    return int(digits, 16)


@contextlib.contextmanager
def _named_damage(path: Path) -> Iterator[None]:
    """Name the file of a pool that cannot be read."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        raise WorkspaceError(
            f"{path} is missing or damaged ({str(error)[:200]}). Restore it from a backup, or import the images again."
        ) from error


def _load(path: Path) -> np.ndarray:
    with _named_damage(path):
        return np.load(path, mmap_mode="r", allow_pickle=False)


@dataclass(frozen=True)
class Blob:
    """Many small byte strings in one file, with their offsets beside it."""

    data: Path
    offsets: IntArray

    @classmethod
    def open(cls, folder: Path, name: str) -> Blob:
        return cls(folder / f"{name}.bin", _load(folder / f"{name}.npy"))

    def __getitem__(self, row: int) -> bytes:
        start, end = int(self.offsets[row]), int(self.offsets[row + 1])
        with open(self.data, "rb") as file:
            file.seek(start)
            return file.read(end - start)


@dataclass(frozen=True)
class Segment:
    """One import's artifact, opened lazily."""

    artifact: Artifact

    @property
    def n_images(self) -> int:
        return int(self.artifact.facts["n_images"])

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Some columns of the table; the others are not read."""
        with _named_damage(self._table):
            return pq.read_table(self._table, columns=list(names), memory_map=True)

    @property
    def _table(self) -> Path:
        return self.artifact.path("table.parquet")

    @cached_property
    def _group_ends(self) -> IntArray:
        """Where each row group of the table ends."""
        with _named_damage(self._table):
            groups = pq.read_metadata(self._table)
        return np.cumsum([groups.row_group(number).num_rows for number in range(groups.num_row_groups)])

    def facts(self, rows: IntArray, names: Sequence[str]) -> list[dict[str, Any]]:
        """A few rows as plain values; only the row groups that hold them are read."""
        owner = np.searchsorted(self._group_ends, rows, side="right")
        groups, place = np.unique(owner, return_inverse=True)
        sizes = np.diff(self._group_ends, prepend=0)[groups]
        begins = self._group_ends[groups] - sizes
        with _named_damage(self._table), pq.ParquetFile(self._table, memory_map=True) as file:
            table = file.read_row_groups(groups.tolist(), columns=list(names))
        shifted = rows - begins[place] + (np.cumsum(sizes) - sizes)[place]
        return table.take(pa.array(shifted)).to_pylist()

    @cached_property
    def images(self) -> np.ndarray:
        """(N, size, size, channels) uint8, memory-mapped."""
        return _load(self.artifact.path("images.npy"))

    @cached_property
    def thumbs(self) -> Blob:
        return Blob.open(self.artifact.folder, "thumbs")

    @cached_property
    def originals(self) -> Blob | None:
        """Packed originals, or None where they stay in their own files."""
        return Blob.open(self.artifact.folder, "originals") if self.artifact.facts["origin"] == "packed" else None

    def problems(self) -> list[Problem]:
        with _named_damage(self.artifact.path("problems.parquet")):
            table = pq.read_table(self.artifact.path("problems.parquet"))
        return [Problem(**row) for row in table.to_pylist()]


@dataclass(frozen=True, eq=False)
class Pool:
    """A view on segments: ``rows`` are positions in their concatenation, in order."""

    segments: tuple[Segment, ...]
    rows: IntArray
    starts: IntArray = field(repr=False)
    """First position of each segment."""
    _columns: dict[str, pa.Array] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> pa.Array:
        """One column of this view; read when it is first asked for, text columns with one dictionary."""
        if name not in self._columns:
            parts = [chunk for segment in self.segments for chunk in segment.columns([name])[name].chunks]
            whole = pa.chunked_array(parts, SCHEMA.field(name).type).unify_dictionaries().combine_chunks()
            self._columns[name] = whole if len(whole) == len(self.rows) else whole.take(pa.array(self.rows))
        return self._columns[name]

    def facts(
        self, positions: Sequence[int] | np.ndarray, columns: Sequence[str] = SCHEMA.names
    ) -> list[dict[str, Any]]:
        """The table's rows of a few images as plain values, for a page of them."""
        rows = self.rows[np.asarray(positions, dtype=np.int64)]
        owner = np.searchsorted(self.starts, rows, side="right") - 1
        picked: list[dict[str, Any]] = [{}] * len(rows)
        for number in np.unique(owner):
            mine = np.flatnonzero(owner == number)
            answers = self.segments[number].facts(rows[mine] - self.starts[number], columns)
            for place, answer in zip(mine, answers, strict=True):
                picked[place] = answer
        return picked

    @cached_property
    def ids(self) -> np.ndarray:
        """(N,) uint64."""
        return self.column("image_id").to_numpy()

    @cached_property
    def hash(self) -> str:
        """Identity of the pool's content and order, for manifests."""
        digest = hashlib.sha256(np.ascontiguousarray(self.ids).tobytes())
        for segment in self.segments:
            digest.update(segment.artifact.hash.encode())
        return digest.hexdigest()

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(self.ids, kind="stable")
        return self.ids[order], order

    def positions(self, ids: Sequence[int] | np.ndarray) -> IntArray:
        """Positions of image ids in this view; -1 for an id it does not hold."""
        wanted = np.asarray(ids, dtype=np.uint64)
        values, order = self._sorted
        if not len(values):
            return np.full(len(wanted), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
        return np.where(values[place] == wanted, order[place], -1).astype(np.int64)

    def path(self, position: int) -> str:
        return self.column("path")[int(position)].as_py()

    def split(self, name: str) -> Pool:
        """The images of one split."""
        column = self.column("split")
        names = column.dictionary.to_pylist()
        if name not in names:
            return Pool(self.segments, self.rows[:0], self.starts)
        mask = column.indices.to_numpy(zero_copy_only=False) == names.index(name)
        return self if mask.all() else Pool(self.segments, self.rows[mask], self.starts)

    def take(self, positions: IntArray) -> Pool:
        return Pool(self.segments, self.rows[positions], self.starts)

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """Reference classes: in the order the first segment's source gave, then others by name."""
        ordered: dict[str, None] = {}
        for segment in self.segments:
            ordered.update(dict.fromkeys(segment.artifact.facts["class_names"]))
        return tuple(ordered)

    @cached_property
    def reference_labels(self) -> IntArray:
        """(N,) indices into ``class_names``, -1 where an image came without a label."""
        column = self.column("label")
        number = {name: index for index, name in enumerate(self.class_names)}
        codes = np.array([number.get(name, UNLABELED) for name in column.dictionary.to_pylist()] + [UNLABELED])
        return codes[column.indices.fill_null(len(codes) - 1).to_numpy(zero_copy_only=False)]

    @cached_property
    def duplicate_of(self) -> IntArray:
        """(N,) position of the first image with the same content; its own position where it is the first."""
        column = self.column("content_hash")
        high, low = np.frombuffer(column.buffers()[1], dtype=np.uint64).reshape(-1, 2)[column.offset :][: len(column)].T
        order = np.lexsort((low, high))  # stable: within one content the first image comes first
        begins = np.ones(len(order), dtype=bool)
        begins[1:] = (high[order][1:] != high[order][:-1]) | (low[order][1:] != low[order][:-1])
        first = np.empty(len(order), dtype=np.int64)
        first[order] = order[np.flatnonzero(begins)][np.cumsum(begins) - 1]
        return first

    def images(self) -> np.ndarray:
        """(N, size, size, channels) uint8: memory-mapped when the view is one run of one segment, else gathered."""
        if not len(self.rows):
            shape = self.segments[0].images.shape[1:]
            return np.empty((0, *shape), dtype=np.uint8)
        first, last = int(self.rows[0]), int(self.rows[-1])
        where = int(np.searchsorted(self.starts, first, side="right")) - 1
        segment, start = self.segments[where], int(self.starts[where])
        one_run = last - first == len(self.rows) - 1 and bool((np.diff(self.rows) == 1).all())
        if one_run and last < start + segment.n_images:
            return segment.images[first - start : last - start + 1]
        parts = np.empty((len(self.rows), *segment.images.shape[1:]), dtype=np.uint8)
        owner = np.searchsorted(self.starts, self.rows, side="right") - 1
        for number, part in enumerate(self.segments):
            mine = np.flatnonzero(owner == number)
            parts[mine] = part.images[self.rows[mine] - self.starts[number]]
        return parts

    def _locate(self, position: int) -> tuple[Segment, int]:
        row = int(self.rows[position])
        number = int(np.searchsorted(self.starts, row, side="right")) - 1
        return self.segments[number], row - int(self.starts[number])

    def thumb(self, position: int) -> bytes:
        segment, row = self._locate(position)
        return segment.thumbs[row]

    def _fact(self, position: int, name: str) -> Any:
        """One value of the table: from its column where that was read already, else from its row group alone."""
        if name in self._columns:
            return self._columns[name][int(position)].as_py()
        return self.facts([position], [name])[0][name]

    def original(self, position: int) -> bytes:
        """The original file's bytes; refused with a sentence when it is gone or was changed since the import."""
        segment, row = self._locate(position)
        if segment.originals is not None:
            return segment.originals[row]
        path = self.original_file(position)
        assert path is not None
        data = path.read_bytes()
        if hashlib.sha256(data).digest() != self._fact(position, "file_sha256"):
            raise WorkspaceError(
                f"{path} was changed since the import. Restore it, or import the images again.", code="FILE_CHANGED"
            )
        return data

    def file_name(self, position: int) -> Path | None:
        """Where the original lay at the import, whether it is there or not; None where originals are packed."""
        segment, _ = self._locate(position)
        if segment.originals is not None:
            return None
        name = self._fact(position, "file") or self._fact(position, "path")
        return Path(segment.artifact.facts["root"]) / name

    def original_file(self, position: int) -> Path | None:
        """Where the original lies, or None where originals are packed; refused when it is gone or leads elsewhere."""
        path = self.file_name(position)
        if path is None:
            return None
        root = Path(self._locate(position)[0].artifact.facts["root"])
        if not path.is_file():
            raise WorkspaceError(
                f"{path} has been removed since the import. Put it back, or import the images again.",
                code="FILE_MISSING",
            )
        if not is_inside(path.resolve(), root):
            raise UnsafePathError(f"{path} now leads outside {root}. Restore it, or import the images again.")
        return path


def open_pool(segments: Sequence[Artifact]) -> Pool:
    """The pool of these ``pool`` artifacts, in their order."""
    opened = tuple(Segment(artifact) for artifact in segments)
    counts = np.array([segment.n_images for segment in opened], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
    return Pool(opened, np.arange(int(counts.sum()), dtype=np.int64), starts)


def mime_of(data: bytes) -> str:
    """The media type of an image's bytes, by their first two."""
    return MIME.get(data[:2], "application/octet-stream")
