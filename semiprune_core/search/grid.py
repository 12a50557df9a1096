"""What a search tries: T first where the method has one, then the values of its knob at every ratio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from semiprune_core.results.score_source import ScoreSource, settings_of
from semiprune_core.results.search import CUTOFF_STEP, RANDOM, SearchSettings
from semiprune_core.selection.defaults import (
    FROZEN,
    Basis,
    default_knobs,
    paper_beta,
    paper_cutoff,
)
from semiprune_core.trials import Trial

C_D_GRID = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
"""The paper's values for pools of its size lie between 4 and 11; small pools want less."""
PAPER_EPOCHS = (30, 50, 70)
"""T, where the run is longer than the last of them."""
EPOCHS_RATIO = 0.3
"""The ratio at which T is chosen."""


@dataclass(frozen=True)
class Grid:
    """What is tried: T out of ``epochs`` with ``first_value`` (no T for cutoffs), then ``values`` by ratio."""

    settings: SearchSettings
    epochs: tuple[int, ...]
    first_value: float
    values: Mapping[float, tuple[float, ...]]

    @property
    def finds_epochs(self) -> bool:
        return len(self.epochs) > 1

    def epoch_trials(self) -> list[Trial]:
        """The trials that choose T; none where there is no choice."""
        if not self.finds_epochs:
            return []
        return [
            self._trial(EPOCHS_RATIO, seed, self.first_value, n_epochs)
            for seed in self.settings.seeds
            for n_epochs in self.epochs
        ]

    def value_trials(self, n_epochs: int | None) -> list[Trial]:
        """Random and every value, for each ratio; all with the first seed come first, small coresets before large."""
        trials = []
        for seed in self.settings.seeds:
            for ratio in sorted(self.settings.ratios, reverse=True):
                trials.append(Trial(method=RANDOM, pruning_ratio=ratio, seed=seed))
                trials += [self._trial(ratio, seed, value, n_epochs) for value in self.values[ratio]]
        return trials

    def trials(self) -> list[Trial]:
        """All of them, with the first T standing for the one that is not known yet."""
        return list(
            {
                trial.key: trial
                for trial in (*self.epoch_trials(), *self.value_trials(self.epochs[0] if self.epochs else None))
            }.values()
        )

    def _trial(self, ratio: float, seed: int, value: float, n_epochs: int | None) -> Trial:
        return Trial(
            method=self.settings.method,
            pruning_ratio=ratio,
            seed=seed,
            knobs={self.settings.knob: value},
            score_changes={} if n_epochs is None else {"dual_epochs": n_epochs},
        )


def make_grid(
    settings: SearchSettings, n_images: int, n_epochs: int, window: int, *, on_features: bool = False
) -> Grid:
    """What to try for a pool of ``n_images`` whose scoring run had ``n_epochs``, with DUAL windows of ``window``.

    A run on features is short: T is all of it, as in its starting values.
    """
    paper = settings.paper_set
    if settings.knob == "cutoff":
        return Grid(settings, (), 0.0, {ratio: _cutoffs(ratio, paper) for ratio in settings.ratios})
    if paper is None:
        first = default_knobs(settings.method, EPOCHS_RATIO, Basis(n_images, n_epochs)).selector.get("c_d", C_D_GRID[0])
        epochs = (n_epochs,) if on_features else epoch_candidates(n_epochs, window)
        return Grid(settings, epochs, first, dict.fromkeys(settings.ratios, C_D_GRID))
    paper_epochs, c_d = paper_beta(paper)
    values = tuple(sorted({max(1.0, c_d - 1), c_d, c_d + 1}))
    return Grid(settings, (max(window, min(paper_epochs, n_epochs)),), c_d, dict.fromkeys(settings.ratios, values))


def _cutoffs(ratio: float, paper: str | None) -> tuple[float, ...]:
    """Legal cutoffs: from 0 to the ratio in steps, or the paper's and its two neighbours."""
    if paper is None:
        return tuple(round(CUTOFF_STEP * k, 4) for k in range(int(ratio / CUTOFF_STEP + 1e-9) + 1))
    middle = paper_cutoff(paper, ratio)
    near = (round(middle + shift, 4) for shift in (-CUTOFF_STEP, 0.0, CUTOFF_STEP))
    return tuple(value for value in near if 0 <= value <= ratio + 1e-9)


def epoch_candidates(n_epochs: int, window: int) -> tuple[int, ...]:
    """T to try: the paper's range where the run is long enough for it, else a third, two thirds and all of the run.

    >>> epoch_candidates(200, 10), epoch_candidates(30, 10), epoch_candidates(12, 10), epoch_candidates(5, 5)
    ((30, 50, 70), (10, 20, 30), (10, 12), (5,))
    """
    if n_epochs > PAPER_EPOCHS[-1]:
        return PAPER_EPOCHS
    thirds = {max(window, round(n_epochs * part / 3)) for part in (1, 2, 3)}
    return tuple(sorted(value for value in thirds if value <= n_epochs)) or (n_epochs,)


def grid_of(settings: SearchSettings, source: ScoreSource) -> Grid:
    n_images, n_epochs = int(source.artifact.facts["n_images"]), source.n_epochs
    assert n_epochs is not None  # scores on labels come from a dynamics run
    on_features = source.artifact.facts.get("start") == FROZEN  # DUAL is never searched on evidence
    return make_grid(settings, n_images, n_epochs, settings_of(source)["window"], on_features=on_features)


def best_epochs(table: pd.DataFrame, grid: Grid) -> int | None:
    """T: the candidate with the best mean at ratio 0.3; of equal ones the shorter. None for methods without T."""
    if not grid.finds_epochs:
        return grid.epochs[0] if grid.epochs else None
    mine = table[
        (table["method"] != RANDOM)
        & (table["pruning_ratio"] == EPOCHS_RATIO)
        & (table["value"] == grid.first_value)
        & table["n_epochs"].isin(grid.epochs)
    ]
    means = mine.groupby("n_epochs")["n_correct"].mean()
    return int(means.idxmax())
