"""What a coreset saves, and what it costs: labels, hours, training time and accuracy, each with where it is from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from semiprune_core.checks import check_range
from semiprune_core.evaluation.runs import Evaluation, finished
from semiprune_core.evaluation.view import Cell, EvaluationView
from semiprune_core.labeling import has_store, open_store
from semiprune_core.labeling.progress_report import LabelingTime, labeling_time
from semiprune_core.project.workspace import Project

RATES = "rates"
"""In ``project.json``: what the team's hours cost."""
MOST = 1e9
MOST_VIEWS = 32


@dataclass(frozen=True)
class Rates:
    """What people and machines cost an hour, in the team's own ``currency``; and how long a label takes where the
    browser has not measured it. Zero is not known."""

    label_hour: float = 0.0
    training_hour: float = 0.0
    seconds_per_label: float = 0.0
    currency: str = ""

    def __post_init__(self) -> None:
        for name in ("label_hour", "training_hour", "seconds_per_label"):
            check_range(name, getattr(self, name), low=0, high=MOST)


def rates_of(project: Project) -> Rates:
    """What was typed in for this project; nothing is known by itself."""
    kept: Mapping[str, Any] = project.config.get(RATES) or {}
    return Rates(**{name: value for name, value in kept.items() if name in Rates.__dataclass_fields__})


def keep_rates(project: Project, rates: Rates) -> None:
    """Keep the rates with the project, for its pages and its report."""
    project.update(**{RATES: asdict(rates)})


@dataclass(frozen=True)
class Gain:
    """A coreset of ``n_kept`` of ``n_pool`` images, against labeling and training on all of them.

    ``n_labeled`` images have a label of a person, ``n_kept_labeled`` of them in the coreset. ``coreset``, ``random``
    and ``full`` are accuracies of an evaluation at this ratio; None where it was not measured.
    """

    n_pool: int
    n_kept: int
    n_labeled: int
    n_kept_labeled: int
    rates: Rates
    time: LabelingTime
    coreset: Cell | None = None
    random: Cell | None = None
    full: Cell | None = None

    @property
    def labels_needed(self) -> int:
        """All labels that people give when the whole coreset is labeled, those that led to it included."""
        return self.n_labeled + self.n_kept - self.n_kept_labeled

    @property
    def labels_saved(self) -> int:
        return self.n_pool - self.labels_needed

    @property
    def seconds_per_label(self) -> float | None:
        """As the browser measured it, else as typed in."""
        return self.time.seconds_per_label or self.rates.seconds_per_label or None

    @property
    def hours_saved(self) -> float | None:
        each = self.seconds_per_label
        return None if each is None else self.labels_saved * each / 3600

    @property
    def minutes(self) -> tuple[float, float] | None:
        """One training on the coreset and one on everything, as the evaluation measured them."""
        if self.coreset is None or self.full is None or not (self.coreset.minutes and self.full.minutes):
            return None
        return self.coreset.minutes, self.full.minutes

    @property
    def money_saved(self) -> float | None:
        """Labels and one training at the team's own rates; None where no rate is known."""
        parts = []
        if self.rates.label_hour and self.hours_saved is not None:
            parts.append(self.rates.label_hour * self.hours_saved)
        if self.rates.training_hour and self.minutes is not None:
            coreset, full = self.minutes
            parts.append(self.rates.training_hour * (full - coreset) / 60)
        return sum(parts) if parts else None


def gain_of(
    project: Project, *, method: str, pruning_ratio: float, n_kept: int, n_kept_labeled: int, n_labeled: int
) -> Gain:
    """The gain of a coreset, whether it is built or only looked at; accuracy from the newest evaluation that has it."""
    cells = _measured(finished(project), method, pruning_ratio)
    time = labeling_time(open_store(project)) if has_store(project) else LabelingTime(0, 0.0)
    return Gain(len(project.pool()), n_kept, n_labeled, n_kept_labeled, rates_of(project), time, **cells)


def _measured(evaluations: list[Evaluation], method: str, pruning_ratio: float) -> dict[str, Cell | None]:
    ratio = round(pruning_ratio, 6)
    for evaluation in evaluations:
        if evaluation.truth == "pseudo":  # what relabeling would bring is the question here
            continue
        view = _seen(evaluation)
        if (cell := view.cell(method, ratio)) is not None:
            return {"coreset": cell, "random": view.cell("random", ratio), "full": view.full}
    return {}


_views: dict[str, EvaluationView] = {}
"""By the hash of a finished evaluation: the picture follows a slider."""


def _seen(evaluation: Evaluation) -> EvaluationView:
    assert evaluation.artifact is not None
    if evaluation.artifact.hash not in _views:
        if len(_views) >= MOST_VIEWS:
            _views.clear()
        _views[evaluation.artifact.hash] = evaluation.view()
    return _views[evaluation.artifact.hash]
