"""A new project whose images are on their way."""

from __future__ import annotations

import shutil

from semiprune_core import jobs
from semiprune_core.importing.allowing import place_of
from semiprune_core.importing.run import ImportSettings
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.project import rights
from semiprune_core.project.workspace import Project, Workspace


def begin_import(project: Project, settings: ImportSettings, *, title: str) -> None:
    """Queue an import into a project."""
    _check_place(project.workspace, settings)
    jobs.submit(project, "import", settings.to_json(), title=title)


def _check_place(workspace: Workspace, settings: ImportSettings) -> None:
    """A job reads what the server may read: so whoever queues one must be allowed to read that place."""
    place = place_of(SourceSpec.from_json(settings.source))
    if rights.acting() is not None and place is not None:
        workspace.guard.resolve(place)


def begin_project(workspace: Workspace, title: str, settings: ImportSettings, *, name: str | None = None) -> Project:
    """Make a project and queue its import; where that fails, on a full disk say, no project is left in the way."""
    _check_place(workspace, settings)
    project = workspace.create(title, name=name)
    try:
        begin_import(project, settings, title=f"Importing {title}")
    except BaseException:
        shutil.rmtree(project.folder, ignore_errors=True)
        raise
    return project
