"""The artifact ``search``: what a search was given, the trials it made, and the best value it found at each ratio.

How a value compares with Random is judged on differences paired over seeds: the same seed trains both from the same
weights. Two or three seeds say little about their own deviation, so it is pooled over all values of a ratio; and the
best of many is ahead of Random by chance alone, so the interval is widened by the number of values (Bonferroni).
All coresets are compared on the same images, a tenth of the pool: which images these are is chance too, and counts
(:mod:`semiprune_core.results.lead`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from semiprune_core.checks import check_choice, check_range
from semiprune_core.errors import InvalidSettingError
from semiprune_core.learning.presets import FINETUNED_NET, supervised_preset
from semiprune_core.learning.settings import SupervisedSettings
from semiprune_core.methods import METHODS
from semiprune_core.project.artifacts import Artifact
from semiprune_core.results.lead import Waver, half_interval, image_waver, seed_waver, unpacked
from semiprune_core.selection.defaults import (
    PAPER_BETA,
    PAPER_RATIOS,
    paper_beta,
)
from semiprune_core.settings import Settings

KIND = "search"
RANDOM = "random"
CUTOFF_STEP = 0.1
CHEAP_SHARE = 2
"""A cheap search trains for the n-th part of the epochs."""
FEWEST_EPOCHS = 3
OVER = (
    "Spreads and intervals are over coresets and trainings alone: labels, pseudo-labels, scores and test images are "
    "those of one draw."
)
"""What an interval of an evaluation leaves out; said wherever one is shown."""
OVER_SEARCH = (
    "The interval counts coresets, trainings and the images compared on; labels, pseudo-labels and scores are those of "
    "one draw."
)
"""The same of a search."""
PAPER = "paper:"
PROBE, FINETUNE, SCRATCH = TESTS = ("probe", "finetune", "scratch")
"""What a trial may be."""
COLUMNS = (
    *("method", "pruning_ratio", "seed", "knob", "value", "n_epochs", "n_train", "n_test", "n_correct", "accuracy"),
    "right",
)
"""Of a trial; ``right`` (``lead.packed``) says for each compared image whether it was right; nothing where not kept."""
COMPARED = "compared.npy"
"""The ids of the images that a search compared on."""
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
    the project's scores, or the evidence of a baseline. ``test`` says what a trial is: a probe on features, which needs
    no training, or a net, which begins with an encoder's weights or from scratch.

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
    test: str = SCRATCH

    def check(self) -> None:
        check_choice("test", self.test, TESTS)
        if searched_knob(self.method) is None:
            if self.method not in METHODS:
                METHODS[self.method]  # raises, with the known names
            raise InvalidSettingError(
                f"{METHODS.title(self.method)} has nothing to search for. Choose one of "
                f"{', '.join(searchable_methods())}."
            )
        if not self.ratios or len(set(self.ratios)) != len(self.ratios):
            raise InvalidSettingError(f"ratios must list one or more numbers, each once; got {list(self.ratios)}.")
        for ratio in self.ratios:
            check_range("ratio", ratio, low=0, high=1, low_open=True, high_open=True)
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise InvalidSettingError(f"seeds must list one or more numbers, each once; got {list(self.seeds)}.")
        check_range("validation", self.validation, low=0, high=0.5, low_open=True)
        if self.start is not None:
            if not self.start.startswith(PAPER):
                raise InvalidSettingError(f"start must be {PAPER}DATASET, such as {PAPER}cifar10; got '{self.start}'.")
            paper_beta(self.start.removeprefix(PAPER))  # raises, with the known names
        self.supervised()

    def supervised(self) -> SupervisedSettings:
        """How every trial is trained, but for the batch of small coresets."""
        base = FINETUNED_NET if self.test == FINETUNE else supervised_preset(self.preset)
        full = base.replace(**self.training)
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
        if self.test == PROBE:
            return "a linear probe on pretrained features each"
        training = self.supervised()
        kind = "cheap search: half the usual schedule" if self.cheap else "full schedule"
        net = "a fine-tuned encoder" if self.test == FINETUNE else training.net
        return f"{training.epochs_at(self.ratios)} epochs of {net} each ({kind})"


@dataclass(frozen=True)
class BestValue:
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
    def is_used(self) -> bool:
        """Whether coresets are built with it: not where its own interval says that it may be chance, or harm."""
        return self.verdict not in ("unclear", "worse")

    @property
    def value_words(self) -> str:
        words = f"{KNOB_WORDS[self.knob]} {self.value:g}"
        return words if self.n_epochs is None else f"{words}, T {self.n_epochs}"

    @property
    def sentence(self) -> str:
        """The verdict for people, differences in percentage points."""
        side = "below" if self.difference < 0 else "above"
        if self.difference_half is None:
            size = f"{100 * abs(self.difference):.1f} points"
            return f"{self.value_words} is {size} {side} Random; with one seed, this may be chance."
        by = f"{100 * abs(self.difference):.1f} ± {100 * self.difference_half:.1f} points"
        if self.verdict == "better":
            return f"{self.value_words} beats Random by {by}."
        if self.verdict == "worse":
            return f"Random is better: even {self.value_words} is {by} below it. The starting value stays."
        tried = "the only value" if self.n_tried == 1 else f"the best of {self.n_tried}"
        return (
            f"{self.value_words}, {tried}, is {by} {side} Random: that may be chance, the interval contains zero, so "
            "the starting value stays."
        )


def best_values(table: pd.DataFrame, n_epochs: int | None) -> list[BestValue]:
    """The best value of every ratio in a complete ``table``, ratios rising; of equal means the smaller value.

    Where T was sought its trials count among the values that were tried.
    """
    best = []
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
        half = None
        if len(tried.columns) > 1:
            wavers = [seed_waver(tried.to_numpy(), by_random.to_numpy(), resolution=1 / n_test)]
            wavers += _by_image(table, rows[(rows["n_epochs"] == length) & (rows["value"] == value)], n_test)
            half = half_interval(wavers, n_compared=len(tried))
        best.append(
            BestValue(
                pruning_ratio=float(ratio),
                knob=str(rows["knob"].iloc[0]),
                value=value,
                n_epochs=n_epochs,
                n_seeds=by_value.shape[1],
                n_test=n_test,
                mean=float(by_value.loc[value].mean()),
                spread=deviation(by_value.loc[value]),
                random_mean=float(by_random.mean()),
                random_spread=deviation(by_random),
                difference=difference,
                difference_half=half,
                n_tried=len(tried),
                verdict=_verdict(difference, half),
            )
        )
    return best


def deviation(values: pd.Series) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _by_image(table: pd.DataFrame, rows: pd.DataFrame, n_test: int) -> list[Waver]:
    """How the lead of the value in ``rows`` over Random wavers over the compared images; nothing where the answers of
    single images were not kept, as in searches of earlier versions."""
    ratio = rows["pruning_ratio"].iloc[0]
    by_random = table[(table["method"] == RANDOM) & (table["pruning_ratio"] == ratio)].set_index("seed")["right"]
    pairs = [(right, by_random.get(seed)) for seed, right in zip(rows["seed"], rows["right"], strict=True)]
    if not all(isinstance(text, str) for pair in pairs for text in pair):
        return []
    leads = [unpacked(mine, n_test).astype(float) - unpacked(other, n_test) for mine, other in pairs]
    return [image_waver(np.array(leads))]


def _verdict(difference: float, half: float | None) -> str:
    if half is None:
        return "unknown"
    return "better" if difference > half else "worse" if difference < -half else "unclear"


@dataclass(frozen=True, eq=False)
class SearchRun:
    """A finished search."""

    artifact: Artifact

    @property
    def settings(self) -> SearchSettings:
        return SearchSettings.from_json(self.artifact.settings)

    @property
    def best(self) -> list[BestValue]:
        """As it was kept; a search from before intervals is judged anew by its trials."""
        stored = self.artifact.facts["best"]
        if any("difference_half" not in values for values in stored):
            return best_values(self.trials(), stored[0]["n_epochs"])
        return [BestValue(**values) for values in stored]

    def trials(self) -> pd.DataFrame:
        return pd.read_parquet(self.artifact.path("trials.parquet"))

    def compared_ids(self) -> np.ndarray | None:
        """(n,) uint64: the images that values were compared on; None where the search is older than this file."""
        path = self.artifact.path(COMPARED)
        return np.load(path, allow_pickle=False) if path.is_file() else None


def write_search(
    folder: Path, table: pd.DataFrame, best: list[BestValue], compared_ids: np.ndarray | None = None
) -> dict[str, Any]:
    """Write the files of a ``search`` artifact; returns its facts. ``compared_ids`` are the images it compared on."""
    table.to_parquet(folder / "trials.parquet", index=False)
    if compared_ids is not None:
        np.save(folder / COMPARED, compared_ids, allow_pickle=False)
    return {"best": [dataclasses.asdict(value) for value in best], "n_trials": len(table)}
