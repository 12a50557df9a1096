"""What a page asks of a pool: its numbers, and which images fit a filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semiprune_core.checks import check_choice
from semiprune_core.project.pool import Pool
from semiprune_core.records import IntArray

ONLY = (None, "duplicates", "converted", "corrupted")


@dataclass(frozen=True)
class PoolSummary:
    """Counts over a pool; class counts are of the pool split, in class order."""

    n_pool: int
    n_test: int
    n_classes: int
    n_duplicates: int
    """Copies within the pool and within the tests."""
    n_shared: int
    """Images of the pool that are test images too."""
    n_problems: int
    file_bytes: int
    class_counts: dict[str, int]
    formats: list[tuple[str, str, int]]
    converted: list[tuple[str, int]]
    sizes: list[tuple[int, int, int]]
    """(width, height, images), most frequent first."""


@dataclass(frozen=True)
class PoolFilter:
    label: str | None = None
    split: str | None = None
    only: str | None = None
    path_contains: str | None = None


def pool_summary(pool: Pool) -> PoolSummary:
    in_pool = pool.split("pool")
    labels = in_pool.reference_labels
    counts = np.bincount(labels[labels >= 0], minlength=len(pool.class_names)) if pool.class_names else np.empty(0, int)
    return PoolSummary(
        n_pool=len(in_pool),
        n_test=len(pool.split("test")),
        n_classes=len(pool.class_names),
        n_duplicates=sum(_n_copies(pool.split(name)) for name in ("pool", "test")),
        n_shared=_n_shared(pool),
        n_problems=sum(int(segment.artifact.facts["n_problems"]) for segment in pool.segments),
        file_bytes=int(pc.sum(pool.column("file_bytes")).as_py() or 0),
        class_counts=dict(zip(pool.class_names, counts.tolist(), strict=True)),
        formats=_counted(pool, ["format", "mode"]),
        converted=[row for row in _counted(pool, ["converted"]) if row[0] is not None],
        sizes=_counted(pool, ["width", "height"])[:2000],
    )


def _n_copies(part: Pool) -> int:
    return int((part.duplicate_of != np.arange(len(part))).sum())


def _n_shared(pool: Pool) -> int:
    is_test = _equals(pool.column("split"), "test")
    return int(np.isin(pool.duplicate_of[~is_test], pool.duplicate_of[is_test]).sum())


def _counted(pool: Pool, columns: list[str]) -> list[Any]:
    """Distinct values of some columns with their counts, most frequent first."""
    plain = pa.table({name: _plain(pool.column(name)) for name in columns})
    grouped = plain.group_by(columns).aggregate([([], "count_all")])
    rows = zip(*(grouped[name].to_pylist() for name in columns), grouped["count_all"].to_pylist(), strict=True)
    return sorted(rows, key=lambda row: (-row[-1], str(row[:-1])))


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def filter_positions(pool: Pool, wanted: PoolFilter) -> IntArray:
    """Positions of the images that fit, in pool order."""
    check_choice("only", wanted.only, ONLY)
    mask = np.ones(len(pool), dtype=bool)
    if wanted.label is not None:
        mask &= pool.reference_labels == (
            pool.class_names.index(wanted.label) if wanted.label in pool.class_names else len(pool.class_names)
        )
    if wanted.split is not None:
        mask &= _equals(pool.column("split"), wanted.split)
    if wanted.only == "duplicates":
        first = pool.duplicate_of
        mask &= np.bincount(first, minlength=len(pool))[first] > 1
    elif wanted.only is not None:
        column = "converted" if wanted.only == "converted" else "corruption"
        mask &= pc.is_valid(pool.column(column)).to_numpy(zero_copy_only=False)
    if wanted.path_contains is not None:
        mask &= pc.match_substring(pool.column("path"), wanted.path_contains, ignore_case=True).to_numpy(False)
    return np.flatnonzero(mask)


def _equals(column: pa.Array, value: str) -> np.ndarray:
    return pc.fill_null(pc.equal(_plain(column), value), False).to_numpy(zero_copy_only=False)
