"""Migrations of a project's folder: decorated functions, run in order, each recorded when it is done.

``project.json`` carries the schema it was written with. A newer one than ours is refused, an older one is brought up
to date step by step; every step must be safe to run again if it was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from semiprune_core import files
from semiprune_core.errors import WorkspaceError

STEPS: dict[int, Callable[[Path], None]] = {}
FIRST = 1


def migration(to: int) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    """Register the step that brings a project folder from schema ``to - 1`` to ``to``."""

    def add(step: Callable[[Path], None]) -> Callable[[Path], None]:
        if to != FIRST + len(STEPS) + 1:
            raise ValueError(f"Migration to schema {to} is out of order.")
        STEPS[to] = step
        return step

    return add


def migrate(folder: Path) -> dict[str, Any]:
    """Bring ``folder`` to the current schema; returns its ``project.json``."""
    config = files.read_json(folder / "project.json")
    if not isinstance(config, dict) or not isinstance(config.get("schema"), int):
        raise WorkspaceError(f"{folder / 'project.json'} is damaged: it names no schema. Restore it from a backup.")
    schema = config["schema"]
    current = FIRST + len(STEPS)
    if schema > current:
        raise WorkspaceError(
            f"Project '{folder.name}' was written by a newer SemiPrune Studio "
            f"(schema {schema}, this one knows {current}). "
            "Update SemiPrune Studio; the project was not touched.",
            code="NEWER_SCHEMA",
        )
    for step in range(schema + 1, current + 1):
        STEPS[step](folder)
        config = {**files.read_json(folder / "project.json"), "schema": step}
        files.write_json(folder / "project.json", config)
    return config


CURRENT = FIRST + len(STEPS)
