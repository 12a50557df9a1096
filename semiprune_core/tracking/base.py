"""What a tracker is: something opened for a run with an address, and told points, files and the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from semiprune_core.registry import Registry


@dataclass(frozen=True)
class TrackedRun:
    """A run as trackers see it; ``project_folder`` is where one that writes files may make its own folder."""

    project: str
    project_folder: Path
    id: str
    title: str
    kind: str
    settings: Mapping[str, Any]

    def flat_settings(self) -> dict[str, str]:
        """All settings in one level, ``{"ssl.lr": "0.05"}``.

        >>> TrackedRun("p", Path(), "ssl-1", "", "ssl", {"seed": 0, "ssl": {"lr": 0.05, "options": {}}}).flat_settings()
        {'seed': '0', 'ssl.lr': '0.05'}
        """
        return _flat("", self.settings)


def _flat(prefix: str, values: Mapping[str, Any]) -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in values.items():
        flat |= _flat(f"{prefix}{name}.", value) if isinstance(value, Mapping) else {f"{prefix}{name}": str(value)}
    return flat


@dataclass(frozen=True)
class Point:
    """Numbers by name at a ``step`` of the run, told at ``time`` (seconds since 1970)."""

    step: int
    time: float
    values: Mapping[str, float]


class Tracker(Protocol):
    """One run in one tracker; every call happens in one thread, and may take its time or raise."""

    def points(self, points: Sequence[Point]) -> None:
        """Numbers, in the order of the run."""

    def file(self, path: Path) -> None:
        """A file that belongs to the run: the manifest in the folder of what it made."""

    def end(self, state: str) -> None:
        """The run is ``done``, ``failed`` or ``stopped``; everything must be written now."""


TRACKERS: Registry[Callable[[TrackedRun, str], Tracker]] = Registry("tracker", required=("title", "needs", "address"))
"""A function of a run and an address. ``needs`` is the module it imports, ``address`` an example or "" for none."""
