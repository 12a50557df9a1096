"""Keeping the workspace tidy: removing whole projects."""

from __future__ import annotations

import os
import secrets
import shutil

from semiprune_core.errors import WorkspaceError
from semiprune_core.jobs import list_jobs, states
from semiprune_core.labeling import forget_project
from semiprune_core.workspace import Workspace


def delete_project(workspace: Workspace, name: str) -> None:
    """Remove a project's labels and its folder with everything in it; refused while one of its jobs is under way.

    The labels go first: a project made later under the same name must not find them.
    """
    project = workspace.project(name)
    if any(job.status().state not in states.OVER for job in list_jobs(project)):
        raise WorkspaceError(f"A job of '{name}' is under way. Stop it first, then delete.", code="PROJECT_BUSY")
    forget_project(project)
    trash = workspace.root / f".deleted-{name}-{secrets.token_hex(4)}"
    os.rename(project.folder, trash)
    shutil.rmtree(trash, ignore_errors=True)
