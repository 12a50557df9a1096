"""A CSV or Parquet table with a path column, and labels and splits if there are any.

Paths are relative to the table's own folder, or to the option ``root``; all files must lie below it. A row that cannot
be used is listed with its number and the others go on; of rows that name the same file the first one counts.
Read as streams. Encodings: UTF-8 and UTF-16 with or without a mark, else Windows-1252. Separators: , ; tab |
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import itertools
import mmap
import os
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from semiprune_core.errors import SourceError, UnsafePathError
from semiprune_core.importing import limited
from semiprune_core.importing.sources.archive import guarded_file, name_hash, repeated
from semiprune_core.importing.sources.base import POOL_SPLIT, SOURCES, Entry, FileAt, Form, Origin
from semiprune_core.importing.sources.folder import guarded_folder
from semiprune_core.importing.sources.layout import IMAGE_SUFFIXES, has_hidden_part, split_of, suffix_of
from semiprune_core.importing.sources.opening import opened, opened_text
from semiprune_core.paths import PLAIN, PathGuard, is_inside, leads_inside, normal_relative, shown
from semiprune_core.records import Problem

GUESS = "(guess)"
PATH_NAMES = ("path", "file_path", "filepath", "file_name", "filename", "image_path", "image", "file", "img")
LABEL_NAMES = ("label", "class", "class_name", "category", "target", "y")
SPLIT_NAMES = ("split", "subset", "partition", "set")
MAX_LINE = 1 << 20
MAX_CELL = csv.field_size_limit()
BATCH = 256
PREVIEWED = 20
MOST_LISTED = 100_000
"""Rows that are listed with their problem; more of them are counted."""
SUFFIXES = (".csv", ".tsv", ".parquet")
Row = tuple[int, list[str]]


@dataclass(frozen=True)
class Table:
    """An opened manifest: its columns, its first rows, and how to read them all (no encoding: Parquet)."""

    path: Path
    columns: tuple[str, ...]
    encoding: str | None = None
    separator: str | None = None
    first: tuple[Row, ...] = ()

    def rows(self) -> Iterator[Row]:
        """(line or row number, cells), without the header and without empty lines."""
        return self._parquet_rows() if self.encoding is None else self._csv_rows()

    def _parquet_rows(self) -> Iterator[Row]:
        rows = limited.stream(read_parquet, os.fspath(self.path), name=self.path.name)
        next(rows, None)
        yield from enumerate(rows, start=1)

    def _csv_rows(self) -> Iterator[Row]:
        assert self.encoding is not None and self.separator is not None
        with opened_text(self.path, self.encoding) as file:
            numbered = _csv_cells(self.path, file, self.separator)
            next(numbered, None)
            yield from ((number, cells) for number, cells in numbered if any(cells))


def open_table(path: Path) -> Table:
    """Find out how a manifest is written and read its header; a file that is no table of images is not shown."""
    if path.suffix.lower() not in SUFFIXES:
        raise SourceError(
            f"{shown(path.name)} is not a table by its name. Save it as one of {', '.join(SUFFIXES)}.",
            code="NOT_A_TABLE",
        )
    table = _open_table(path)
    if not _names_images(table):
        raise SourceError(
            f"{shown(path.name)} names no images: none of its columns holds paths such as cats/a.png.",
            code="CSV_NO_PATH_COLUMN",
        )
    return table


def _names_images(table: Table) -> bool:
    """Whether in one column at least half of the first cells are paths of images. A table without rows may pass."""
    columns = itertools.zip_longest(*(cells for _, cells in table.first), fillvalue="")
    return not table.first or any(_are_images([cell.strip() for cell in cells if cell]) for cells in columns)


def _are_images(cells: list[str]) -> bool:
    return bool(cells) and 2 * sum(suffix_of(cell) in IMAGE_SUFFIXES for cell in cells) >= len(cells)


def _open_table(path: Path) -> Table:
    with opened(path) as file:
        start = file.read(4)
    if start == b"PAR1":
        with contextlib.closing(limited.stream(read_parquet, os.fspath(path), name=path.name)) as rows:
            columns = tuple(next(rows))
            return Table(path, columns, first=tuple(enumerate(itertools.islice(rows, PREVIEWED), start=1)))
    encoding = _encoding(path)
    with opened_text(path, encoding) as file:
        separator = _separator(_header_line(path, file))
        file.seek(0)
        _, header = next(_csv_cells(path, file, separator), (0, []))
    if not any(header):
        raise SourceError(f"{shown(path.name)} is empty. It needs a header and one row per image.", code="CSV_EMPTY")
    table = Table(path, tuple(name.strip() for name in header), encoding, separator)
    return replace(table, first=tuple(itertools.islice(table.rows(), PREVIEWED)))


def _encoding(path: Path) -> str:
    """The encoding of a text file, by its mark or by trying; a line that fits none is named."""
    with opened(path) as file:
        start = file.read(4096)
        for mark, name in (
            (codecs.BOM_UTF8, "utf-8-sig"),
            (codecs.BOM_UTF16_LE, "utf-16"),
            (codecs.BOM_UTF16_BE, "utf-16"),
        ):
            if start.startswith(mark):
                return name
        odd, even = start[1::2].count(0), start[0::2].count(0)
        if max(odd, even) > len(start) // 4 and min(odd, even) == 0:  # every second byte of UTF-16 Latin is zero
            return "utf-16-le" if odd else "utf-16-be"
        file.seek(0)
        bad_line = multibyte = 0
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE), b""), start=1):
            if b"\0" in line:
                raise _encoding_error(path, number, "holds a NUL byte")
            try:
                multibyte += not line.isascii() and bool(line.decode("utf-8"))
            except UnicodeDecodeError:
                bad_line = bad_line or number
    if not bad_line:
        return "utf-8"
    if multibyte:
        raise _encoding_error(path, bad_line, "is not UTF-8, while others are")
    return "cp1252"


def _encoding_error(path: Path, line: int, what: str) -> SourceError:
    return SourceError(f"Line {line} of {shown(path.name)} {what}. Save the table as UTF-8.", code="CSV_ENCODING")


def _header_line(path: Path, file: TextIO) -> str:
    with _named_text(path, file.encoding):
        return file.readline(MAX_LINE)


def _separator(header: str) -> str:
    """The separator that stands most often in the header, outside quotes."""
    plain = "".join(header.split('"')[::2])
    best = max(",;\t|", key=plain.count)
    return best if plain.count(best) else ","


@contextlib.contextmanager
def _named_text(path: Path, encoding: str) -> Iterator[None]:
    try:
        yield
    except UnicodeError as error:
        raise _encoding_error(path, _first_bad_line(path, encoding), f"is not valid {encoding.upper()}") from error


def _first_bad_line(path: Path, encoding: str) -> int:
    """The decoder reads ahead, so the line is found by reading once more with bad letters marked."""
    number = 1
    with opened_text(path, encoding, "replace") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE), ""), start=1):
            if "\ufffd" in line:
                return number
    return number


def _lines(path: Path, file: TextIO) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        with _named_text(path, file.encoding):
            line = file.readline(MAX_LINE)
        if not line:
            return
        if len(line) == MAX_LINE and not line.endswith("\n"):
            raise _cell_too_large(path, number)
        yield line


def _cell_too_large(path: Path, number: int, unit: str = "Line") -> SourceError:
    remedy = "Look for a quotation mark that is never closed." if unit == "Line" else "Leave that column out."
    return SourceError(
        f"{unit} {number} of {shown(path.name)} holds a cell of more than {MAX_CELL:,} characters. {remedy}",
        code="CSV_CELL_TOO_LARGE",
    )


def _csv_cells(path: Path, file: TextIO, separator: str) -> Iterator[Row]:
    reader = csv.reader(_lines(path, file), delimiter=separator)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "field larger" in str(error):
                raise _cell_too_large(path, reader.line_num) from error
            raise SourceError(
                f"Line {reader.line_num} of {shown(path.name)} is not CSV ({error}).", code="CSV_CORRUPT"
            ) from error
        yield reader.line_num, cells


@contextlib.contextmanager
def _named_parquet(path: Path) -> Iterator[None]:
    try:
        yield
    except (MemoryError, SourceError):  # one of Arrow's own errors is both
        raise
    except (pa.ArrowException, OSError, ValueError, ArithmeticError, LookupError) as error:
        reason = str(error).splitlines()[0] if str(error) else "no reason given"
        raise SourceError(
            f"{shown(path.name)} is not a readable Parquet file ({shown(reason)}). Write it again.",
            code="PARQUET_CORRUPT",
        ) from error


def _mapped(path: str) -> mmap.mmap:
    with opened(path) as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def read_parquet(path: str) -> Iterator[list[str]]:
    """The names of the columns, then the cells of each row. Only for a limited process."""
    number = 0
    with _named_parquet(Path(path)), pq.ParquetFile(pa.BufferReader(_mapped(path))) as file:
        yield list(file.schema_arrow.names)
        for batch in file.iter_batches(BATCH, use_threads=False):
            for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                number += 1
                words = ["" if cell is None else str(cell) for cell in cells]
                if any(len(word) > MAX_CELL for word in words):
                    raise _cell_too_large(Path(path), number, "Row")
                yield words


@dataclass(frozen=True)
class Preview:
    """The first rows of a table and what its columns seem to be, for a person to confirm."""

    columns: tuple[str, ...]
    rows: list[dict[str, str]]
    path_column: str | None
    label_column: str | None
    split_column: str | None


def preview(path: str | Path, guard: PathGuard | None = None) -> Preview:
    """The first rows; ``guard`` checks the path unless the caller has done so."""
    real = guarded_file(str(path), guard, "table") if guard else Path(path)
    if not real.is_file():
        raise SourceError(f"{shown(str(path))} does not exist. Check the name of the table.", code="FILE_MISSING")
    table = open_table(real)
    rows = [{name: cell[:200] for name, cell in zip(table.columns, cells, strict=False)} for _, cells in table.first]
    guessed = (_guess(table.columns, names) for names in (PATH_NAMES, LABEL_NAMES, SPLIT_NAMES))
    return Preview(table.columns, rows, *guessed)


def _guess(columns: tuple[str, ...], names: tuple[str, ...]) -> str | None:
    by_word = {column.lower(): column for column in reversed(columns)}
    return next((by_word[name] for name in names if name in by_word), None)


def _choose(table: Table, chosen: str | None, names: tuple[str, ...], what: str) -> int | None:
    """The number of a column, by a person's choice or by its name; None where there is none."""
    name = _guess(table.columns, names) if chosen == GUESS else chosen
    if name is None:
        return None
    if table.columns.count(name) != 1:
        count = "no column" if name not in table.columns else "more than one column"
        raise SourceError(
            f"{shown(table.path.name)} has {count} '{shown(name)}' for the {what}. {_columns(table)}",
            code="CSV_NO_PATH_COLUMN" if what == "path" else "CSV_NO_COLUMN",
        )
    return table.columns.index(name)


def _columns(table: Table) -> str:
    names = ", ".join(shown(name, 40) for name in table.columns[:20])
    return f"Its columns are: {names}{', ...' if len(table.columns) > 20 else ''}. Choose one of them."


class ManifestSource:
    """The rows of a table as entries below ``root``."""

    origin: Origin = "file"
    class_names: tuple[str, ...] | None = None

    def __init__(self, table: Table, root: Path, path_at: int, label_at: int | None, split_at: int | None) -> None:
        self.problems: list[Problem] = []
        self._n_unlisted = 0
        self._table, self._root = table, root
        self._path_at, self._label_at, self._split_at = path_at, label_at, split_at
        self._twice: frozenset[int] | None = None
        if not table.first:
            raise SourceError(f"{shown(table.path.name)} has a header, but no rows.", code="CSV_EMPTY")

    def count(self) -> int:
        """The rows that name a possible file; whether it is there shows when entries are listed."""
        hashes = array("Q")
        self._forget_problems()
        for number, cells in self._table.rows():
            if (on_disk := self._relative(number, cells)) is not None:
                hashes.append(name_hash(normal_relative(on_disk)))
        self._twice = repeated(hashes)
        return len(np.unique(np.frombuffer(hashes, dtype=np.uint64)))

    def entries(self) -> Iterator[Entry]:
        if self._twice is None:
            self.count()
        self._forget_problems()
        seen: dict[int, int] = {}
        for number, cells in self._table.rows():
            on_disk = self._relative(number, cells)
            if on_disk is None:
                continue
            path = normal_relative(on_disk)
            if self._is_repeated(number, path, seen) or not self._is_there(number, on_disk):
                continue
            split = self._split(number, _cell(cells, self._split_at))
            if split is not None:
                label = _cell(cells, self._label_at) or None
                yield Entry(path, FileAt(str(self._root), os.path.join(self._root, on_disk)), label, split)
        if self._n_unlisted:
            name = shown(self._table.path.name)
            words = f"{self._n_unlisted:,} more rows of {name} cannot be used. They are not listed."
            self.problems.append(Problem(name, "MORE_PROBLEMS", words))

    def _relative(self, number: int, cells: list[str]) -> str | None:
        """The file's path below the root as the row spells it, judged by its letters alone."""
        given = _cell(cells, self._path_at)
        if not given:
            self._note(number, given, "ROW_WITHOUT_PATH", "does not name a file.")
            return None
        try:
            PathGuard.check_text(given)
            if given.isascii() and PLAIN.fullmatch(given):
                return given
            text = os.path.normpath(os.path.join(self._root, given.replace("\\", "/")))
            if not is_inside(Path(text), self._root):
                raise UnsafePathError("outside")
            on_disk = os.path.relpath(text, self._root)
            normal_relative(on_disk).encode()
        except UnsafePathError as error:
            what = f"names {shown(given)}, which lies outside {self._root}. Choose another root, or move the file."
            if error.code == "URL_NOT_SUPPORTED":
                what = f"names the address {shown(given)}. Nothing is fetched: copy the file here."
            self._note(number, given, error.code, what)
            return None
        except UnicodeEncodeError:
            self._note(number, given, "NAME_NOT_UTF8", "names a file whose name is not Unicode.")
            return None
        return on_disk

    def _is_repeated(self, number: int, path: str, seen: dict[int, int]) -> bool:
        key = name_hash(path)
        assert self._twice is not None
        if key not in self._twice:
            return False
        if key not in seen:
            seen[key] = number
            return False
        self._note(number, path, "DUPLICATE_ROW", f"names {shown(path)} again; row {seen[key]} is used.")
        return True

    def _is_there(self, number: int, path: str) -> bool:
        if has_hidden_part(path):
            self._note(number, path, "PATH_HIDDEN", f"names {shown(path)}, a hidden file or in a hidden folder.")
            return False
        place = os.path.join(self._root, path)
        if not leads_inside(place, self._root):
            self._note(number, path, "PATH_OUTSIDE_ROOT", f"names {shown(path)}, a link out of its folder.")
            return False
        if not os.path.isfile(place):
            self._note(
                number, path, "FILE_MISSING", f"names {shown(path)}, which is not in {self._root}. Check its name."
            )
            return False
        return True

    def _split(self, number: int, word: str) -> str | None:
        if self._split_at is None:
            return POOL_SPLIT
        split = split_of(word)
        if split is None:
            self._note(number, word, "SPLIT_UNKNOWN", f"has the split {shown(word)}; use pool or test.")
        return split

    def _forget_problems(self) -> None:
        self.problems.clear()
        self._n_unlisted = 0

    def _note(self, number: int, given: str, code: str, what: str) -> None:
        """List a row's problem."""
        if len(self.problems) >= MOST_LISTED:
            self._n_unlisted += 1
            return
        shown_path = shown(given) or f"row {number}"
        self.problems.append(Problem(shown_path, code, f"Row {number} of {shown(self._table.path.name)} {what}"))


def _cell(cells: list[str], at: int | None) -> str:
    return cells[at].strip() if at is not None and at < len(cells) else ""


@SOURCES.register(
    "manifest",
    title="CSV or Parquet table",
    suffixes=SUFFIXES,
    form=Form(
        title="CSV or Parquet",
        explain="A table with a path column, and labels and splits if you have them.",
        label="Table",
        example="~/pictures/images.csv",
        is_a="file",
        icon="table",
    ),
)
def open_manifest(
    location: str,
    *,
    guard: PathGuard,
    scratch: Path,
    root: str | None = None,
    path_column: str | None = GUESS,
    label_column: str | None = GUESS,
    split_column: str | None = GUESS,
) -> ManifestSource:
    """Open a table. A column is found by its name unless one is chosen; None for label or split means there is none."""
    path = guarded_file(location, guard, "table")
    table = open_table(path)
    path_at = _choose(table, path_column or GUESS, PATH_NAMES, "path")
    if path_at is None:
        raise SourceError(
            f"{shown(path.name)} has no column named path, file_name or image. {_columns(table)}",
            code="CSV_NO_PATH_COLUMN",
        )
    label_at = _choose(table, label_column, LABEL_NAMES, "label")
    split_at = _choose(table, split_column, SPLIT_NAMES, "split")
    return ManifestSource(table, guarded_folder(root, guard) if root else path.parent, path_at, label_at, split_at)
