"""A new project whose images are on their way."""

from __future__ import annotations

import shutil

from semiprune_core import jobs
from semiprune_core.importing.run import ImportSettings
from semiprune_core.project.workspace import Project, Workspace


def begin_project(workspace: Workspace, title: str, settings: ImportSettings, *, name: str | None = None) -> Project:
    """Make a project and queue its import; where that fails, on a full disk say, no project is left in the way."""
    project = workspace.create(title, name=name)
    try:
        jobs.submit(project, "import", settings.to_json(), title=f"Importing {title}")
    except BaseException:
        shutil.rmtree(project.folder, ignore_errors=True)
        raise
    return project
