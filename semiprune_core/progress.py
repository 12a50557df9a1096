"""How long work tells where it is and learns that it should stop.

Every long function takes a ``progress``. It calls :meth:`Progress.report` often (it is cheap) and asks
:meth:`Progress.should_stop` between batches; when that says yes it saves what it needs and raises :class:`Stopped`.
Jobs write the reports to disk, the command line draws them, tests collect them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class Stopped(Exception):  # noqa: N818 - an outcome, not an error
    """The work was asked to stop and did, leaving everything needed to go on."""


class Progress(Protocol):
    def report(self, done: int, total: int, /, **facts: Any) -> None:
        """``done`` of ``total`` units are finished; facts are JSON values such as ``loss=0.31, unit="images"``."""

    def should_stop(self) -> bool:
        """Whether somebody asked for a stop."""


class Silent:
    """A progress for callers that do not watch and never stop anything."""

    def report(self, done: int, total: int, /, **facts: Any) -> None:
        """Nobody is told."""

    def should_stop(self) -> bool:
        return False


@dataclass(frozen=True)
class InnerProgress:
    """A progress inside a larger one: it hands reports on, and the wish to stop back."""

    whole: Progress

    def report(self, done: int, total: int, /, **facts: Any) -> None:
        self.whole.report(done, total, **facts)

    def should_stop(self) -> bool:
        return self.whole.should_stop()


@dataclass(frozen=True)
class PartProgress(InnerProgress):
    """The progress of one part: ``cost`` of the ``total`` units of the whole, after ``before`` of them.

    Of what the part tells only ``passed_on`` goes further, and ``facts`` with it.
    """

    before: int
    cost: int
    total: int
    facts: Mapping[str, Any]
    passed_on: tuple[str, ...] = ("loss", "images_per_s")

    def report(self, done: int, total: int, /, **facts: Any) -> None:
        told: dict[str, Any] = {name: facts[name] for name in self.passed_on if name in facts}
        self.whole.report(self.before + self.cost * done // max(total, 1), self.total, **{**told, **self.facts})


@dataclass
class Collected:
    """A progress that keeps what it was told; ``stop_after`` asks for a stop once that many units are done."""

    stop_after: int | None = None
    reports: list[dict[str, Any]] = field(default_factory=list)

    def report(self, done: int, total: int, /, **facts: Any) -> None:
        self.reports.append({"done": done, "total": total, **facts})

    def should_stop(self) -> bool:
        return self.stop_after is not None and bool(self.reports) and self.reports[-1]["done"] >= self.stop_after
