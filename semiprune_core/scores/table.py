"""All scores of a trajectory in one pass, without loading it whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiprune_core.checks import check_range
from semiprune_core.errors import MissingStepError
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import BoolArray, Evidence, FloatArray, IntArray, Trajectory
from semiprune_core.scores.base import SCORES
from semiprune_core.settings import Settings

BLOCK = 1 << 15  # images per block: 128 KB of float32 per row and read, 85 MB for 200 epochs


@dataclass(frozen=True, kw_only=True)
class ScoreSettings(Settings):
    """What the scores need to know. ``None`` means all epochs.

    ``aum_epochs`` is T of AUM and forgetting; ``dual_epochs`` is T of DUAL and of the mean probability and variability
    beside it; ``window`` is J of DUAL and of dynamic uncertainty (which looks at the whole run), ``gamma`` the exponent
    on DUAL's deviation; ``el2n_epochs`` the early epochs of EL2N.
    """

    aum_epochs: int | None = None
    dual_epochs: int | None = None
    window: int = 10
    gamma: float = 1.0
    el2n_epochs: int = 10

    def check(self) -> None:
        for name in ("aum_epochs", "dual_epochs", "el2n_epochs"):
            value = getattr(self, name)
            if value is not None:
                check_range(name, value, low=1)
        check_range("window", self.window, low=2)
        check_range("gamma", self.gamma, low=0, high=1, low_open=True)

    def knobs(self, score: str) -> dict[str, Any]:
        """The keyword arguments of one score.

        >>> ScoreSettings(dual_epochs=30).knobs("dual")
        {'n_epochs': 30, 'window': 10, 'gamma': 1.0}
        """
        return {knob: getattr(self, field) for knob, field in SCORES.facts(score).get("knobs", {}).items()}


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The scores of N images by name, each (N,) float64 and finite, and the settings they were computed with."""

    columns: Mapping[str, FloatArray]
    settings: ScoreSettings
    n_images: int

    def __getitem__(self, name: str) -> FloatArray:
        if name not in self.columns:
            known = ", ".join(self.columns)
            raise MissingStepError(f"The score '{name}' was not computed. There are: {known}.")
        return self.columns[name]

    def evidence(
        self,
        *,
        labels: IntArray | None = None,
        human_mask: BoolArray | None = None,
        duplicate_of: IntArray | None = None,
        features: FloatArray | None = None,
    ) -> Evidence:
        """What the selectors look at: these scores and whatever else is known about the images."""
        return Evidence(
            self.n_images, self.columns, self.columns.get("mean_prob"), labels, human_mask, duplicate_of, features
        )


def available_scores(trajectory: Trajectory) -> list[str]:
    """The registered scores this trajectory has the columns for."""
    return [
        name
        for name in SCORES
        if all(getattr(trajectory, column) is not None for column in SCORES.facts(name).get("needs", ()))
    ]


def compute_scores(
    trajectory: Trajectory,
    *,
    settings: ScoreSettings | None = None,
    names: Sequence[str] | None = None,
    block: int = BLOCK,
    progress: Progress | None = None,
) -> ScoreTable:
    """All scores (or those in ``names``) of a trajectory, in one pass over blocks of ``block`` images.

    The arrays may be memory-mapped and larger than the memory: of each block, every column is read once, row by row in
    contiguous pieces, and every score is computed before the next block. The result does not depend on ``block``.

    >>> row = np.full((10, 3), 0.5)
    >>> table = compute_scores(Trajectory(row, row - 0.5, row > 0, row))
    >>> table["aum"].tolist(), table["dual"].tolist()
    ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    """
    settings = settings or ScoreSettings()
    check_range("block", block, low=1)
    chosen = available_scores(trajectory) if names is None else list(names)
    knobs = {name: settings.knobs(name) for name in chosen}
    columns = {name: np.empty(trajectory.n_images, dtype=np.float64) for name in chosen}
    needed = {column for name in chosen for column in SCORES.facts(name).get("needs", ())}
    for start in range(0, trajectory.n_images, block):
        if progress is not None and progress.should_stop():
            raise Stopped
        stop = min(start + block, trajectory.n_images)
        part = _load_block(trajectory, start, stop, needed)
        for name in chosen:
            columns[name][start:stop] = SCORES[name](part, **knobs[name])
        if progress is not None:
            progress.report(stop, trajectory.n_images, unit="images")
    return ScoreTable(columns, settings, trajectory.n_images)


def _load_block(trajectory: Trajectory, start: int, stop: int, needed: set[str]) -> Trajectory:
    """Images ``start`` to ``stop`` in memory; columns that no score reads stay views of where they are."""

    def cut(name: str) -> np.ndarray:
        view = getattr(trajectory, name)[:, start:stop]
        return np.ascontiguousarray(view) if name in needed else view

    entropy = trajectory.last_entropy
    return Trajectory(
        cut("target_prob"),
        cut("margin"),
        cut("correct"),
        cut("el2n"),
        None if entropy is None else entropy[start:stop],
    )
