"""How far a long step of ``paper.py`` is, and how long each took, over all calls for one project."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any

from semiprune_core import files
from semiprune_core.progress import Collected
from semiprune_core.project.workspace import Project


class Said(Collected):
    """Says now and then how far a long step is."""

    def report(self, done: int, total: int, /, **facts: Any) -> None:
        if total and done * 10 // total != (done - 1) * 10 // total:
            print(f"  {done} of {total}", flush=True)


@dataclass
class Stage:
    """Adds how long a step took to those of its project, over all calls."""

    project: Project
    name: str
    started: float = field(default_factory=time.perf_counter)

    def __enter__(self) -> None:
        self.started = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        taken = (time.perf_counter() - self.started) / 60
        minutes = minutes_of(self.project)
        minutes[self.name] = round(minutes.get(self.name, 0) + taken, 2)
        files.write_json(self.project.folder / "paper_minutes.json", minutes)
        if taken > 0.02:
            print(f"{self.project.name} {self.name}: {taken:.1f} min, load {os.getloadavg()[0]:.1f}", flush=True)


def minutes_of(project: Project) -> dict[str, float]:
    path = project.folder / "paper_minutes.json"
    return dict(files.read_json(path)) if path.is_file() else {}
