"""What a table of trials says: means, spread, the difference to Random, and one plain sentence.

Works on the trials of an evaluation alone, finished or still running. Accuracies are shares in [0, 1]; "points" are
percentage points. Every difference to Random is paired: the two trainings of one seed share their start, so only seeds
that both have are compared, and the interval is Student's over those differences. It tells how far chance in training
and drawing carries, on these test images, these labels and this scoring run; what another draw of those would bring, it
does not tell.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from semiprune_core.errors import InvalidDataError
from semiprune_core.evaluation.settings import COLUMNS, RANDOM
from semiprune_core.trials import FULL

CONFIDENCE = 0.95
USUAL_RATIO = 0.8
"""The ratio the first sentence is about, where it was run."""
RANKED_BY = (
    "Methods with different seeds at a ratio are ranked by the seeds they share; one that shares none is not ranked."
)


@dataclass(frozen=True)
class Difference:
    """A method minus Random over their ``n`` common seeds; ``half`` is half the 95% interval, None for one seed."""

    mean: float
    half: float | None
    n: int

    @property
    def verdict(self) -> str:
        """``above`` or ``below`` beyond the interval, ``unclear`` within it, ``unknown`` with one seed."""
        if self.half is None:
            return "unknown"
        if abs(self.mean) <= self.half:
            return "unclear"
        return "above" if self.mean > 0 else "below"


@dataclass(frozen=True)
class Cell:
    """One method at one ratio: its accuracies by seed, and what follows from them. ``minutes`` are of one training.

    ``spent`` are those of all of them together; what shares its images with another trial is trained once.
    """

    method: str
    pruning_ratio: float
    by_seed: Mapping[int, float]
    minutes: float
    spent: float
    n_train: int
    n_test: int
    notes: tuple[str, ...] = ()
    difference: Difference | None = None
    share_of_full: float | None = None
    """The share of the full data's mean accuracy."""

    @property
    def n(self) -> int:
        return len(self.by_seed)

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.by_seed.values())))

    @property
    def sd(self) -> float | None:
        """The sample standard deviation over seeds; None for one."""
        return float(np.std(list(self.by_seed.values()), ddof=1)) if self.n > 1 else None

    @property
    def half(self) -> float | None:
        """Half the 95% interval of the mean; None for one seed."""
        return half_interval(self.by_seed.values(), resolution=1 / self.n_test)

    @property
    def shown(self) -> float:
        """The mean in percent as it is printed."""
        return as_printed(self.mean)


def half_interval(values: Iterable[float], confidence: float = CONFIDENCE, *, resolution: float = 0.0) -> float | None:
    """Half the width of Student's interval of the mean; None for fewer than two values.

    ``resolution`` is the smallest step between two values. A deviation below it is taken for it: on few test images
    equal values come about by chance.

    >>> round(half_interval([1.0, 2.0, 3.0]), 3)
    2.484
    """
    numbers = np.asarray(list(values), dtype=float)
    if len(numbers) < 2:
        return None
    deviation = max(float(numbers.std(ddof=1)), resolution)
    return float(stdtrit(len(numbers) - 1, (1 + confidence) / 2) * deviation / math.sqrt(len(numbers)))


def paired_difference(of: Mapping[int, float], base: Mapping[int, float], n_test: int) -> Difference | None:
    """``of`` minus ``base``, seed by seed, both measured on ``n_test`` images; None where they share no seed."""
    common = sorted(of.keys() & base.keys())
    if not common:
        return None
    differences = [of[seed] - base[seed] for seed in common]
    return Difference(float(np.mean(differences)), half_interval(differences, resolution=1 / n_test), len(common))


@dataclass(frozen=True, eq=False)
class EvaluationView:
    """All cells of an evaluation. ``methods`` without the full data, in the order they were asked for, Random first.

    ``unranked`` methods are shown and never marked best: those that see labels the others do not have.
    """

    cells: Mapping[tuple[str, float], Cell]
    full: Cell | None
    methods: tuple[str, ...]
    ratios: tuple[float, ...]
    titles: Mapping[str, str] = field(default_factory=dict)
    unranked: frozenset[str] = frozenset()
    axis: str = "Pruning ratio"
    """What the columns are; a study over something else than ratios says so here and in ``place``."""
    place: str = "At {} pruning"
    usual: float = USUAL_RATIO
    tested_by: str = ""
    """The kind of test for people; empty where it is not said."""
    caveat: str = ""
    """What to keep in mind: numbers that are not those of new images, few test images."""

    def title(self, method: str) -> str:
        return self.titles.get(method, "Full data" if method == FULL else method)

    def cell(self, method: str, pruning_ratio: float) -> Cell | None:
        return self.cells.get((method, pruning_ratio))

    def row(self, method: str) -> list[Cell]:
        """The cells of a method that are there, by ratio."""
        return [self.cells[method, ratio] for ratio in self.ratios if (method, ratio) in self.cells]

    @property
    def is_empty(self) -> bool:
        return not self.cells and self.full is None

    @property
    def has_spread(self) -> bool:
        """Whether some number has a spread or an interval: several seeds."""
        return any(cell.n > 1 for cell in self.cells.values())

    @property
    def n_trials(self) -> int:
        return sum(cell.n for cell in self.cells.values()) + (self.full.n if self.full else 0)

    @property
    def minutes(self) -> float:
        """All trainings together."""
        every = [*self.cells.values(), *([self.full] if self.full else [])]
        return sum(cell.spent for cell in every)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the trials noted, each once."""
        every = [*([self.full] if self.full else []), *self.cells.values()]
        return tuple(dict.fromkeys(note for cell in every for note in cell.notes))

    def standing(self, pruning_ratio: float) -> dict[str, float]:
        """The means by which methods are ranked at a ratio: over the seeds that all of them have there.

        An evaluation that runs, was stopped or looked closer at some methods has more seeds of some than of others, and
        an easy seed is no merit. A method that shares no seed with those that have more of them is left out.
        """
        return _on_common_seeds(cell for cell in self._here(pruning_ratio) if cell.method not in self.unranked)

    def _here(self, pruning_ratio: float) -> list[Cell]:
        return [self.cells[m, pruning_ratio] for m in self.methods if (m, pruning_ratio) in self.cells]

    @property
    def has_uneven_seeds(self) -> bool:
        """Whether means that are printed at some ratio are not those that its methods are ranked by."""
        ranked = [[cell for cell in self._here(ratio) if cell.method not in self.unranked] for ratio in self.ratios]
        return any(len({frozenset(cell.by_seed) for cell in cells}) > 1 for cells in ranked)

    def marks(self, pruning_ratio: float) -> dict[str, str]:
        """``best`` and ``second`` by method at a ratio, of the ranked ones; ties share a mark, one alone gets none.

        After a tie for the first place there is still a second: the next lower number.
        """
        ranked = {method: as_printed(mean) for method, mean in self.standing(pruning_ratio).items()}
        if len(ranked) < 2:
            return {}
        places = dict(zip(sorted(set(ranked.values()), reverse=True), ("best", "second")))
        return {method: places[value] for method, value in ranked.items() if value in places}

    def usual_ratio(self) -> float | None:
        """The column to talk about first: 80% or the nearest at which something other than Random was run."""
        measured = [ratio for ratio in self.ratios if self.leader(ratio) is not None]
        candidates = [ratio for ratio in measured if self.leader(ratio) != RANDOM] or measured
        return min(candidates, key=lambda ratio: (abs(ratio - self.usual), -ratio), default=None)

    def leader(self, pruning_ratio: float) -> str | None:
        """The ranked method with the highest mean at a ratio, Random only where it is alone."""
        ranked = {method: mean for method, mean in self.standing(pruning_ratio).items() if method != RANDOM}
        here = self._here(pruning_ratio)
        others = ranked or _on_common_seeds(cell for cell in here if cell.method != RANDOM)
        candidates = others or _on_common_seeds(here)
        return max(candidates, key=candidates.__getitem__, default=None)

    def sentence(self, pruning_ratio: float | None = None, method: str | None = None) -> str:
        """What came out at a ratio (the usual one), for a method (the best one), in plain words."""
        ratio = self.usual_ratio() if pruning_ratio is None else pruning_ratio
        if ratio is None:
            return self._without_cells()
        method = method or self.leader(ratio)
        cell = self.cell(method, ratio) if method else None
        if cell is None:
            return f"{self.place.format(percent(ratio))} nothing was measured."
        words = f"{self.place.format(percent(ratio))} {self.title(cell.method)} "
        words += (
            f"keeps {share(cell.share_of_full)} of full accuracy"
            if cell.share_of_full is not None
            else f"reaches {accuracy(cell.mean)}"
        )
        return words + self._against_random(cell)

    def against(self, method: str, pruning_ratio: float) -> dict[str, Difference]:
        """Every other ranked method but Random minus ``method`` at a ratio, where the two share seeds."""
        mine, differences = self.cells[method, pruning_ratio], {}
        for other in self.methods:
            cell = self.cell(other, pruning_ratio)
            if cell is not None and other not in (method, RANDOM) and other not in self.unranked:
                differences[other] = paired_difference(cell.by_seed, mine.by_seed, mine.n_test)
        return {other: difference for other, difference in differences.items() if difference is not None}

    def rivals_sentence(self, pruning_ratio: float | None = None, method: str | None = None) -> str:
        """Which other methods are better than ``method`` (the best one) at a ratio or may be as good; else nothing."""
        ratio = self.usual_ratio() if pruning_ratio is None else pruning_ratio
        method = method or (None if ratio is None else self.leader(ratio))
        if ratio is None or method is None or method == RANDOM or (method, ratio) not in self.cells:
            return ""
        by_verdict: dict[str, list[str]] = {}
        for name, difference in self.against(method, ratio).items():
            by_verdict.setdefault(difference.verdict, []).append(self.title(name))
        sentences = []
        if "above" in by_verdict:
            sentences.append(f"Better, beyond chance: {', '.join(by_verdict['above'])}.")
        if "unclear" in by_verdict:
            sentences.append(f"Not clearly different with these seeds: {', '.join(by_verdict['unclear'])}.")
        return " ".join(sentences)

    def _without_cells(self) -> str:
        if self.full is None:
            return "No training has finished yet."
        full = f"Training on all images reaches {accuracy(self.full.mean)} ({seeds(self.full.n)})."
        return f"{full} No coreset has been trained yet."

    def _against_random(self, cell: Cell) -> str:
        if cell.method == RANDOM:
            return f" ({seeds(cell.n)}). No other method was run there."
        base, difference = self.cell(RANDOM, cell.pruning_ratio), cell.difference
        if base is None:
            return f" ({seeds(cell.n)}). Random was not run there, so it is unknown whether it does as well."
        if difference is None:
            return f" ({seeds(cell.n)}). It shares no seed with Random, so the two cannot be compared."
        size, side = points(abs(difference.mean)), "below" if difference.mean < 0 else "above"
        if difference.half is None:
            return f", {size} points {side} random, from one seed: this may be chance. Run more seeds to find out."
        spread = f"{size} ± {points(difference.half)} points"
        if difference.verdict == "unclear":
            return f", {spread} {side} random ({seeds(difference.n)}): that may be chance, the interval contains zero."
        return f", {spread} {side} random ({seeds(difference.n)})."


def as_printed(value: float) -> float:
    """In percent with one digit; ranks go by it, so that equal numbers are marked equally."""
    return round(100 * value, 1)


def _on_common_seeds(cells: Iterable[Cell]) -> dict[str, float]:
    """The mean of each method over the seeds all of them have, those with more seeds first asked.

    One that shares none of what is common to the others is left out.
    """
    asked, common = list(cells), frozenset[int]()
    ranked: list[Cell] = []
    for cell in sorted(asked, key=lambda cell: -cell.n):
        shared = common & cell.by_seed.keys() if ranked else frozenset(cell.by_seed)
        if shared:
            common, ranked = shared, [*ranked, cell]
    return {cell.method: float(np.mean([cell.by_seed[seed] for seed in sorted(common)])) for cell in ranked}


def percent(value: float) -> str:
    """A ratio as people say it: "80%", "12.5%"."""
    return f"{round(100 * value, 2):g}%"


def share(value: float) -> str:
    """A share of full accuracy; near 100% one digit more, so that 99.7% is not said to be all."""
    return f"{value:.1%}" if 0.985 <= value <= 1.015 and round(100 * value, 1) % 1 else f"{value:.0%}"


def accuracy(value: float) -> str:
    return f"{value:.1%} accuracy"


def points(value: float) -> str:
    return f"{100 * value:.1f}"


def seeds(n: int) -> str:
    return "1 seed" if n == 1 else f"{n} seeds"


def view_of(
    trials: pd.DataFrame,
    *,
    titles: Mapping[str, str] | None = None,
    unranked: Collection[str] = (),
    methods: Sequence[str] = (),
    ratios: Sequence[float] = (),
    axis: str = "Pruning ratio",
    place: str = "At {} pruning",
    usual: float = USUAL_RATIO,
    tested_by: str = "",
    caveat: str = "",
    full_is_upper: bool = True,
) -> EvaluationView:
    """Look at the trials of one evaluation, whatever part of them is there.

    ``methods`` and ``ratios`` that were asked for keep their place (and the methods their colour) before they are run.
    A trial without an accuracy (it could not be trained) leaves its note; one that stands twice counts as it was last.
    Where the full data was trained on for less than some coreset (not ``full_is_upper``), nothing is a share of it.
    """
    missing = [name for name in COLUMNS if name not in trials.columns]
    if missing:
        raise InvalidDataError(f"This is not a table of trials: it has no column {', '.join(missing)}.")
    table = trials.assign(pruning_ratio=trials["pruning_ratio"].astype(float).round(6))
    table = table.drop_duplicates(["method", "pruning_ratio", "seed"], keep="last")
    notes = {
        key: tuple(dict.fromkeys(text for text in group["note"] if isinstance(text, str) and text.strip()))
        for key, group in table.groupby(["method", "pruning_ratio"], sort=False)
    }
    measured = table[table["test_accuracy"].notna()]
    by_cell = {
        (str(method), float(ratio)): Cell(
            method=str(method),
            pruning_ratio=float(ratio),
            by_seed={
                int(seed): float(value) for seed, value in zip(group["seed"], group["test_accuracy"], strict=True)
            },
            minutes=_minutes(group["minutes"]),
            spent=float(group["minutes"].sum()),
            n_train=int(group["n_train"].iloc[-1]),
            n_test=int(group["n_test"].iloc[-1]),
            notes=notes[method, ratio],
        )
        for (method, ratio), group in measured.groupby(["method", "pruning_ratio"], sort=False)
    }
    full = next((cell for (method, _), cell in by_cell.items() if method == FULL), None)
    upper = full if full_is_upper else None
    cells = {key: _compared(cell, by_cell, upper) for key, cell in by_cell.items() if key[0] != FULL}
    order = [method for method in dict.fromkeys([*methods, *map(str, table["method"])]) if method != FULL]
    order.sort(key=lambda method: method != RANDOM)
    met = table.loc[table["method"] != FULL, "pruning_ratio"]
    columns = sorted({round(float(ratio), 6) for ratio in [*ratios, *met]} - {0.0})
    return EvaluationView(
        cells,
        full,
        tuple(order),
        tuple(columns),
        dict(titles or {}),
        frozenset(unranked),
        axis,
        place,
        usual,
        tested_by,
        caveat,
    )


def _minutes(column: pd.Series) -> float:
    """The mean of trainings that took time; a trial that shares its images with another one was not trained again."""
    minutes = column.to_numpy(float)
    return float(minutes[minutes > 0].mean()) if (minutes > 0).any() else 0.0


def _compared(cell: Cell, by_cell: Mapping[tuple[str, float], Cell], full: Cell | None) -> Cell:
    """The cell with its difference to Random and its share of full accuracy."""
    base = by_cell.get((RANDOM, cell.pruning_ratio))
    return dataclasses.replace(
        cell,
        difference=(
            paired_difference(cell.by_seed, base.by_seed, cell.n_test) if base and cell.method != RANDOM else None
        ),
        share_of_full=cell.mean / full.mean if full and full.mean > 0 else None,
    )


def summary(view: EvaluationView) -> pd.DataFrame:
    """One row per method and ratio, full data first; numbers as shares, NaN where something is not known."""
    rows = [view.full] if view.full else []
    rows += [cell for method in view.methods for cell in view.row(method)]
    return pd.DataFrame(
        [
            {
                "method": cell.method,
                "title": view.title(cell.method),
                "pruning_ratio": cell.pruning_ratio,
                "n_train": cell.n_train,
                "n_seeds": cell.n,
                "mean_accuracy": cell.mean,
                "sd": _number(cell.sd),
                "half_interval_95": _number(cell.half),
                "share_of_full": _number(cell.share_of_full),
                "difference_to_random": _number(cell.difference.mean if cell.difference else None),
                "difference_half_interval_95": _number(cell.difference.half if cell.difference else None),
                "n_common_seeds": cell.difference.n if cell.difference else 0,
                "minutes_per_training": cell.minutes,
                "tested_by": view.tested_by,
                "mark": view.marks(cell.pruning_ratio).get(cell.method, "") if cell.method != FULL else "",
            }
            for cell in rows
        ],
        columns=list(SUMMARY),
    )


SUMMARY = (
    "method",
    "title",
    "pruning_ratio",
    "n_train",
    "n_seeds",
    "mean_accuracy",
    "sd",
    "half_interval_95",
    "share_of_full",
    "difference_to_random",
    "difference_half_interval_95",
    "n_common_seeds",
    "minutes_per_training",
    "tested_by",
    "mark",
)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
