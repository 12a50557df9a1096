"""What the finished demo measured, read from its own files: the figures that the first page tells."""

from __future__ import annotations

import functools
import io
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from semiprune_core.demo.finished import ARCHIVE
from semiprune_core.evaluation.view import Cell, view_of

RATIO = 0.5
"""The pruning ratio that is told: half of the pool."""
CORESET = re.compile(r"artifacts/coreset-\d+/manifest\.json")
PSEUDO, EVALUATION = "artifacts/pseudo-0001/manifest.json", "artifacts/evaluation-0001/trials.parquet"


@dataclass(frozen=True)
class Figures:
    """The best coreset at ``pruning_ratio``, a random one and the whole pool, each over several seeds."""

    n_pool: int
    n_labeled: int
    n_kept: int
    n_kept_labeled: int
    pruning_ratio: float
    coreset: Cell
    random: Cell
    full: Cell

    @property
    def labels_saved(self) -> int:
        """Images that nobody labels: not drawn at first, and not in the coreset."""
        return self.n_pool - self.n_labeled - self.n_kept + self.n_kept_labeled


@functools.lru_cache(maxsize=1)
def figures(archive: Path = ARCHIVE) -> Figures | None:
    """The measured figures of the bundled demo; None where it is not bundled."""
    if not archive.is_file():
        return None
    with zipfile.ZipFile(archive) as packed:
        facts = json.loads(packed.read(PSEUDO))["facts"]
        view = view_of(pd.read_parquet(io.BytesIO(packed.read(EVALUATION))))
        coresets = [json.loads(packed.read(name)) for name in packed.namelist() if CORESET.fullmatch(name)]
    leader = view.leader(RATIO)
    coreset, random = (view.cell(method, RATIO) for method in (leader or "", "random"))
    built = next((one["facts"] for one in coresets if _is_of(one["settings"], leader)), None)
    if coreset is None or random is None or view.full is None or built is None:
        return None
    counts = (facts["n_images"], facts["n_human"], coreset.n_train, built["n_human"])
    return Figures(*counts, RATIO, coreset, random, view.full)


def _is_of(settings: Mapping[str, Any], method: str | None) -> bool:
    return (settings["method"], settings["pruning_ratio"]) == (method, RATIO)
