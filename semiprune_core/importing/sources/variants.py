"""The paper's two kinds of hard data, put on any source: corrupted images and a long tail of classes.

Both touch the pool split only, are seeded, and read their source as a stream, keeping a few bytes per image.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np

from semiprune_core import streams
from semiprune_core.checks import check_choice, check_range
from semiprune_core.errors import SourceError
from semiprune_core.importing.corruptions import MILD, SEVERITIES, of_severity
from semiprune_core.importing.sources.base import POOL_SPLIT, VARIANTS, Entry, Origin, Source
from semiprune_core.paths import shown
from semiprune_core.records import Problem
from semiprune_core.streams import Purpose


class CorruptSource:
    """A source in which a share of the pool images gets one of the corruptions, each with its own seed."""

    origin: Origin = "packed"

    def __init__(self, source: Source, share: float, seed: int, severity: str = MILD) -> None:
        self._source, self._share, self._seed = source, share, seed
        self._kinds = of_severity(severity)
        self.class_names = source.class_names

    @property
    def problems(self) -> list[Problem]:
        return self._source.problems

    def count(self) -> int:
        return self._source.count()

    def entries(self) -> Iterator[Entry]:
        n = sum(1 for entry in self._source.entries() if entry.split == POOL_SPLIT)
        rng = streams.rng(self._seed, Purpose.CORRUPTED)
        kinds = np.full(n, -1, dtype=np.int8)
        chosen = rng.choice(n, size=round(n * self._share), replace=False)
        kinds[chosen] = rng.integers(len(self._kinds), size=len(chosen))
        seeds = rng.integers(2**31, size=n, dtype=np.int64)
        row = -1
        for entry in self._source.entries():
            row += entry.split == POOL_SPLIT
            if entry.split == POOL_SPLIT and kinds[row] >= 0:
                yield Entry(
                    entry.path, entry.locator, entry.label, entry.split, self._kinds[kinds[row]], int(seeds[row])
                )
            else:
                yield entry


class LongTailSource:
    """A source whose classes shrink exponentially: n_c = n_max factor^(c / (C - 1)), at most what there is."""

    def __init__(self, source: Source, factor: float, seed: int) -> None:
        self._source, self._factor, self._seed = source, factor, seed
        self.origin: Origin = source.origin
        self._keep, self.class_names = self._choose()

    @property
    def problems(self) -> list[Problem]:
        return self._source.problems

    def _choose(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """Which pool images stay (n,) bool, and the classes in their order."""
        numbers: dict[str, int] = {}
        met = array("i")
        for entry in self._source.entries():
            if entry.split == POOL_SPLIT:
                if entry.label is None:
                    raise SourceError(
                        f"A long tail needs a reference label for every image, but {shown(entry.path)} has none. "
                        "Import a source with class folders or a label column.",
                        code="LABELS_NEEDED",
                    )
                met.append(numbers.setdefault(entry.label, len(numbers)))
        given = self._source.class_names or ()
        names = (*given, *sorted(set(numbers) - set(given)))
        order = np.array([names.index(label) for label in numbers], dtype=np.int64)
        labels = order[np.frombuffer(met, dtype=np.int32)] if met else np.empty(0, dtype=np.int64)
        counts = np.bincount(labels, minlength=len(names))
        rng = streams.rng(self._seed, Purpose.LONG_TAIL)
        keep = np.zeros(len(labels), dtype=bool)
        for number, size in enumerate(tail_sizes(int(counts.max(initial=0)), len(names), self._factor)):
            mine = np.flatnonzero(labels == number)
            keep[rng.permutation(mine)[:size]] = True
        return keep, names

    def count(self) -> int:
        return sum(1 for _ in self.entries())

    def entries(self) -> Iterator[Entry]:
        row = -1
        for entry in self._source.entries():
            row += entry.split == POOL_SPLIT
            if entry.split != POOL_SPLIT or self._keep[row]:
                yield entry


def tail_sizes(largest: int, n_classes: int, factor: float) -> list[int]:
    """Class sizes from ``largest`` down to ``largest * factor``, none below one.

    >>> tail_sizes(100, 3, 0.01)
    [100, 10, 1]
    """
    steps = max(n_classes - 1, 1)
    return [max(1, round(largest * factor ** (number / steps))) for number in range(n_classes)]


@VARIANTS.register("corrupt", title="Corrupted images")
def corrupt(source: Source, *, share: float = 0.3, seed: int = 0, severity: str = MILD) -> CorruptSource:
    """A share of the pool images gets Gaussian noise, occlusion, low resolution, fog or motion blur."""
    check_range("share", share, low=0, high=1)
    check_choice("severity", severity, tuple(SEVERITIES))
    return CorruptSource(source, share, seed, severity)


@VARIANTS.register("longtail", title="Long-tailed classes")
def longtail(source: Source, *, factor: float = 0.1, seed: int = 0) -> LongTailSource:
    """Class sizes fall exponentially, in class order, to ``factor`` times the largest."""
    check_range("factor", factor, low=0, high=1, low_open=True)
    return LongTailSource(source, factor, seed)
