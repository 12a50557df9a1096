"""What the trials of a search say, finished or still running: a table, and accuracy over the values tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from semiprune_core import jobs
from semiprune_core.results.search import COLUMNS, RANDOM, deviation
from semiprune_core.search.grid import EPOCHS_RATIO
from semiprune_core.trials import BOOK, Trial, TrialBook


def trial_table(trials: Iterable[tuple[Trial, Mapping[str, Any]]]) -> pd.DataFrame:
    """One row per trial, with the columns COLUMNS; ``knob`` and ``value`` are empty for Random."""
    rows = []
    for trial, result in trials:
        knob, value = next(iter(trial.knobs.items()), ("", float("nan")))
        rows.append(
            {
                "method": trial.method,
                "pruning_ratio": trial.pruning_ratio,
                "seed": trial.seed,
                "knob": knob,
                "value": float(value),
                "n_epochs": trial.score_changes.get("dual_epochs", 0),
                **{name: int(result[name]) for name in ("n_train", "n_test", "n_correct")},
                "accuracy": result["n_correct"] / result["n_test"],
                "right": result.get("right"),
            }
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def partial_search(job: jobs.Job) -> pd.DataFrame:
    """The trials that a running or stopped search has finished so far."""
    return trial_table(TrialBook(job.work_folder / BOOK))


@dataclass(frozen=True)
class Curve:
    """Accuracy over the values tried at one ratio: (value, mean, deviation over seeds) points; Random beside it."""

    pruning_ratio: float
    points: tuple[tuple[float, float, float], ...]
    random: tuple[float, float] | None
    """(mean, deviation over seeds); None while it is not known."""


def curves(table: pd.DataFrame) -> list[Curve]:
    """One curve for each ratio in a table, complete or not, ratios rising; of several T the one tried most."""
    mine = table[table["method"] != RANDOM]
    chance = table[table["method"] == RANDOM]
    if mine.empty or chance.empty:  # while T is sought there is nothing to compare
        return []
    counts = mine["n_epochs"].value_counts()
    mine = mine[mine["n_epochs"] == counts.index[0]]
    drawn = []
    for ratio, rows in mine.groupby("pruning_ratio"):
        by_random = chance.loc[chance["pruning_ratio"] == ratio, "accuracy"]
        points = tuple(
            (float(value), float(part.mean()), deviation(part)) for value, part in rows.groupby("value")["accuracy"]
        )
        random = None if by_random.empty else (float(by_random.mean()), deviation(by_random))
        if random is not None or len(points) > 1:
            drawn.append(Curve(float(ratio), points, random))
    return drawn


def epochs_tried(table: pd.DataFrame) -> dict[int, float]:
    """The mean accuracy of each T that was compared; empty where there was one T or none."""
    mine = table[(table["method"] != RANDOM) & (table["n_epochs"] > 0) & (table["pruning_ratio"] == EPOCHS_RATIO)]
    if mine["n_epochs"].nunique() < 2:
        return {}
    shared = mine.groupby("value")["n_epochs"].nunique().idxmax()  # the c_D that all of them were tried with
    means = mine[mine["value"] == shared].groupby("n_epochs")["accuracy"].mean()
    return {int(n_epochs): float(mean) for n_epochs, mean in means.items()}
