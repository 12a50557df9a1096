"""A map's points, its columns and what is known of one image, for the map in the browser; binary and small.

GET maps/<map>/points            2 N little-endian 32-bit floats, x and y of each image; NaN for no place
GET columns/<column>             N little-endian 16-bit codes (see ``map_view``)
GET facts/<position>             JSON: the image's id, its path and every fact about it
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from semiprune_core.errors import WorkspaceError
from semiprune_core.maps.embedding_map import EmbeddingMap
from semiprune_core.maps.map_view import Columns, columns_of
from semiprune_core.project.pool import show_id
from semiprune_core.project.workspace import Workspace
from semiprune_core.server.pictures import FOREVER

SHORT = {"Cache-Control": "no-store"}
AS_IS = {"Content-Encoding": "identity"}
"""Coordinates hardly shrink when they are compressed; that would only cost time."""


def points(request: Request, workspace: Workspace) -> Response:
    """The whole map. An artifact never changes, and the page's address carries its hash, so it may be kept for ever."""
    artifact = workspace.project(request.path_params["project"]).artifact(request.path_params["map"])
    if artifact.kind != "map":
        raise WorkspaceError("This artifact is not a map.", code="NO_ARTIFACT")
    data = EmbeddingMap(artifact).points().astype("<f4").tobytes()
    return Response(data, media_type="application/octet-stream", headers=FOREVER | AS_IS)


def _columns(request: Request, workspace: Workspace) -> Columns:
    project = workspace.project(request.path_params["project"])
    return columns_of(project, project.pool())


def column(request: Request, workspace: Workspace) -> Response:
    """One column of the present version; the page's address carries the version it was drawn with."""
    columns = _columns(request, workspace)
    headers = FOREVER if request.query_params.get("v") == columns.version else SHORT
    data = columns.packed(request.path_params["column"])
    return Response(data, media_type="application/octet-stream", headers=headers)


def image_facts(request: Request, workspace: Workspace) -> Response:
    """Everything known about the image at one position of the pool."""
    columns = _columns(request, workspace)
    position = request.path_params["position"]
    if not 0 <= position < len(columns.pool):
        raise WorkspaceError("There is no such image in this project.", code="NO_IMAGE")
    facts = [
        {"title": column.title, "text": text}
        for column in columns.by_key.values()
        if (text := column.told(position)) is not None
    ]
    value = {"id": show_id(columns.pool.ids[position]), "path": columns.pool.path(position), "facts": facts}
    return JSONResponse(value, headers=SHORT)
