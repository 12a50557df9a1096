"""Trials: train on one coreset, test once. What a trial is, and the book in which a job writes its results.

A job of many trials (the search, the evaluation) writes each result down the moment it is known. Killed at any point
it loses the trial in progress; started again it finds the others in the book.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from semiprune_core import files
from semiprune_core.checks import check_range
from semiprune_core.errors import WorkspaceError
from semiprune_core.settings import Settings

FULL = "full"
"""The method's name of a trial on the whole pool; its pruning ratio is 0."""
BOOK = "trials.jsonl"
"""The book's name in a job's own folder."""


@dataclass(frozen=True, kw_only=True)
class Trial(Settings):
    """One coreset, trained on once. ``seed`` sets the choice of the coreset, the initial weights and the batches.

    ``knobs`` are those of the selector that were set for it, ``score_changes`` the fields of ``ScoreSettings`` that
    differ from the project's scores.
    """

    method: str
    pruning_ratio: float
    seed: int
    knobs: dict[str, Any] = field(default_factory=dict)
    score_changes: dict[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        check_range("pruning_ratio", self.pruning_ratio, low=0, high=1, high_open=True)
        check_range("seed", self.seed, low=0)

    @property
    def key(self) -> str:
        """One text per trial: equal trials have equal keys, in any process."""
        return files.canonical_json(self.to_json())


class TrialBook:
    """Results of trials in a file of JSON lines that only grows; a line is on the disk before :meth:`add` returns.

    A last line that a crash tore is left out when the book is opened and cut off before the next one is written.
    Anybody may open a book to read it; only the job it belongs to adds to it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.results: dict[str, dict[str, Any]] = {}
        self._trials: dict[str, Trial] = {}
        self._length = 0
        self._read()

    def __len__(self) -> int:
        return len(self.results)

    def __contains__(self, trial: Trial) -> bool:
        return trial.key in self.results

    def __iter__(self) -> Iterator[tuple[Trial, dict[str, Any]]]:
        """The trials and their results, in the order they were made."""
        return ((self._trials[key], result) for key, result in self.results.items())

    def __getitem__(self, trial: Trial) -> dict[str, Any]:
        return self.results[trial.key]

    def add(self, trial: Trial, result: dict[str, Any]) -> None:
        """Write a result down; it survives a crash that comes later."""
        line = json.dumps({"trial": trial.to_json(), "result": result}, allow_nan=False).encode("ascii") + b"\n"
        with files.named_disk_errors(self.path):
            is_new = not self.path.exists()
            with open(self.path, "ab") as file:
                file.truncate(self._length)  # a torn line may stand there
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                files.sync_folder(self.path.parent)
        self._length += len(line)
        self._keep(trial, result)

    def _keep(self, trial: Trial, result: dict[str, Any]) -> None:
        self._trials[trial.key] = trial
        self.results[trial.key] = result

    def _read(self) -> None:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        lines = whole.splitlines(keepends=True)
        for number, line in enumerate(lines, start=1):
            try:
                entry = json.loads(line)
                trial, result = Trial.from_json(entry["trial"]), dict(entry["result"])
            except (ValueError, KeyError, TypeError) as error:
                if number == len(lines):  # the disk kept the end of the line and lost what stood before it
                    return
                raise WorkspaceError(
                    f"{self.path} is damaged in line {number} ({error}). Delete this run and start a new one."
                ) from error
            self._length += len(line)
            self._keep(trial, result)
