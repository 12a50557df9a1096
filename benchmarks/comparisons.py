"""The comparisons kept by ``paper.py``: their tables, order, records and titles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

TITLES = {
    "photos": "Clothing photos",
    "fashion": "Fashion-MNIST",
    "cifar10": "CIFAR-10",
    "cifar10_12k": "CIFAR-10",
    "signs": "Traffic signs",
}
VARIANTS = {
    "standard": "",
    "corrupt": ", 30% corrupted",
    "longtail-0.1": ", long-tailed (0.1)",
    "longtail-0.01": ", long-tailed (0.01)",
}
STARTS = {"frozen": "pretrained features", "scratch": "scored from scratch", "auto": "start by Auto"}
TESTS = {"probe": "probe", "finetune": "fine-tuned", "scratch": "net from scratch"}


@dataclass(frozen=True, eq=False)
class Comparison:
    """The trials of one pool with one ``start`` and one ``test``; ``record`` says what the pool is."""

    path: Path
    record: dict[str, Any]
    start: str
    test: str
    trials: pd.DataFrame

    @property
    def run(self) -> dict[str, Any]:
        """What the record says of this start and test: settings, and facts by seed."""
        return dict(self.record["runs"][f"{self.start} {self.test}"])

    @property
    def pool(self) -> str:
        """The data set, its variant, and how many images."""
        dataset, variant = self.record["dataset"], self.record["variant"]
        return f"{TITLES.get(dataset, dataset)}{VARIANTS[variant]}, {self.record['n_pool']:,} images"

    @property
    def title(self) -> str:
        return f"{self.pool}; {STARTS[self.start]}, {TESTS[self.test]}"


def comparisons(folder: Path) -> list[Comparison]:
    """All of them: by data set, by variant, by start and test."""
    return sorted((one for path in folder.glob("paper_*.csv") for one in _opened(path)), key=_order)


def record_of(path: Path) -> dict[str, Any]:
    """The record beside a table of trials: pool, settings, machine, versions."""
    return dict(json.loads(path.with_suffix(".json").read_text(encoding="utf-8")))


def _opened(path: Path) -> Iterator[Comparison]:
    record = record_of(path)
    for (start, test), trials in pd.read_csv(path).groupby(["start", "test"]):
        yield Comparison(path, record, str(start), str(test), trials.reset_index(drop=True))


def _order(one: Comparison) -> tuple[int, int, int, int]:
    dataset, variant = one.record["dataset"], one.record["variant"]
    places = [list(TITLES).index(dataset) if dataset in TITLES else len(TITLES), list(VARIANTS).index(variant)]
    return places[0], places[1], list(STARTS).index(one.start), list(TESTS).index(one.test)
