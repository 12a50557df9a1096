"""Migrations of a project's folder: decorated functions, run in order, each recorded when it is done.

``project.json`` carries the schema it was written with. A newer one than ours is refused, an older one is brought up
to date step by step; every step must be safe to run again if it was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from semiprune_core import files
from semiprune_core.errors import WorkspaceError

PROJECT = "project.json"
BACKUP = ".project.json.backup"
"""The same once more, for the day the first cannot be read."""
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
    try:
        config = files.read_object(folder / PROJECT, {"schema": int})
    except FileNotFoundError:
        raise WorkspaceError(f"{folder / PROJECT} is missing. Restore it from a backup.") from None
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
        config = {**files.read_json(folder / PROJECT), "schema": step}
        write_config(folder, config)
    return config


def write_config(folder: Path, config: Mapping[str, Any]) -> None:
    """Write ``project.json`` and its backup."""
    for name in (PROJECT, BACKUP):
        files.write_json(folder / name, config)


def has_its_backup(folder: Path) -> bool:
    """Whether ``project.json`` and its backup say the same, as they do when they were written."""
    try:
        return bool(files.read_json(folder / PROJECT) == files.read_json(folder / BACKUP))
    except (WorkspaceError, FileNotFoundError):
        return False


CURRENT = FIRST + len(STEPS)
