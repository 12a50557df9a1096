"""Images by URL: thumbnails, cached pixels and originals, each under the image's stable id."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from semiprune_core.errors import WorkspaceError
from semiprune_core.project.pool import mime_of, read_id
from semiprune_core.project.workspace import Workspace

FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
NO_SCRIPTS = {"Content-Security-Policy": "default-src 'none'; sandbox"}


def picture(request: Request, workspace: Workspace) -> Response:
    """``thumb`` or ``original`` of one image. Ids come from the content, so an answer may be kept for ever."""
    pool = workspace.project(request.path_params["project"]).everything()
    position = int(pool.positions([read_id(request.path_params["image_id"])])[0])
    size = request.path_params["size"]
    if position < 0 or size not in ("thumb", "original"):
        raise WorkspaceError("There is no such image in this project.", code="NO_IMAGE")
    data = pool.thumb(position) if size == "thumb" else pool.original(position)
    return Response(data, media_type=mime_of(data), headers=FOREVER | NO_SCRIPTS)
