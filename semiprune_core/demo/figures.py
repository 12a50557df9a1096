"""What the finished demo measured, read from its own files: the figures that the first page tells."""

from __future__ import annotations

import functools
import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from semiprune_core.demo.finished import ARCHIVE
from semiprune_core.evaluation.view import Cell, view_of

RATIO = 0.5
"""The pruning ratio that is told: half of the pool."""
PSEUDO, EVALUATION = "artifacts/pseudo-0001/manifest.json", "artifacts/evaluation-0001/trials.parquet"


@dataclass(frozen=True)
class Figures:
    """The best coreset at ``pruning_ratio``, a random one and the whole pool, each over several seeds."""

    n_pool: int
    n_labeled: int
    n_kept: int
    pruning_ratio: float
    coreset: Cell
    random: Cell
    full: Cell


@functools.lru_cache(maxsize=1)
def figures(archive: Path = ARCHIVE) -> Figures | None:
    """The measured figures of the bundled demo; None where it is not bundled."""
    if not archive.is_file():
        return None
    with zipfile.ZipFile(archive) as packed:
        facts = json.loads(packed.read(PSEUDO))["facts"]
        view = view_of(pd.read_parquet(io.BytesIO(packed.read(EVALUATION))))
    leader = view.leader(RATIO)
    coreset, random = (view.cell(method, RATIO) for method in (leader or "", "random"))
    if coreset is None or random is None or view.full is None:
        return None
    return Figures(facts["n_images"], facts["n_human"], coreset.n_train, RATIO, coreset, random, view.full)
