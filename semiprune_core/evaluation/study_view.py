"""What a study found: its trials and stages, seen by share, and how the lead over Random changes along them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from semiprune_core import files, jobs
from semiprune_core.evaluation.runs import titles_of
from semiprune_core.evaluation.settings import COLUMNS, RANDOM, trial_table
from semiprune_core.evaluation.studies import AXES, COMMON, Axis, axis_of
from semiprune_core.evaluation.view import (
    EvaluationView,
    paired_difference,
    percent,
    points,
    seeds,
    view_of,
)
from semiprune_core.project.artifacts import Artifact
from semiprune_core.trials import BOOK, FULL, TrialBook
from semiprune_core.trials.apart import TESTED

STAGE = "stage.json"
"""What the folder of a share notes when its pseudo-labels are there."""


@dataclass(frozen=True, eq=False)
class StudyRun:
    """A finished study: its trials with their share, and one entry per share in the facts."""

    artifact: Artifact

    @property
    def axis(self) -> Axis:
        return axis_of(self.artifact.settings)

    def trials(self) -> pd.DataFrame:
        return pd.read_parquet(self.artifact.path("trials.parquet"))

    @property
    def full_is_upper(self) -> bool:
        """Whether the full data was trained on for as long as any coreset; in older studies it was not."""
        return "full_epochs" in self.artifact.facts

    def stages(self) -> list[Mapping[str, Any]]:
        return list(self.artifact.facts[self.axis.field])


def share_folder(folder: Path, axis: Axis, share: float) -> Path:
    """Where a job keeps the work on one share."""
    return folder if share == COMMON else folder / f"{axis.column}-{share:g}"


def partial_study(job: jobs.Job) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """The trials and the stages that a study has done so far."""
    axis = AXES[job.kind]
    return read_study(job.work_folder, axis, tuple(job.settings[axis.field]))


def job_full_is_upper(job: jobs.Job) -> bool:
    """Whether a study under way trains the full data as long as any coreset, as all do since they note their test."""
    return (job.work_folder / TESTED).is_file()


def read_study(folder: Path, axis: Axis, shares: Sequence[float]) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    tables, stages = [], []
    for share in (COMMON, *shares):
        own = share_folder(folder, axis, share)
        table = trial_table(TrialBook(own / BOOK))
        table.insert(0, axis.column, float(share))
        tables.append(table)
        if (own / STAGE).is_file():
            stages.append(files.read_json(own / STAGE))
    filled = [table for table in tables if len(table)]
    return pd.concat(filled, ignore_index=True) if filled else tables[0], stages


def share_view(
    axis: Axis,
    trials: pd.DataFrame,
    pruning_ratio: float,
    *,
    methods: Sequence[str] = (),
    shares: Sequence[float] = (),
    full_is_upper: bool = True,
) -> EvaluationView:
    """The trials at one ratio, seen by share: the columns of the view are shares.

    What is common to all shares is the same in each. The full data is a level to measure against only where it is one
    for all; of pools of several sizes each has its own (``full_by_share``).
    """
    here = trials[(trials["pruning_ratio"] - pruning_ratio).abs() < 1e-6]
    common, own = here[here[axis.column] == COMMON], here[here[axis.column] != COMMON]
    columns = sorted({*shares, *own[axis.column]})
    parts = [own.assign(pruning_ratio=own[axis.column])]
    parts += [trials[(trials["method"] == FULL) & (trials[axis.column] == COMMON)]]
    parts += [common[common["method"] == RANDOM].assign(pruning_ratio=share) for share in columns]
    table = pd.concat([part for part in parts if len(part)] or [trials.head(0)])[list(COLUMNS)]
    return view_of(
        table,
        titles=titles_of([RANDOM, *methods]),
        methods=(RANDOM, *methods),
        ratios=columns,
        axis=axis.name,
        place=f"{axis.place}, at {percent(pruning_ratio)} pruning,",
        usual=axis.usual,
        full_is_upper=full_is_upper,
    )


def full_by_share(axis: Axis, trials: pd.DataFrame) -> dict[float, float]:
    """The mean accuracy after training on all images of a share, where each share has its own."""
    full = trials[(trials["method"] == FULL) & (trials[axis.column] != COMMON)]
    return {float(share): float(some["test_accuracy"].mean()) for share, some in full.groupby(axis.column)}


def trend_sentence(view: EvaluationView, method: str | None = None) -> str:
    """How the lead of a method (the best one at the last column) over Random changes from the first column to the last.

    The change is paired by seed like the leads themselves. Empty where there is nothing to compare.
    """
    method = method or (view.leader(view.ratios[-1]) if view.ratios else None)
    ends = [ratio for ratio in view.ratios if method and (cell := view.cell(method, ratio)) and cell.difference]
    if method is None or method == RANDOM or len(ends) < 2:
        return ""
    (first, last), leads = (ends[0], ends[-1]), []
    for ratio in (first, last):
        mine, chance = view.cells[method, ratio], view.cells[RANDOM, ratio]
        common = mine.by_seed.keys() & chance.by_seed.keys()
        leads.append({seed: mine.by_seed[seed] - chance.by_seed[seed] for seed in common})
    change = paired_difference(leads[1], leads[0], view.cells[method, last].n_test)
    if change is None:
        return ""
    words = (
        f"From {percent(first)} to {percent(last)} the lead of {view.title(method)} over random goes from "
        f"{_signed(view, method, first)} to {_signed(view, method, last)} points"
    )
    if change.half is None:
        return f"{words}, from one seed: this may be chance."
    verdict = {"above": "it grows", "below": "it shrinks", "unclear": "that may be chance"}[change.verdict]
    return f"{words}: {verdict} (change {change.mean * 100:+.1f} ± {points(change.half)}, {seeds(change.n)})."


def _signed(view: EvaluationView, method: str, ratio: float) -> str:
    difference = view.cells[method, ratio].difference
    assert difference is not None
    return f"{100 * difference.mean:+.1f}"
