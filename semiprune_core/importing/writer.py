"""Writing a segment while its images arrive: append-only files, memory that does not grow with the images."""

from __future__ import annotations

import shutil
from array import array
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from semiprune_core.errors import InvalidDataError
from semiprune_core.importing.workers import Chunk, Row
from semiprune_core.project.pool import PROBLEM_SCHEMA, SCHEMA, PoolSettings, image_id
from semiprune_core.records import Problem

ROWS_PER_GROUP = 20_000
NPY_HEADER = 128
FIRST_PROBLEMS = 3


class BlobWriter:
    """Byte strings end to end in one file, their offsets in another."""

    def __init__(self, folder: Path, name: str) -> None:
        self.file = open(folder / f"{name}.bin", "wb")  # noqa: SIM115 - closed in close()
        self._index = folder / f"{name}.npy"
        self._offsets = array("q", [0])

    def append(self, data: bytes) -> None:
        self.file.write(data)
        self.skip(len(data))

    def skip(self, size: int) -> None:
        """Note ``size`` bytes that were copied into :attr:`file` directly."""
        self._offsets.append(self._offsets[-1] + size)

    def close(self) -> None:
        self.file.close()
        np.save(self._index, np.frombuffer(self._offsets, dtype=np.int64), allow_pickle=False)


class ArrayWriter:
    """A ``.npy`` file whose first dimension is known only at the end."""

    def __init__(self, path: Path, item_shape: tuple[int, ...]) -> None:
        self._file = open(path, "wb")  # noqa: SIM115 - closed in close()
        self._item_shape = item_shape
        self._count = 0
        self._file.write(self._header())

    def append(self, items: np.ndarray) -> None:
        self._file.write(np.ascontiguousarray(items, dtype=np.uint8).data)
        self._count += len(items)

    def close(self) -> None:
        self._file.seek(0)
        self._file.write(self._header())
        self._file.close()

    def _header(self) -> bytes:
        """The header of npy format 1.0, padded to a fixed length so that it can be rewritten in place."""
        text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {(self._count, *self._item_shape)}, }}"
        length = NPY_HEADER - 10
        return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + text.ljust(length - 1).encode("ascii") + b"\n"


class SegmentWriter:
    """Takes chunks, writes the files of a ``pool`` artifact, counts what it saw."""

    def __init__(self, folder: Path, settings: PoolSettings, *, packed: bool, known_ids: np.ndarray) -> None:
        self._known = np.sort(known_ids)
        self._stack = ExitStack()
        self._images = ArrayWriter(folder / "images.npy", (settings.size, settings.size, settings.channels))
        self._thumbs = BlobWriter(folder, "thumbs")
        self._originals = BlobWriter(folder, "originals") if packed else None
        self._table = pq.ParquetWriter(folder / "table.parquet", SCHEMA, compression="zstd")
        self._problems = pq.ParquetWriter(folder / "problems.parquet", PROBLEM_SCHEMA, compression="zstd")
        for part in (self._images, self._thumbs, self._originals, self._table, self._problems):
            if part is not None:
                self._stack.callback(part.close)
        self._rows: list[tuple[int, Row]] = []
        self._ids = array("Q")
        self._contents = bytearray()
        self.n_problems = self.n_known = 0
        self.first_problems: list[Problem] = []
        self.labels: Counter[str] = Counter()
        self.splits: Counter[str] = Counter()
        self.converted: Counter[str] = Counter()

    @property
    def n_images(self) -> int:
        return len(self._ids)

    def add(self, chunk: Chunk) -> None:
        ids = [image_id(row.content_hash, row.path) for row in chunk.rows]
        fresh = ~_contains(self._known, np.array(ids, dtype=np.uint64))
        self.n_known += int((~fresh).sum())
        assert chunk.images is not None
        self._images.append(chunk.images if fresh.all() else chunk.images[fresh])
        for number, (row, thumb) in enumerate(zip(chunk.rows, chunk.thumbs, strict=True)):
            if fresh[number]:
                self._thumbs.append(thumb)
                self._note(ids[number], row)
        if chunk.spool is not None:
            self._take_originals(chunk, fresh)
        self.add_problems(chunk.problems)
        if len(self._rows) >= ROWS_PER_GROUP:
            self._flush()

    def add_problems(self, problems: list[Problem]) -> None:
        self.n_problems += len(problems)
        self.first_problems += problems[: FIRST_PROBLEMS - len(self.first_problems)]
        if problems:
            columns = {name: [getattr(problem, name) for problem in problems] for name in PROBLEM_SCHEMA.names}
            self._problems.write_table(pa.table(columns, schema=PROBLEM_SCHEMA))

    def _note(self, number: int, row: Row) -> None:
        self._rows.append((number, row))
        self._ids.append(number)
        self._contents += row.content_hash
        self.splits[row.split] += 1
        if row.label is not None:
            self.labels[row.label] += 1
        if row.converted is not None:
            self.converted[row.converted] += 1

    def _take_originals(self, chunk: Chunk, fresh: np.ndarray) -> None:
        path = Path(str(chunk.spool))
        if self._originals is not None:
            with open(path, "rb") as spool:
                if fresh.all():
                    shutil.copyfileobj(spool, self._originals.file, 1 << 20)
                else:
                    for size, wanted in zip(chunk.original_sizes, fresh, strict=True):
                        data = spool.read(size)
                        if wanted:
                            self._originals.file.write(data)
            for size, wanted in zip(chunk.original_sizes, fresh, strict=True):
                if wanted:
                    self._originals.skip(size)
        path.unlink()

    def _flush(self) -> None:
        if self._rows:
            columns: dict[str, Any] = {"image_id": [number for number, _ in self._rows]}
            for name in SCHEMA.names[1:]:
                columns[name] = [getattr(row, name) for _, row in self._rows]
            self._table.write_table(pa.table(columns, schema=SCHEMA))
            self._rows.clear()

    def finish(self) -> dict[str, Any]:
        """Write what is left, close the files and return the counts."""
        self._flush()
        ids = np.frombuffer(self._ids, dtype=np.uint64)
        if len(np.unique(ids)) != len(ids):
            raise InvalidDataError("The source lists the same file twice under one name. Remove the second entry.")
        contents = np.frombuffer(bytes(self._contents), dtype="V16")
        self.close()
        return {
            "n_images": len(ids),
            "n_problems": self.n_problems,
            "n_already_there": self.n_known,
            "n_duplicates": len(ids) - len(np.unique(contents)),
            "splits": dict(self.splits),
            "labels": dict(self.labels),
            "converted": dict(self.converted),
        }

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _contains(ordered: np.ndarray, values: np.ndarray) -> np.ndarray:
    if not len(ordered):
        return np.zeros(len(values), dtype=bool)
    place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return ordered[place] == values
