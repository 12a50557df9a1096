"""What a scan found, in numbers and as spreadsheet-safe CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from semiprune_core.project.pool import Pool, show_id
from semiprune_core.project.spreadsheet import safe_cell
from semiprune_core.records import IntArray
from semiprune_core.scan.oddities import ODDITIES
from semiprune_core.scan.run import ScanRun


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of near-duplicates, the largest first: ``members`` positions in their order, the first one leading."""

    members: Sequence[IntArray]
    n_across: int
    """Groups with images of the pool and of the tests."""

    @property
    def n_images(self) -> int:
        return sum(len(group) for group in self.members)

    @property
    def n_spare(self) -> int:
        """Images that go when one of each is kept."""
        return self.n_images - len(self.members)


def grouped(everything: Pool, groups: IntArray) -> Groups:
    """The groups of two and more images, from (N,) one number per image."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    parts = [part for part in np.split(order, starts[1:]) if len(part) > 1]
    parts.sort(key=lambda part: (-len(part), part[0]))
    is_test = np.zeros(len(everything), bool)
    is_test[everything.split("test").rows] = True
    return Groups(parts, sum(0 < int(is_test[part].sum()) < len(part) for part in parts))


def groups_csv(everything: Pool, groups: Groups) -> str:
    """One row for each image of a group: the group's number, its first image and whether this is it."""
    rows = [
        (number, int(place == 0), position)
        for number, members in enumerate(groups.members, start=1)
        for place, position in enumerate(members.tolist())
    ]
    return _csv(everything, ("group", "first"), [(row[:2], row[2]) for row in rows])


def found_csv(everything: Pool, run: ScanRun, kinds: Sequence[str]) -> str:
    """One row for each odd image and the way in which it is odd, the oddest first."""
    odd = run.odd()
    rows = [
        ((kind, f"{run.measures[ODDITIES[kind].measure][position]:.4f}"), position)
        for kind in kinds
        for position in odd.get(kind, np.empty(0, np.int64)).tolist()
    ]
    return _csv(everything, ("found", "value"), rows)


def _csv(everything: Pool, names: Sequence[str], rows: Iterable[tuple[Sequence[object], int]]) -> str:
    rows = list(rows)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*names, "image_id", "path", "split"])
    facts = everything.facts([position for _, position in rows], ("image_id", "path", "split")) if rows else []
    for (values, _), row in zip(rows, facts, strict=True):
        table.writerow([*values, show_id(row["image_id"]), safe_cell(row["path"]), row["split"]])
    return text.getvalue()
