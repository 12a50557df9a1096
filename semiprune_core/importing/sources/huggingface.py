"""A Hugging Face dataset in a local folder: image folders, with metadata files or without, and Parquet shards.

    train/metadata.jsonl (.csv, .parquet)   rows with file_name and label, images beside
    train/<class>/x.png                     class folders
    data/train-00000-of-00001.parquet       the images themselves in a column of {bytes, path}

Nothing is fetched: ``hf:ORG/NAME`` is found where it was downloaded to, or it is said how to.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from semiprune_core.errors import SourceError
from semiprune_core.importing import limited
from semiprune_core.importing.sources.base import SOURCES, Form, Origin, Source
from semiprune_core.importing.sources.folder import guarded_folder, open_folder
from semiprune_core.importing.sources.given import GivenSource
from semiprune_core.importing.sources.layout import IMAGE_SUFFIXES, split_of, suffix_of
from semiprune_core.importing.sources.manifest import LABEL_NAMES, open_table
from semiprune_core.importing.sources.opening import opened
from semiprune_core.paths import PathGuard, shown

METADATA = ("metadata.jsonl", "metadata.csv", "metadata.parquet")
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
BATCH = 64


class Packed(GivenSource):
    """Images that were taken out of shards: the import keeps them."""

    origin: Origin = "packed"


def read_metadata(path: str, folder: str) -> Iterator[list[str]]:
    """Rows of (path, label, split, remark) of a metadata.jsonl. Only for a limited process."""
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise SourceError(
                    f"Line {number} of {shown(Path(path).name)} is not JSON.", code="JSON_DAMAGED"
                ) from error
            row = row if isinstance(row, dict) else {}
            label = next((row[name] for name in LABEL_NAMES if name in row), None)
            name = row.get("file_name")
            yield [_beside(folder, name) if isinstance(name, str) else "", _text(label), folder, ""]


def read_shard(path: str, split: str, scratch: str, number: str) -> Iterator[list[str]]:
    """The same for a Parquet shard, whose images are written below ``scratch``. Only for a limited process."""
    with opened(path) as shard, pq.ParquetFile(shard) as file:
        image = next((f.name for f in file.schema_arrow if _is_image(f.type)), None)
        if image is None:
            raise SourceError(f"{shown(Path(path).name)} has no column of images.", code="NO_IMAGES")
        label = next((name for name in LABEL_NAMES if name in file.schema_arrow.names), None)
        names = _class_names(file.schema_arrow, label)
        position = itertools.count()
        for batch in file.iter_batches(BATCH, columns=[image, *([label] if label else [])]):
            for row in batch.to_pylist():
                data, given = (row[image] or {}).get("bytes"), (row[image] or {}).get("path") or ""
                ending = suffix_of(given) if suffix_of(given) in IMAGE_SUFFIXES else "png"
                place = f"{split or 'data'}/{number}-{next(position):07d}.{ending}"
                target = Path(scratch) / place
                if data and not (target.is_file() and target.stat().st_size == len(data)):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(data)
                value = row.get(label) if label else None
                if isinstance(value, int) and 0 <= value < len(names):
                    value = names[value]
                yield [place, _text(value), split, ""]


def _is_image(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind)) and {"bytes", "path"} <= {field.name for field in kind}


def _class_names(schema: pa.Schema, label: str | None) -> list[str]:
    """What the numbers in the column of labels mean, as ``datasets`` writes it into the file."""
    try:
        told = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        names = told["info"]["features"][label]["names"]
    except (ValueError, KeyError, TypeError):
        return []
    return [str(name) for name in names] if isinstance(names, list) else []


def _text(label: Any) -> str:
    return "" if label is None else str(label)


def _beside(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _of_table(path: Path, folder: str) -> Iterator[list[str]]:
    table = open_table(path)
    columns = [name.strip().lower() for name in table.columns]
    if "file_name" not in columns:
        raise SourceError(f"{shown(path.name)} has no column file_name.", code="CSV_NO_PATH_COLUMN")
    label = next((columns.index(name) for name in LABEL_NAMES if name in columns), None)
    for _, cells in table.rows():
        cells = cells + [""] * (len(columns) - len(cells))
        name = cells[columns.index("file_name")]
        yield [_beside(folder, name) if name else "", "" if label is None else cells[label], folder, ""]


def _metadata_rows(root: Path, files: list[tuple[str, Path]]) -> Iterator[list[str]]:
    for folder, path in files:
        if path.suffix == ".jsonl":
            yield from limited.stream(read_metadata, os.fspath(path), folder, name=path.name)
        else:
            yield from _of_table(path, folder)


def _shard_rows(files: list[Path], scratch: Path) -> Iterator[list[str]]:
    for number, path in enumerate(files):
        word = re.split(r"[-.]", path.name)[0]
        split = word if split_of(word) is not None else ""
        yield from limited.stream(read_shard, os.fspath(path), split, os.fspath(scratch), str(number), name=path.name)


@SOURCES.register(
    "hf",
    title="Hugging Face dataset folder",
    form=Form(
        title="Hugging Face folder",
        explain="A dataset in a folder on this server: image folders with metadata, or Parquet files.",
        label="Folder",
        example="~/pictures/my-dataset",
        is_a="folder",
        icon="dataset",
    ),
)
def open_hf(location: str, *, guard: PathGuard, scratch: Path) -> Source:
    """Open a local dataset folder; metadata and shards of ``train`` are the pool, of ``test`` the test images."""
    if HUB_NAME.fullmatch(location) and not Path(location).exists():
        raise SourceError(
            f"{shown(location)} is not on this machine, and nothing is fetched. Download it first: hf download "
            f"{location} --repo-type dataset --local-dir FOLDER, then import hf:FOLDER.",
            code="NOT_DOWNLOADED",
        )
    root = guarded_folder(location, guard)
    folders = ["", *sorted(path.name for path in root.iterdir() if path.is_dir() and split_of(path.name) is not None)]
    metadata = [(name, root / name / file) for name in folders for file in METADATA if (root / name / file).is_file()]
    if metadata:
        return GivenSource(metadata[0][1], root, functools.partial(_metadata_rows, root, metadata))
    shards = sorted(path for place in (root, root / "data") if place.is_dir() for path in place.glob("*.parquet"))
    if shards:
        taken = scratch / "shards"
        taken.mkdir(exist_ok=True)
        return Packed(shards[0], taken, functools.partial(_shard_rows, shards, taken))
    return open_folder(location, guard=guard, scratch=scratch)
