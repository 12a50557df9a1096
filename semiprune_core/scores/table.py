"""All scores of a trajectory in one pass, without loading it whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiprune_core.checks import check_range
from semiprune_core.errors import MissingStepError
from semiprune_core.knobs import Knob, knobs_of
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import BoolArray, Evidence, FloatArray, IntArray, Trajectory
from semiprune_core.scores.base import SCORES
from semiprune_core.settings import check_names

BLOCK = 1 << 15  # images per block: 128 KB of float32 per row and read, 85 MB for 200 epochs


def score_settings_of(score: str) -> dict[str, Knob]:
    """The settings of one score by name, each with the knob it turns.

    >>> {setting: knob.name for setting, knob in score_settings_of("dual").items()}
    {'dual_epochs': 'n_epochs', 'window': 'window', 'gamma': 'gamma'}
    """
    return {knob.setting or f"{score}_{knob.name}": knob for knob in knobs_of(SCORES[score]).values()}


def score_knobs() -> dict[str, Knob]:
    """The settings of all scores by name, in the order of the registry."""
    found: dict[str, Knob] = {}
    for score in SCORES:
        for setting, knob in score_settings_of(score).items():
            if found.setdefault(setting, knob) != knob:
                raise ValueError(f"The setting '{setting}' of the score '{score}' is another one elsewhere. Rename it.")
    return found


class ScoreSettings(Mapping[str, Any]):
    """What the scores need to know: a value for each setting that a score declares, its default where none is given.

    >>> settings = ScoreSettings(dual_epochs=30)
    >>> settings["dual_epochs"], settings["window"]
    (30, 10)
    """

    def __init__(self, **given: Any) -> None:
        known = score_knobs()
        check_names(given, known)
        for name, value in given.items():
            known[name].check(value, name)
        self._values = {name: given.get(name, knob.default) for name, knob in known.items()}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._values.items())))

    def __repr__(self) -> str:
        return f"ScoreSettings({', '.join(f'{name}={value!r}' for name, value in self.items())})"

    def to_json(self) -> dict[str, Any]:
        return dict(self._values)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ScoreSettings:
        """As they were kept; what a score had to know that is no longer there is passed over."""
        known = score_knobs()
        return cls(**{name: value for name, value in values.items() if name in known})

    def replace(self, **changes: Any) -> ScoreSettings:
        return ScoreSettings(**{**self._values, **changes})

    def knobs(self, score: str) -> dict[str, Any]:
        """The keyword arguments of one score.

        >>> ScoreSettings(dual_epochs=30).knobs("dual")
        {'n_epochs': 30, 'window': 10, 'gamma': 1.0}
        """
        return {knob.name: self[setting] for setting, knob in score_settings_of(score).items()}


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


def usual_settings(n_epochs: int) -> ScoreSettings:
    """The defaults, with a window that fits into a run of ``n_epochs``.

    >>> usual_settings(200)["window"], usual_settings(4)["window"]
    (10, 4)
    """
    settings = ScoreSettings()
    return settings.replace(window=min(settings["window"], max(n_epochs, 2)))


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
    settings = settings or usual_settings(trajectory.n_epochs)
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
