"""The label-budget study: how many labels does it take until the coreset beats chance?

For each budget a nested random subset of the pool counts as labeled; everything after that is done as the project would
do it: semi-supervised training, a dynamics run on its pseudo-labels, scores, coresets, a net trained on each coreset
with the true labels, and a test. Random and the full data need no labels, so they are trained once. The work itself is
in ``learning.study_job``; nothing here loads torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from semiprune_core import files, jobs
from semiprune_core.artifacts import Artifact
from semiprune_core.checks import check_choice, check_range
from semiprune_core.errors import InvalidSettingError
from semiprune_core.evaluation import ground_of, trial_table
from semiprune_core.evaluation_runs import titles_of
from semiprune_core.evaluation_view import COLUMNS, FULL, RANDOM, EvaluationView, percent, view_of
from semiprune_core.labeling import open_store
from semiprune_core.learning import machine
from semiprune_core.learning.presets import ssl_preset, supervised_preset
from semiprune_core.learning.settings import SSLSettings, SupervisedSettings
from semiprune_core.learning.training import keep_snapshot
from semiprune_core.methods import METHODS
from semiprune_core.records import UNLABELED, IntArray
from semiprune_core.settings import Settings
from semiprune_core.trials import BOOK, TrialBook
from semiprune_core.workspace import Project

KIND, ARTIFACT = "label_budget", "study"
BUDGETS = (0.01, 0.02, 0.05, 0.10, 0.20)
USUAL_BUDGET = 0.10
STAGE = "stage.json"
"""What a budget's folder notes when its pseudo-labels are there."""
COMMON = 0.0
"""The budget of rows that need no label: Random and the full data."""


@dataclass(frozen=True, kw_only=True)
class BudgetSettings(Settings):
    """Budgets x methods x ratios x seeds. ``ssl`` and ``training`` are what differs from the two presets.

    ``seed`` draws the labels and starts the semi-supervised and the dynamics run; ``seeds`` are those of the trainings.
    ``truth`` None takes the reference labels, else people's where they cover every image.
    """

    budgets: tuple[float, ...] = BUDGETS
    methods: tuple[str, ...] = ("semi_aum_cutoff", "semi_dual_beta")
    ratios: tuple[float, ...] = (0.7, 0.9)
    seeds: tuple[int, ...] = (0, 1, 2)
    algorithm: str = "fixmatch"
    ssl_preset: str = "quick"
    ssl: dict[str, Any] = field(default_factory=dict)
    preset: str = "quick"
    training: dict[str, Any] = field(default_factory=dict)
    truth: str | None = None
    seed: int = 0

    def check(self) -> None:
        for name in ("budgets", "methods", "ratios", "seeds"):
            values = getattr(self, name)
            if not values or len(set(values)) != len(values):
                raise InvalidSettingError(f"{name} must be one or more different ones, got {list(values)}.")
        for budget in self.budgets:
            check_range("budget", budget, low=0, high=1, low_open=True)
        for ratio in self.ratios:
            check_range("ratio", ratio, low=0, high=1, low_open=True, high_open=True)
        for method in self.methods:
            check_choice("method", method, budget_methods())
        if self.truth is not None:
            check_choice("truth", self.truth, ("reference", "human"))
        self.semi_supervised()
        self.supervised()

    def semi_supervised(self) -> SSLSettings:
        return ssl_preset(self.ssl_preset, self.algorithm, **self.ssl)

    def supervised(self) -> SupervisedSettings:
        """Of the dynamics run and of every training on a coreset, but for the batch of small ones."""
        return supervised_preset(self.preset, **self.training)


def budget_methods() -> tuple[str, ...]:
    """Methods that choose by scores on pseudo-labels: those that a label budget changes."""
    return tuple(name for name in METHODS if METHODS[name].evidence == "scores")


def nested_labels(labels: IntArray, duplicate_of: IntArray, budgets: Sequence[float], seed: int) -> list[IntArray]:
    """For each budget the labels (N,) of a random share of the pictures, -1 elsewhere; each share contains the smaller.

    Copies of one picture count once: the first of them gets the label.

    >>> small, large = nested_labels(np.zeros(10, int), np.arange(10), (0.2, 0.5), seed=0)
    >>> int((small >= 0).sum()), int((large >= 0).sum()), bool((large[small >= 0] >= 0).all())
    (2, 5, True)
    """
    first = np.flatnonzero((duplicate_of == np.arange(len(labels))) & (labels >= 0))
    order = np.random.default_rng(seed).permutation(first)
    found = []
    for budget in budgets:
        chosen = order[: max(1, round(budget * len(first)))]
        drawn = np.full(len(labels), UNLABELED, dtype=np.int64)
        drawn[chosen] = labels[chosen]
        found.append(drawn)
    return found


def n_trainings(settings: BudgetSettings) -> int:
    """How many coresets (and full data sets) are trained on."""
    per_seed = len(settings.ratios) * (1 + len(settings.budgets) * len(settings.methods)) + 1
    return per_seed * len(settings.seeds)


@dataclass(frozen=True)
class Cost:
    """What a study trains on, in images, every step or epoch counted: its progress is measured in these."""

    ssl: int
    dynamics: int
    coresets: int
    common: int

    @property
    def per_budget(self) -> int:
        return self.ssl + self.dynamics + self.coresets


def cost_of(settings: BudgetSettings, n_images: int) -> Cost:
    ssl, training = settings.semi_supervised(), settings.supervised()
    coresets = sum(training.images_seen(n_images, ratio) for ratio in settings.ratios) * len(settings.seeds)
    return Cost(
        ssl=ssl.n_steps * ssl.batch_size * (1 + 2 * ssl.unlabeled_ratio),  # a weak and a strong view of each
        dynamics=n_images * training.epochs,
        coresets=coresets * len(settings.methods),
        common=coresets + n_images * training.epochs * len(settings.seeds),
    )


def submit_budget_study(
    project: Project, settings: BudgetSettings, *, device: str = "auto", immediate: bool = False
) -> jobs.Job:
    """Queue a label-budget study; it needs a true label for every image, reference or human."""
    snapshot = open_store(project).snapshot()
    ground = ground_of(project, settings.truth)  # pseudo-labels will not do: they are what is studied
    keep_snapshot(project, snapshot)
    n = len(settings.budgets)
    return jobs.submit(
        project,
        KIND,
        settings.replace(truth=ground.truth).to_json(),
        title=f"Label-budget study, {n} budget{'s' if n != 1 else ''}",
        device=machine.places(device),
        pins={"pool": project.pool().hash, "labels": snapshot.hash},
        immediate=immediate,
    )


# --- results -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StudyRun:
    """A finished study: its trials with their ``budget``, and one entry per budget in the facts."""

    artifact: Artifact

    def trials(self) -> pd.DataFrame:
        return pd.read_parquet(self.artifact.path("trials.parquet"))

    def stages(self) -> list[Mapping[str, Any]]:
        return list(self.artifact.facts["budgets"])


def budget_folder(folder: Path, budget: float) -> Path:
    """Where a job keeps the work on one budget."""
    return folder / f"budget-{budget:g}"


def partial_study(job: jobs.Job) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """The trials and the stages that a study has done so far."""
    return read_study(job.work_folder, tuple(job.settings["budgets"]))


def read_study(folder: Path, budgets: Sequence[float]) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    tables = [_table(folder / BOOK, COMMON)]
    stages = []
    for budget in budgets:
        own = budget_folder(folder, budget)
        tables.append(_table(own / BOOK, budget))
        if (own / STAGE).is_file():
            stages.append(files.read_json(own / STAGE))
    filled = [table for table in tables if len(table)]
    return pd.concat(filled, ignore_index=True) if filled else tables[0], stages


def _table(path: Path, budget: float) -> pd.DataFrame:
    table = trial_table(TrialBook(path))
    table.insert(0, "budget", float(budget))
    return table


def budget_view(
    trials: pd.DataFrame, pruning_ratio: float, *, methods: Sequence[str] = (), budgets: Sequence[float] = ()
) -> EvaluationView:
    """The trials at one ratio, seen by budget: the columns of the view are budgets, Random is the same in each."""
    here = trials[(trials["pruning_ratio"] - pruning_ratio).abs() < 1e-6]
    common = here[here["budget"] == COMMON]
    columns = sorted({*budgets, *here.loc[here["budget"] != COMMON, "budget"]})
    own = here[here["budget"] != COMMON]
    parts = [trials[trials["method"] == FULL], own.assign(pruning_ratio=own["budget"])]
    parts += [common[common["method"] == RANDOM].assign(pruning_ratio=budget) for budget in columns]
    table = pd.concat([part for part in parts if len(part)] or [trials.head(0)])[list(COLUMNS)]
    return view_of(
        table,
        titles=titles_of([RANDOM, *methods]),
        methods=(RANDOM, *methods),
        ratios=columns,
        axis="Label budget",
        place=f"With {{}} of the pool labeled, at {percent(pruning_ratio)} pruning,",
        usual=USUAL_BUDGET,
    )
