"""What killed imports leave in a project, and how it is told from what a running one needs: by a lock."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from semiprune_core.jobs import locks
from semiprune_core.project.workspace import Project, Workspace

PREFIX = ".import-"
DRAFTS = ".pool.*.part"
LEASE = ".lease"
STALE_SECONDS = 3600.0
"""A folder without a lease was made a moment ago, or by an earlier version."""


@contextlib.contextmanager
def scratch_folder(project: Project) -> Iterator[Path]:
    """A folder for an import's own files, locked as long as it runs; what killed ones left goes first."""
    sweep(project)
    with tempfile.TemporaryDirectory(dir=project.folder, prefix=PREFIX) as name, locks.held(Path(name) / LEASE):
        yield Path(name)


def sweep(project: Project) -> None:
    """Remove the folders of imports that no process works on any more: their scratch, then their unfinished pools."""
    drafts = list(project.artifacts_folder.glob(DRAFTS))  # before the look at who is alive: those that begin now stay
    dead = [folder for folder in project.folder.glob(f"{PREFIX}*/") if not _is_alive(folder)]
    for folder in dead:
        shutil.rmtree(folder, ignore_errors=True)
    if not any(project.folder.glob(f"{PREFIX}*/")):
        for draft in drafts:
            shutil.rmtree(draft, ignore_errors=True)


def sweep_all(workspace: Workspace) -> None:
    """The same for every project, when the app starts."""
    for name in workspace.names():
        sweep(workspace.damaged(name))


def _is_alive(folder: Path) -> bool:
    try:
        return not locks.is_free(folder / LEASE)
    except FileNotFoundError:
        with contextlib.suppress(FileNotFoundError):
            return time.time() - folder.stat().st_mtime < STALE_SECONDS
        return False
