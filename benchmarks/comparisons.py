"""The comparisons kept by ``paper.py``: their tables, order, records and titles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TITLES = {"fashion": "Fashion-MNIST", "cifar10": "CIFAR-10", "cifar10_12k": "CIFAR-10"}
VARIANTS = {"standard": "", "corrupt": ", 30% corrupted", "longtail": ", long-tailed (0.1)"}


def tables_in(folder: Path) -> list[Path]:
    """Their tables of trials: Fashion-MNIST first, by variant, small pools before large ones."""
    return sorted(folder.glob("paper_*.csv"), key=_order)


def record_of(path: Path) -> dict[str, Any]:
    """The record beside a table of trials: pool, settings, machine, versions."""
    return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def title_of(record: dict[str, Any]) -> str:
    """The data set, its variant, how many images, and the run's own name if it has one.

    >>> title_of({"dataset": "fashion", "variant": "corrupt", "n_pool": 3000})
    'Fashion-MNIST, 30% corrupted, 3,000 images'
    """
    pool = (
        f"{TITLES.get(record['dataset'], record['dataset'])}{VARIANTS[record['variant']]}, {record['n_pool']:,} images"
    )
    return f"{pool}, {record['name']}" if record.get("name") else pool


def _order(path: Path) -> tuple[bool, int, int, str]:
    record = record_of(path)
    variant = list(VARIANTS).index(record["variant"])
    return record["dataset"] != "fashion", variant, int(record["n_pool"]), record.get("name", "")
