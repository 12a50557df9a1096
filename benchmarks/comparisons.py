"""The comparisons that ``paper.py`` wrote down: which there are, in which order, and what they are called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TITLES = {"fashion": "Fashion-MNIST", "cifar10": "CIFAR-10", "cifar10_12k": "CIFAR-10"}
VARIANTS = {"standard": "", "corrupt": ", 30% corrupted", "longtail": ", long-tailed (0.1)"}


def found_in(folder: Path) -> list[Path]:
    """Their tables of trials: Fashion-MNIST first, its variants in their order, small pools before large ones."""
    return sorted(folder.glob("paper_*.csv"), key=_order)


def said_of(path: Path) -> dict[str, Any]:
    """What was written down beside a table of trials: pool, settings, machine, versions."""
    return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def title_of(said: dict[str, Any]) -> str:
    """The data set, its variant, how many images, and the run's own name if it has one.

    >>> title_of({"dataset": "fashion", "variant": "corrupt", "n_pool": 3000})
    'Fashion-MNIST, 30% corrupted, 3,000 images'
    """
    pool = f"{TITLES.get(said['dataset'], said['dataset'])}{VARIANTS[said['variant']]}, {said['n_pool']:,} images"
    return f"{pool}, {said['name']}" if said.get("name") else pool


def _order(path: Path) -> tuple[bool, int, int, str]:
    said = said_of(path)
    variant = list(VARIANTS).index(said["variant"])
    return said["dataset"] != "fashion", variant, int(said["n_pool"]), said.get("name", "")
