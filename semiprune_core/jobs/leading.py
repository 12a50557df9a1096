"""Jobs that lead others through several steps, and remember in a file how far they have come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from semiprune_core import files
from semiprune_core.jobs.context import JobContext

RECORD = "steps.json"
PARTS = 1000
"""Units of progress per step."""


class Lead:
    """The steps of a leading job. ``record``: step -> {job, artifact, notes ...}, as far as it has come.

    What belongs to a step is written down before the job goes on, so that after a stop, a crash or a failure it takes
    up the same jobs, and what is made is not made again.
    """

    def __init__(self, context: JobContext, steps: Sequence[str]) -> None:
        self.context, self.steps = context, tuple(steps)
        path = context.folder / RECORD
        self.record: dict[str, dict[str, Any]] = files.read_json(path) if path.is_file() else {}
        self.number = 0

    @property
    def step(self) -> str:
        return self.steps[self.number]

    def begin(self, step: str) -> dict[str, Any]:
        """Go on to ``step``; returns its record."""
        self.context.check_stop()
        self.number = self.steps.index(step)
        return self.record.setdefault(step, {})

    def tell(self, share: float, **facts: Any) -> None:
        """``share`` of the present step is done."""
        done = PARTS * self.number + round(PARTS * share)
        self.context.report(done, PARTS * len(self.steps), step=self.step, **facts)

    def note(self, words: str) -> None:
        """A sentence that belongs to the present step's result."""
        self.context.log.warning(words)
        self.record[self.step].setdefault("notes", []).append(words)
        self.tell(0.0, note=words)

    def write(self) -> None:
        self.context.folder.mkdir(parents=True, exist_ok=True)
        files.write_json(self.context.folder / RECORD, self.record)
