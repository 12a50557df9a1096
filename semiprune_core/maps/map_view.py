"""What can be said about every image at once: the columns that colour, filter and sort maps and galleries.

A column is a class (codes into names) or a number (finite, or NaN where unknown). The browser gets each one as N
16-bit codes, 2 bytes per image, so that a pool of a million images stays a small download.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from semiprune_core.errors import UnknownNameError
from semiprune_core.labeling import open_store
from semiprune_core.labeling.classes import NEUTRAL, PALETTE
from semiprune_core.paths import shown
from semiprune_core.project import artifacts
from semiprune_core.project.cache import LRUCache
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import UNLABELED, FloatArray, IntArray
from semiprune_core.results import PseudoRun
from semiprune_core.scores import SCORES
from semiprune_core.trust.quality_report import match_classes, pool_of_run, rightness

NONE = 65_535
"""The code of "unknown"."""
STEPS = 65_534
MOST_COLOURS = len(PALETTE)
"""Beyond this many classes colour says nothing any more; it then marks the chosen class and the selection."""
RIGHT, WRONG = "#56b4e9", "#d55e00"


@dataclass(frozen=True, eq=False)
class Column:
    """One fact about N images. Classes: ``codes`` (N,) into ``names``, -1 for none. Numbers: ``values`` (N,)."""

    key: str
    title: str
    codes: IntArray | None = None
    names: tuple[str, ...] = ()
    colours: tuple[str, ...] = ()
    values: FloatArray | None = None

    @property
    def is_class(self) -> bool:
        return self.codes is not None

    def __len__(self) -> int:
        return len(self.codes if self.codes is not None else self.values)  # type: ignore[arg-type]

    @functools.cached_property
    def span(self) -> tuple[float, float]:
        """Least and greatest number."""
        finite = self.values[np.isfinite(self.values)] if self.values is not None else np.empty(0)
        return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)

    def packed(self) -> bytes:
        """N little-endian 16-bit codes: the class, or the number in STEPS steps over its span; NONE for unknown."""
        if self.codes is not None:
            return np.where(self.codes < 0, NONE, self.codes).astype("<u2").tobytes()
        low, high = self.span
        assert self.values is not None
        with np.errstate(invalid="ignore"):
            scaled = (self.values - low) / (high - low or 1.0) * STEPS
            return np.where(np.isfinite(scaled), scaled, NONE).round().astype("<u2").tobytes()

    def legend(self) -> dict[str, Any]:
        """What the browser must know beside the codes."""
        low, high = self.span if self.values is not None else (0.0, 0.0)
        kind = "class" if self.is_class else "number"
        return {
            "key": self.key,
            "title": self.title,
            "kind": kind,
            "names": list(self.names),
            "colours": list(self.colours),
            "low": low,
            "high": high,
        }

    def told(self, position: int) -> str | None:
        """The fact about one image, in words; None for unknown."""
        if self.codes is not None:
            code = int(self.codes[position])
            return None if code < 0 else self.names[code]
        assert self.values is not None
        value = float(self.values[position])
        return None if not np.isfinite(value) else f"{value:.3g}"


@dataclass(frozen=True, eq=False)
class Columns:
    """Every column of a project's pool, by key, and the version of what they were read from."""

    pool: Pool
    by_key: dict[str, Column]
    version: str
    _cache: dict[str, bytes] = field(default_factory=dict, repr=False)

    def __getitem__(self, key: str) -> Column:
        if key not in self.by_key:
            raise UnknownNameError(f"There is no column '{shown(key, 40)}'. Known: {', '.join(self.by_key)}.")
        return self.by_key[key]

    def packed(self, key: str) -> bytes:
        if key not in self._cache:
            self._cache[key] = self[key].packed()
        return self._cache[key]


def class_colours(n: int) -> tuple[str, ...]:
    """A colour per class while colours can be told apart, one quiet grey for all of them beyond."""
    return PALETTE[:n] if n <= MOST_COLOURS else (NEUTRAL,) * n


def columns_of(project: Project, pool: Pool) -> Columns:
    """Everything known about the pool's images now. Cheap to ask again while nothing has changed."""
    seq = open_store(project).last_seq
    kinds = {kind: artifact.id for kind in ("pseudo", "scores", "coreset") if (artifact := project.latest(kind))}
    segments = tuple(segment.artifact.hash for segment in pool.segments)
    key = (project.folder, segments, len(pool), seq, tuple(kinds.items()))
    return _COLUMNS.get(key, lambda: _read(project, pool, seq, kinds))


_COLUMNS: LRUCache[Columns] = LRUCache(4)


def _read(project: Project, pool: Pool, seq: int, kinds: dict[str, str]) -> Columns:
    columns: list[Column] = []
    n = len(pool)
    store = open_store(project)
    snapshot = store.snapshot()
    human, _ = snapshot.on_pool(pool.ids, pool.duplicate_of)
    if "pseudo" in kinds:
        run = PseudoRun(project.artifact(kinds["pseudo"]))
        pool_of_run(pool, run)
        labels, names = run.labels(), run.class_names
        now = match_classes(human, snapshot.class_names, names)[: len(labels)]
        current = np.where(now >= 0, now, labels.labels)
        columns.append(_class("pseudo", "Pseudo-label", _padded(current, n), names))
        columns.append(_number("confidence", "Confidence", _padded(np.asarray(run.confidence()), n)))
        margin = run.margin()
        if margin is not None:
            columns.append(_number("margin", "Margin", _padded(np.asarray(margin), n)))
        right = rightness(pool, run, now)
        if (right >= 0).any():
            codes = np.where(right < 0, UNLABELED, 1 - right)
            columns.append(Column("right", "Right or wrong", _padded(codes, n), ("right", "wrong"), (RIGHT, WRONG)))
    if (human >= 0).any():
        columns.append(_class("human", "Human label", human, snapshot.class_names))
    if (pool.reference_labels >= 0).any():
        columns.append(_class("reference", "Reference label", pool.reference_labels, pool.class_names))
    if "scores" in kinds:
        columns += _scores(project.artifact(kinds["scores"]), n)
    if "coreset" in kinds:
        columns += _kept(project.artifact(kinds["coreset"]), n)
    flagged = np.isin(pool.ids, store.flagged_ids())
    if flagged.any():
        columns.append(Column("flagged", "Flagged", np.where(flagged, 0, UNLABELED), ("flagged",), (WRONG,)))
    corruption = pool.column("corruption")
    if corruption.null_count < n:
        codes = corruption.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        names = tuple(name.replace("_", " ") for name in corruption.dictionary.to_pylist())
        columns.append(_class("corruption", "Corruption", codes, names))
    if len(pool.segments) > 1:
        owner = np.searchsorted(pool.starts, pool.rows, side="right") - 1
        columns.append(_class("source", "Import", owner, tuple(segment.artifact.id for segment in pool.segments)))
    version = "-".join([str(seq), *kinds.values(), pool.segments[-1].artifact.id, str(n)])
    return Columns(pool, {column.key: column for column in columns}, version)


def _scores(artifact: artifacts.Artifact, n: int) -> list[Column]:
    path = artifact.path("scores.parquet")
    if not path.is_file():
        return []
    names = [name for name in pq.read_schema(path).names if name in SCORES]
    table = pq.read_table(path, columns=names)
    return [_number(name, SCORES.title(name), _padded(table[name].to_numpy(), n)) for name in names]


def _kept(artifact: artifacts.Artifact, n: int) -> list[Column]:
    path = artifact.path("indices.npy")
    if not path.is_file():
        return []
    kept = np.zeros(n, dtype=np.int64)
    kept[np.load(path, allow_pickle=False)] = 1
    return [Column("kept", "Kept or dropped", 1 - kept, ("kept", "dropped"), (PALETTE[0], NEUTRAL))]


def _class(key: str, title: str, codes: IntArray, names: Sequence[str]) -> Column:
    return Column(key, title, np.asarray(codes, dtype=np.int64), tuple(names), class_colours(len(names)))


def _number(key: str, title: str, values: FloatArray) -> Column:
    return Column(key, title, values=np.asarray(values, dtype=np.float64))


def _padded(values: np.ndarray, n: int) -> np.ndarray:
    """(n,): images that came after a result was made are unknown to it."""
    if len(values) == n:
        return values
    filler = UNLABELED if np.issubdtype(values.dtype, np.integer) else np.nan
    return np.concatenate([values[:n], np.full(max(0, n - len(values)), filler, dtype=values.dtype)])
