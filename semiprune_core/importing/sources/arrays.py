"""An ``.npz`` file: images, labels, optional class_names, split and paths.

    images        uint8 (N, H, W) or (N, H, W, C) with C of 1, 3 or 4
    labels        (N,) integers into class_names (-1: none), or (N,) strings ("": none)
    class_names   strings
    split         (N,) strings: pool or train, test or val
    paths         (N,) strings; default 000.png, 001.png, ... with as many digits as needed

The arrays are unpacked piece by piece into the scratch folder and memory-mapped; none is ever whole in memory.
"""

from __future__ import annotations

import shutil
import sys
import tokenize
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from semiprune_core.errors import DiskFullError, SourceError, UnsafePathError
from semiprune_core.importing.sources import ziplist
from semiprune_core.importing.sources.archive import guarded_file, name_hash, repeated
from semiprune_core.importing.sources.base import ARCHIVE_FORM, POOL_SPLIT, SOURCES, ArrayRow, Entry, Origin
from semiprune_core.importing.sources.layout import split_of
from semiprune_core.importing.sources.opening import opened
from semiprune_core.paths import PathGuard, normal_relative, shown
from semiprune_core.records import Problem

KNOWN = ("images", "labels", "class_names", "split", "paths")
HEADER_DAMAGE = (
    ValueError,
    OSError,
    EOFError,
    ArithmeticError,
    SyntaxError,
    TypeError,
    LookupError,
    RecursionError,
    MemoryError,
    tokenize.TokenError,
)
"""What NumPy raises on damaged headers, which it reads as Python literals."""
READING = 4096  # rows of a text or label column turned into Python objects at a time


class ArraySource:
    """The rows of an array of images, with what stands beside them; columns may be memory-mapped."""

    origin: Origin = "packed"

    def __init__(self, name: str, file: Path, columns: dict[str, np.ndarray]) -> None:
        self.problems: list[Problem] = []
        self._file, self._name = str(file), name
        self._images = columns["images"]
        _check_images(name, self._images)
        n = len(self._images)
        self._labels, self._splits, self._paths = (columns.get(key) for key in ("labels", "split", "paths"))
        for key in ("labels", "split", "paths"):
            if key in columns:
                _check_column(name, key, columns[key], n)
        self.class_names = _class_names(name, columns.get("class_names"), self._labels)
        self._twice = self._repeated_paths() if self._paths is not None else frozenset()

    def _repeated_paths(self) -> frozenset[int]:
        hashes = array("Q")
        for path in _values(self._paths, self._name):
            hashes.append(name_hash(_spelled(path)))
        return repeated(hashes)

    def count(self) -> int:
        return sum(1 for _ in self.entries()) if self._paths is not None else len(self._images)

    def entries(self) -> Iterator[Entry]:
        self.problems.clear()
        n = len(self._images)
        digits = len(str(max(n - 1, 0)))
        labels = _values(self._labels, self._name) if self._labels is not None else iter(())
        splits = _values(self._splits, self._name) if self._splits is not None else None
        paths = _values(self._paths, self._name) if self._paths is not None else None
        for row in range(n):
            given = f"{row:0{digits}d}.png" if paths is None else str(next(paths))
            label = self._label(next(labels)) if self._labels is not None else None
            split = POOL_SPLIT if splits is None else self._split(row, next(splits))
            if (path := self._path(row, given)) is not None and split is not None:
                yield Entry(path, ArrayRow(self._file, row), label, split)

    def _label(self, value: Any) -> str | None:
        if isinstance(value, str):
            return _clean(value) or None
        return self.class_names[value] if self.class_names and value >= 0 else None

    def _split(self, row: int, word: str) -> str | None:
        if (split := split_of(word)) is None:
            self.problems.append(
                Problem(f"row {row}", "SPLIT_UNKNOWN", f"Row {row} has the split {shown(word)}; use pool or test.")
            )
        return split

    def _path(self, row: int, given: str) -> str | None:
        try:
            path = normal_relative(given)
            path.encode()
        except (UnsafePathError, UnicodeEncodeError):
            self.problems.append(
                Problem(
                    f"row {row}", "PATH_OUTSIDE_ROOT", f"Row {row} has the path {shown(given)}, which is not relative."
                )
            )
            return None
        if self._twice and name_hash(path) in self._twice:
            self.problems.append(
                Problem(path, "DUPLICATE_ROW", f"{shown(path)} (row {row}) appears in paths more than once.")
            )
            return None
        return path


def _values(column: np.ndarray | None, name: str) -> Iterator[Any]:
    """The values of a memory-mapped column of the file ``name`` as Python objects, some thousand at a time."""
    assert column is not None
    for start in range(0, len(column), READING):
        values = np.ascontiguousarray(column[start : start + READING])
        if values.dtype.kind == "U" and values.itemsize:
            letters = values.view(f"{values.dtype.byteorder}u4")
            if letters.max(initial=0) > sys.maxunicode:
                raise _bad(name, "a text column holds numbers that are not characters", "NPZ_CORRUPT")
        yield from values.tolist()


def _spelled(text: str) -> str:
    """A path in its one spelling; one that is refused later stays as it is."""
    try:
        return normal_relative(text)
    except UnsafePathError:
        return text


def _clean(text: str) -> str:
    """Text that can be written as UTF-8: half letters become question marks."""
    return text.encode("utf-8", "replace").decode()


def _bad(name: str, what: str, code: str) -> SourceError:
    return SourceError(f"{shown(name)} cannot be used: {what}.", code=code)


def _check_images(name: str, images: np.ndarray) -> None:
    shape = images.shape
    if images.dtype != np.uint8:
        raise _bad(
            name,
            f"images has type {images.dtype}, but must be uint8. Save pixel values 0 to 255, as in "
            "(images * 255).round().astype('uint8') for values 0 to 1",
            "NPZ_TYPE",
        )
    if len(shape) == 4 and shape[1] in (1, 3, 4) and shape[3] not in (1, 3, 4):
        raise _bad(name, f"images has shape {shape}, channels first. Save images.transpose(0, 2, 3, 1)", "NPZ_SHAPE")
    if len(shape) not in (3, 4) or (len(shape) == 4 and shape[3] not in (1, 3, 4)):
        raise _bad(name, f"images has shape {shape}, but must be (N, H, W) or (N, H, W, 1, 3 or 4)", "NPZ_SHAPE")
    if not shape[0]:
        raise _bad(name, "images is empty", "SOURCE_EMPTY")


def _check_column(name: str, key: str, column: np.ndarray, n: int) -> None:
    if column.shape != (n,):
        raise _bad(name, f"{key} has shape {column.shape}, but there are {n} images", "NPZ_LENGTHS")
    kinds, wanted = ("iuU", "whole numbers or text") if key == "labels" else ("U", "text")
    if column.dtype.kind not in kinds:
        raise _bad(name, f"{key} has type {column.dtype}; it must hold {wanted}", "NPZ_TYPE")


def _class_names(name: str, given: np.ndarray | None, labels: np.ndarray | None) -> tuple[str, ...] | None:
    """The classes in their order; integers without names are named by their numbers."""
    if given is not None and (given.ndim != 1 or given.dtype.kind != "U"):
        raise _bad(name, "class_names must be a list of text", "NPZ_TYPE")
    names = tuple(_clean(word) for word in _values(given, name)) if given is not None else None
    if names is not None and len(set(names)) != len(names):
        raise _bad(name, "class_names lists a name twice", "NPZ_LABELS")
    if labels is None or labels.dtype.kind == "U":
        return names
    low, high = int(labels.min()), int(labels.max())
    if names is None:
        if high >= 100_000:
            raise _bad(name, f"the highest label is {high}; without class_names at most 99999 is allowed", "NPZ_LABELS")
        names = tuple(str(number) for number in range(high + 1))
    if low < -1 or high >= len(names):
        raise _bad(name, f"labels run from {low} to {high}, but there are {len(names)} class_names", "NPZ_LABELS")
    return names


def unpack_columns(path: Path, scratch: Path) -> dict[str, np.ndarray]:
    """Unpack the known arrays of an ``.npz`` into ``scratch`` and memory-map them."""
    directory = ziplist.check(path, remedy="Save it with numpy.savez, uncompressed, if you trust it.")
    columns: dict[str, np.ndarray] = {}
    for member in ziplist.members(path, directory):
        key = member.name.removesuffix(".npy")
        if key in KNOWN and key in columns:
            raise _bad(path.name, f"it holds {key} twice", "NPZ_CORRUPT")
        if key in KNOWN:
            columns[key] = _unpacked(path, member, scratch / f"{key}.npy")
    if "images" not in columns:
        members = ", ".join(shown(member.name) for member in list(ziplist.members(path, directory))[:8]) or "nothing"
        raise _bad(path.name, f"it holds no array named images (found: {members})", "NPZ_NO_IMAGES")
    return columns


def _unpacked(path: Path, member: ziplist.Member, target: Path) -> np.ndarray:
    free = shutil.disk_usage(target.parent).free
    if member.size > free:
        raise DiskFullError(
            f"{shown(path.name)} unpacks to {member.size / 1e6:.0f} MB, but only {free / 1e6:.0f} MB are free. "
            "Free some space and try again."
        )
    with opened(path) as packed, open(target, "wb") as file:
        for piece in ziplist.unpack(packed.fileno(), member.inside(path)):
            file.write(piece)
    try:
        return np.load(target, mmap_mode="r", allow_pickle=False)
    except HEADER_DAMAGE as error:
        unsafe = "Python objects" in str(error) or "allow_pickle" in str(error)
        reason = "it holds Python objects, which are never loaded" if unsafe else str(error)
        raise _bad(path.name, f"{shown(member.name)} is not a plain array ({shown(reason)})", "NPZ_CORRUPT") from error


@SOURCES.register("npz", title="NumPy .npz file", suffixes=(".npz",), form=ARCHIVE_FORM)
def open_arrays(location: str, *, guard: PathGuard, scratch: Path) -> ArraySource:
    path = guarded_file(location, guard, ".npz file")
    return ArraySource(path.name, scratch / "images.npy", unpack_columns(path, scratch))
