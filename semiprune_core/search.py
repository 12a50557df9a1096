"""The search: which cutoff, or which T and c_D, suits this pool at each pruning ratio, found out on pseudo-labels.

As in the paper: the pseudo-labeled pool is split 90/10, coresets are chosen from the 90% by the scores there are, a net
is trained on each and compared on the pseudo-labels of the 10%. Cutoffs are tried from 0 to r in steps of 0.1. For
DUAL with Beta sampling the score epoch T comes first, at ratio 0.3, then c_D with that T at every ratio (the paper
keeps one c_D per data set; here each ratio has its own). Random is always among the candidates. ELFS and its kin are
searched in the same way, as its paper does, on the clusters that stand in for their labels.

How a value compares with Random is judged on differences paired over seeds: the same seed trains both from the same
weights. Two or three seeds say little about their own deviation, so it is pooled over all values of a ratio; and the
best of many is ahead of Random by chance alone, so the interval is widened by the number of values (Bonferroni).

The training itself is in ``learning.search_job``; nothing here loads torch.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from semiprune_core import jobs
from semiprune_core.artifacts import Artifact
from semiprune_core.checks import check_range
from semiprune_core.errors import InvalidSettingError, MissingStepError
from semiprune_core.learning import machine
from semiprune_core.learning.presets import supervised_preset
from semiprune_core.learning.settings import SupervisedSettings
from semiprune_core.methods import METHODS
from semiprune_core.records import FloatArray, coreset_size
from semiprune_core.results import ScoreRun, TrajectoryRun, made_from
from semiprune_core.scored import Scored, labels_behind, opened_scored, scored_for, settings_of
from semiprune_core.selection.defaults import (
    PAPER_BETA,
    PAPER_RATIOS,
    Basis,
    default_knobs,
    paper_beta,
    paper_cutoff,
)
from semiprune_core.settings import Settings
from semiprune_core.trials import BOOK, Trial, TrialBook
from semiprune_core.workspace import Project

KIND = "search"
RANDOM = "random"
CUTOFF_STEP = 0.1
C_D_GRID = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
"""The paper's values for pools of its size lie between 4 and 11; small pools want less."""
PAPER_EPOCHS = (30, 50, 70)
"""T, where the run is longer than the last of them."""
EPOCHS_RATIO = 0.3
"""The ratio at which T is chosen."""
CHEAP_SHARE = 2
"""A cheap search trains for the n-th part of the epochs."""
FEWEST_EPOCHS = 3
CONFIDENCE = 0.95
"""Of the interval of a difference, all values of a ratio together."""
PAPER = "paper:"
COLUMNS = ("method", "pruning_ratio", "seed", "knob", "value", "n_epochs", "n_train", "n_test", "n_correct", "accuracy")
KNOB_WORDS = {"cutoff": "cutoff", "c_d": "c_D"}


def searched_knob(method: str) -> str | None:
    """The knob of ``method`` that a search is about; None where there is none.

    >>> [searched_knob(method) for method in ("semi_aum_cutoff", "semi_dual_beta", "elfs", "random")]
    ['cutoff', 'c_d', 'cutoff', None]
    """
    if method not in METHODS or METHODS[method].labels_from not in ("pseudo", "clusters"):
        return None
    return {"cutoff": "cutoff", "beta": "c_d"}.get(METHODS[method].selector)


def searchable_methods() -> list[str]:
    return [name for name in METHODS if searched_knob(name)]


def starts() -> list[str]:
    """The paper's data sets whose values a search may start from."""
    return [f"{PAPER}{name}" for name in PAPER_BETA]


@dataclass(frozen=True, kw_only=True)
class SearchSettings(Settings):
    """What a search is given. ``training`` is what differs from the preset, ``scores`` the artifact it chooses by:
    the project's scores, or the evidence of a baseline.

    ``cheap`` trains for half of the epochs, which speaks a little for easy images; small coresets are trained longer.
    ``start`` such as ``paper:cifar10`` tries the paper's value of that data set and its neighbours alone.
    """

    method: str = "semi_aum_cutoff"
    ratios: tuple[float, ...] = PAPER_RATIOS
    seeds: tuple[int, ...] = (0, 1)
    preset: str = "quick"
    training: dict[str, Any] = field(default_factory=dict)
    cheap: bool = True
    start: str | None = None
    validation: float = 0.1
    split_seed: int = 0
    scores: str = ""

    def check(self) -> None:
        if searched_knob(self.method) is None:
            if self.method not in METHODS:
                METHODS[self.method]  # raises, with the known names
            raise InvalidSettingError(
                f"{METHODS.title(self.method)} has nothing to search for. Choose one of "
                f"{', '.join(searchable_methods())}."
            )
        if not self.ratios or len(set(self.ratios)) != len(self.ratios):
            raise InvalidSettingError(f"ratios must be one or more different numbers, got {list(self.ratios)}.")
        for ratio in self.ratios:
            check_range("ratio", ratio, low=0, high=1, low_open=True, high_open=True)
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise InvalidSettingError(f"seeds must be one or more different numbers, got {list(self.seeds)}.")
        check_range("validation", self.validation, low=0, high=0.5, low_open=True)
        if self.start is not None:
            if not self.start.startswith(PAPER):
                raise InvalidSettingError(f"start must be {PAPER}DATASET, such as {PAPER}cifar10; got '{self.start}'.")
            paper_beta(self.start.removeprefix(PAPER))  # raises, with the known names
        self.supervised()

    def supervised(self) -> SupervisedSettings:
        """How every trial is trained, but for the batch of small coresets."""
        full = supervised_preset(self.preset, **self.training)
        return full.replace(epochs=max(FEWEST_EPOCHS, full.epochs // CHEAP_SHARE)) if self.cheap else full

    @property
    def knob(self) -> str:
        return str(searched_knob(self.method))

    @property
    def paper_set(self) -> str | None:
        return self.start.removeprefix(PAPER) if self.start else None

    @property
    def in_words(self) -> str:
        """How trials are trained, for people."""
        training = self.supervised()
        kind = "cheap search: half of the usual schedule" if self.cheap else "full schedule"
        return f"{training.epochs_at(self.ratios)} epochs of {training.net} each ({kind})"


# --- the plan ------------------------------------------------------------------------------------------------------


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
        found = []
        for seed in self.settings.seeds:
            for ratio in sorted(self.settings.ratios, reverse=True):
                found.append(Trial(method=RANDOM, pruning_ratio=ratio, seed=seed))
                found += [self._trial(ratio, seed, value, n_epochs) for value in self.values[ratio]]
        return found

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


def make_grid(settings: SearchSettings, n_images: int, n_epochs: int, window: int) -> Grid:
    """What to try for a pool of ``n_images`` whose scoring run had ``n_epochs``, with DUAL windows of ``window``."""
    paper = settings.paper_set
    if settings.knob == "cutoff":
        return Grid(settings, (), 0.0, {ratio: _cutoffs(ratio, paper) for ratio in settings.ratios})
    if paper is None:
        first = default_knobs(settings.method, EPOCHS_RATIO, Basis(n_images, n_epochs)).selector.get("c_d", C_D_GRID[0])
        return Grid(settings, epoch_candidates(n_epochs, window), first, dict.fromkeys(settings.ratios, C_D_GRID))
    scored, c_d = paper_beta(paper)
    values = tuple(sorted({max(1.0, c_d - 1), c_d, c_d + 1}))
    return Grid(settings, (max(window, min(scored, n_epochs)),), c_d, dict.fromkeys(settings.ratios, values))


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


@dataclass(frozen=True)
class Plan:
    """How much a search would do: so many trials, training on so many images, every epoch counted."""

    n_trials: int
    n_images: int
    seconds: float | None
    """None where this machine's speed is not known yet."""


def plan_search(project: Project, settings: SearchSettings, scored: Scored | None = None) -> Plan:
    scored = scored or _opened(project, settings)
    n_images = int(scored.artifact.facts["n_images"])
    trials = grid_of(settings, scored).trials()
    n_chosen_from = n_images - max(1, round(settings.validation * n_images))
    training = settings.supervised()
    total = sum(training.images_seen(n_chosen_from, trial.pruning_ratio) for trial in trials)
    speed = _known_speed(project)
    return Plan(len(trials), total, total / speed if speed else None)


def _opened(project: Project, settings: SearchSettings) -> Scored:
    return opened_scored(project, settings.scores) if settings.scores else scored_for(project, settings.method)


def grid_of(settings: SearchSettings, scored: Scored) -> Grid:
    n_images, n_epochs = int(scored.artifact.facts["n_images"]), scored.n_epochs
    assert n_epochs is not None  # scores on labels come from a dynamics run
    return make_grid(settings, n_images, n_epochs, settings_of(scored).window)


def _known_speed(project: Project) -> float | None:
    """Images per second of the last supervised training here."""
    for kind in ("dynamics", KIND):
        for job in jobs.list_jobs(project, kind):
            speed = job.status().facts.get("images_per_s")
            if speed:
                return float(speed)
    return None


# --- starting ------------------------------------------------------------------------------------------------------


def search_settings(
    project: Project,
    *,
    method: str = SearchSettings.method,
    scored: Scored | None = None,
    cheap: bool | None = None,
    preset: str | None = None,
    device: str = "auto",
    **values: Any,
) -> SearchSettings:
    """Settings for what ``method`` chooses by. Without a preset it trains as the project's dynamics run did; cheap
    unless on a GPU."""
    scored = scored or scored_for(project, method)
    training: dict[str, Any] = {}
    if preset is None:
        preset, training = _as_scored(project, scored)
    if cheap is None:
        cheap = machine.places(device) == "cpu"
    training |= values.pop("training", {})
    return SearchSettings(
        method=method, preset=preset, training=training, cheap=cheap, scores=scored.artifact.id, **values
    )


def _as_scored(project: Project, scored: Scored) -> tuple[str, dict[str, Any]]:
    """Preset and changes of the run behind the scores; those of a baseline are trained like the project's own."""
    if isinstance(scored, ScoreRun):
        said = TrajectoryRun(project.artifact(scored.trajectory_ids[0])).artifact.settings
    else:
        own = project.latest("trajectory")
        said = {} if own is None else own.settings
    return said.get("preset", "quick"), dict(said.get("training", {}))


def submit_search(
    project: Project,
    settings: SearchSettings | None = None,
    *,
    device: str = "auto",
    immediate: bool = False,
    **values: Any,
) -> jobs.Job:
    """Queue a search; the job pins what it chooses by, the pseudo-labels and the pool by content hash.

    ``values`` are those of :func:`search_settings`, where no ``settings`` are given.
    """
    settings = settings or search_settings(project, device=device, **values)
    scored, pool = opened_scored(project, settings.scores), project.pool()
    if pool.hash != scored.artifact.inputs["pool"]:
        raise MissingStepError("The pool has changed since it was scored. Repeat the dynamics run first.")
    _, n_classes = labels_behind(project, scored)
    n_left = len(pool) - round(settings.validation * len(pool))
    for ratio in settings.ratios:
        if coreset_size(n_left, ratio) < n_classes:
            raise InvalidSettingError(
                f"Pruning ratio {ratio:g} leaves {coreset_size(n_left, ratio)} images for {n_classes} classes. "
                "Search at smaller ratios."
            )
    pins = {"scores": scored.artifact.hash, "pool": pool.hash}
    if isinstance(scored, ScoreRun):
        pins["pseudo"] = made_from(project, scored.artifact, "pseudo").hash
    return jobs.submit(
        project,
        KIND,
        settings.to_json(),
        title=f"Search for {METHODS.title(settings.method)}",
        device=machine.places(device),
        pins=pins,
        immediate=immediate,
    )


# --- results -------------------------------------------------------------------------------------------------------


def trial_table(found: Iterable[tuple[Trial, Mapping[str, Any]]]) -> pd.DataFrame:
    """One row per trial, with the columns COLUMNS; ``knob`` and ``value`` are empty for Random."""
    rows = []
    for trial, result in found:
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
            }
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def partial_search(job: jobs.Job) -> pd.DataFrame:
    """The trials that a running or stopped search has finished so far."""
    return trial_table(TrialBook(job.work_folder / BOOK))


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


@dataclass(frozen=True)
class Best:
    """The best value at one ratio, and how it compares with Random; accuracies in [0, 1] on held-out pseudo-labels.

    ``spread`` and ``random_spread`` are standard deviations over the seeds, 0 for one. ``difference`` is the mean over
    the seeds of value minus Random, ``difference_half`` half its 95% interval, which holds for the best of the
    ``n_tried`` values that were compared. ``verdict`` is "better" or "worse" beyond that interval, "unclear" within it,
    and "unknown" for one seed, which has no interval.
    """

    pruning_ratio: float
    knob: str
    value: float
    n_epochs: int | None
    n_seeds: int
    n_test: int
    mean: float
    spread: float
    random_mean: float
    random_spread: float
    difference: float
    difference_half: float | None
    n_tried: int
    verdict: str

    @property
    def knobs(self) -> dict[str, Any]:
        """As fields of a ``CoresetRequest``."""
        return {self.knob: self.value, **({} if self.n_epochs is None else {"n_epochs": self.n_epochs})}

    @property
    def value_words(self) -> str:
        said = f"{KNOB_WORDS[self.knob]} {self.value:g}"
        return said if self.n_epochs is None else f"{said}, T {self.n_epochs}"

    @property
    def sentence(self) -> str:
        """The verdict for people, differences in percentage points."""
        side = "below" if self.difference < 0 else "above"
        if self.difference_half is None:
            size = f"{100 * abs(self.difference):.1f} points"
            return f"{self.value_words} is {size} {side} Random; one seed cannot tell chance."
        by = f"{100 * abs(self.difference):.1f} ± {100 * self.difference_half:.1f} points"
        if self.verdict == "better":
            return f"{self.value_words} beats Random by {by}."
        if self.verdict == "worse":
            return f"Random is better: even {self.value_words} is {by} below it."
        tried = "the only value" if self.n_tried == 1 else f"the best of {self.n_tried}"
        return (
            f"{self.value_words}, {tried}, is {by} {side} Random: that may be chance, the interval contains zero. It "
            "is the default, and Random may do as well."
        )


def best_values(table: pd.DataFrame, n_epochs: int | None) -> list[Best]:
    """The best value of every ratio in a complete ``table``, ratios rising; of equal means the smaller value.

    Where T was sought its trials count among the values that were tried.
    """
    found = []
    length = n_epochs or 0
    for ratio, rows in table[table["method"] != RANDOM].groupby("pruning_ratio"):
        by_random = table[(table["method"] == RANDOM) & (table["pruning_ratio"] == ratio)].set_index("seed")["accuracy"]
        tried = rows.pivot_table(index=["n_epochs", "value"], columns="seed", values="accuracy").dropna()
        if by_random.empty or length not in tried.index.get_level_values("n_epochs"):
            continue
        by_random = by_random.reindex(tried.columns)
        by_value = tried.loc[length]
        value = float(by_value.mean(axis=1).idxmax())
        difference = float((by_value.loc[value] - by_random).mean())
        n_test = int(rows["n_test"].iloc[0])
        half = _half_of_best(tried.to_numpy(), by_random.to_numpy(), resolution=1 / n_test)
        found.append(
            Best(
                pruning_ratio=float(ratio),
                knob=str(rows["knob"].iloc[0]),
                value=value,
                n_epochs=n_epochs,
                n_seeds=by_value.shape[1],
                n_test=n_test,
                mean=float(by_value.loc[value].mean()),
                spread=_deviation(by_value.loc[value]),
                random_mean=float(by_random.mean()),
                random_spread=_deviation(by_random),
                difference=difference,
                difference_half=half,
                n_tried=len(tried),
                verdict=_verdict(difference, half),
            )
        )
    return found


def _deviation(values: pd.Series) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _half_of_best(tried: FloatArray, by_random: FloatArray, *, resolution: float) -> float | None:
    """Half the interval of the best value's mean difference to Random; None for one seed.

    ``tried`` (values, seeds) and ``by_random`` (seeds,) are accuracies, measured in steps of ``resolution``. Student's
    interval with the pooled deviation of the differences, Bonferroni's correction for picking the best. All differences
    share Random's few trainings, which by luck may waver little: the deviation is not taken for less than that of two
    trainings that waver like all others here, once what is common to a seed is taken out.
    """
    n_values, n_seeds = tried.shape
    if n_seeds < 2:
        return None
    freedom = n_values * (n_seeds - 1)
    differences = (tried - by_random).var(axis=1, ddof=1).mean()
    every = np.vstack([tried, by_random])
    left = every - every.mean(axis=1, keepdims=True) - every.mean(axis=0) + every.mean()
    deviation = max(math.sqrt(max(differences, 2 * (left**2).sum() / freedom)), resolution)
    return float(stats.t.ppf(1 - (1 - CONFIDENCE) / (2 * n_values), freedom) * deviation / math.sqrt(n_seeds))


def _verdict(difference: float, half: float | None) -> str:
    if half is None:
        return "unknown"
    return "better" if difference > half else "worse" if difference < -half else "unclear"


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
    found = []
    for ratio, rows in mine.groupby("pruning_ratio"):
        by_random = chance.loc[chance["pruning_ratio"] == ratio, "accuracy"]
        points = tuple(
            (float(value), float(part.mean()), _deviation(part)) for value, part in rows.groupby("value")["accuracy"]
        )
        random = None if by_random.empty else (float(by_random.mean()), _deviation(by_random))
        if random is not None or len(points) > 1:
            found.append(Curve(float(ratio), points, random))
    return found


def epochs_tried(table: pd.DataFrame) -> dict[int, float]:
    """The mean accuracy of each T that was compared; empty where there was one T or none."""
    mine = table[(table["method"] != RANDOM) & (table["n_epochs"] > 0) & (table["pruning_ratio"] == EPOCHS_RATIO)]
    if mine["n_epochs"].nunique() < 2:
        return {}
    shared = mine.groupby("value")["n_epochs"].nunique().idxmax()  # the c_D that all of them were tried with
    means = mine[mine["value"] == shared].groupby("n_epochs")["accuracy"].mean()
    return {int(n_epochs): float(mean) for n_epochs, mean in means.items()}


@dataclass(frozen=True, eq=False)
class SearchRun:
    """A finished search."""

    artifact: Artifact

    @property
    def settings(self) -> SearchSettings:
        return SearchSettings.from_json(self.artifact.settings)

    @property
    def best(self) -> list[Best]:
        """As it was kept; a search from before intervals is judged anew by its trials."""
        kept = self.artifact.facts["best"]
        if any("difference_half" not in values for values in kept):
            return best_values(self.trials(), kept[0]["n_epochs"])
        return [Best(**values) for values in kept]

    def trials(self) -> pd.DataFrame:
        return pd.read_parquet(self.artifact.path("trials.parquet"))


def write_search(folder: Path, table: pd.DataFrame, best: list[Best]) -> dict[str, Any]:
    """Write the files of a ``search`` artifact; returns its facts."""
    table.to_parquet(folder / "trials.parquet", index=False)
    return {"best": [dataclasses.asdict(one) for one in best], "n_trials": len(table)}
