"""Files on their way out, streamed from the disk under their own names."""

from __future__ import annotations

import csv
import io
import os

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from semiprune_core.errors import WorkspaceError
from semiprune_core.project import rights
from semiprune_core.project.pool import Segment
from semiprune_core.project.spreadsheet import safe_cell
from semiprune_core.project.workspace import Workspace


def export(request: Request, workspace: Workspace) -> Response:
    """A finished export. Its name carries run and content hash, so two exports never share one."""
    folder = workspace.project(request.path_params["project"]).exports_folder
    name = request.path_params["name"]
    path = folder / name
    if path.parent != folder or name.startswith(".") or not os.path.isfile(path) or path.is_symlink():
        raise WorkspaceError("There is no such export in this project.", code="NO_EXPORT")
    rights.record("downloaded an export", request.path_params["project"], name)
    return FileResponse(path, filename=name, headers={"Cache-Control": "no-store"})


def problems(request: Request, workspace: Workspace) -> Response:
    """Everything the imports of a project could not use, as a spreadsheet-safe CSV."""
    project = workspace.project(request.path_params["project"])
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["import", "path", "code", "message"])
    for artifact in project.artifacts("pool"):
        for problem in Segment(artifact).problems():
            table.writerow([artifact.id, safe_cell(problem.path), problem.code, safe_cell(problem.message)])
    headers = {
        "Content-Disposition": f'attachment; filename="{project.name}-problems.csv"',
        "Cache-Control": "no-store",
    }
    return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)
