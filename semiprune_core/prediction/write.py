"""What is said of new images, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from semiprune_core import files
from semiprune_core.errors import InvalidSettingError
from semiprune_core.exporting import safe_texts
from semiprune_core.records import FloatArray, IntArray, Problem

SUFFIXES = (".csv", ".parquet")


@dataclass(frozen=True, eq=False)
class PredictedImages:
    """n new images: ``paths``, ``labels`` (n,) into ``class_names``, ``confidence`` (n,) in [0, 1].

    ``distance`` (n,) in 0..100 is how far each is from the pool: the share of the pool's own images that have a nearer
    neighbour in it, in percent. Those that could not be read are ``problems``.
    """

    paths: Sequence[str]
    labels: IntArray
    confidence: FloatArray
    distance: FloatArray
    class_names: tuple[str, ...]
    problems: tuple[Problem, ...] = ()


def check_out(path: Path) -> None:
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidSettingError(f"--out must end in .csv or .parquet, got {path.name}.")


def write_predictions(found: PredictedImages, path: Path, *, exact: bool = False) -> None:
    """``path, label, confidence, distance`` as CSV or Parquet; in CSV texts are spreadsheet-safe unless ``exact``."""
    check_out(path)
    names = np.array(found.class_names, dtype=object)[found.labels]
    texts = {"path": pa.array([*found.paths], pa.string()), "label": pa.array(names.tolist(), pa.string())}
    is_csv = path.suffix.lower() == ".csv"
    if is_csv and not exact:
        texts = {name: safe_texts(column) for name, column in texts.items()}
    numbers = {"confidence": np.round(found.confidence, 4), "distance": np.round(found.distance, 1)}
    table = pa.table({**texts, **{name: pa.array(values.astype(np.float64)) for name, values in numbers.items()}})
    with files.named_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with files.open_atomic(path) as file:
            if is_csv:
                file.write((",".join(table.column_names) + "\n").encode("ascii"))
                pyarrow.csv.write_csv(table, file, pyarrow.csv.WriteOptions(include_header=False))
            else:
                pq.write_table(table, file)
