"""A trajectory kept in memory, in the numbers in which the app keeps it on the disk."""

from __future__ import annotations

import numpy as np

from semiprune_core.records import BoolArray, FloatArray, Trajectory
from semiprune_core.results.trajectory_store import COLUMNS


class MemoryRecorder:
    """One row (N,) of each column per epoch."""

    def __init__(self) -> None:
        self._rows: list[dict[str, np.ndarray]] = []
        self._entropy: FloatArray | None = None
        self.epochs_done = 0

    def append(
        self,
        *,
        target_prob: FloatArray,
        margin: FloatArray,
        correct: BoolArray,
        el2n: FloatArray,
        entropy: FloatArray | None = None,
    ) -> None:
        rows = {"target_prob": target_prob, "margin": margin, "correct": correct, "el2n": el2n}
        self._rows.append({name: np.array(row, dtype=COLUMNS[name]) for name, row in rows.items()})
        self._entropy = None if entropy is None else np.array(entropy, dtype=np.float32)
        self.epochs_done = len(self._rows)

    def truncate(self, epochs: int) -> None:
        del self._rows[epochs:]
        self.epochs_done = len(self._rows)

    def trajectory(self) -> Trajectory:
        columns = {name: np.stack([row[name] for row in self._rows]) for name in COLUMNS}
        return Trajectory(**columns, last_entropy=self._entropy)
