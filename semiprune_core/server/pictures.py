"""Images by URL: thumbnails, cached pixels and originals, each under the image's stable id."""

from __future__ import annotations

import functools
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from semiprune_core import artifacts
from semiprune_core.errors import WorkspaceError
from semiprune_core.pool import Pool, mime_of, open_pool, read_id
from semiprune_core.workspace import Workspace

FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
NO_SCRIPTS = {"Content-Security-Policy": "default-src 'none'; sandbox"}


def opened_pool(workspace: Workspace, name: str) -> Pool:
    """A project's images, every split; opened once per state of its pool."""
    project = workspace.project(name)
    folder = project.artifacts_folder
    return _pool_of(folder, tuple(artifact.id for artifact in project.artifacts("pool")))


@functools.lru_cache(maxsize=8)
def _pool_of(folder: Path, segment_ids: tuple[str, ...]) -> Pool:
    if not segment_ids:
        raise WorkspaceError("This project has no images yet.", code="NO_IMAGE")
    return open_pool([artifacts.open_artifact(folder / segment) for segment in segment_ids])


def picture(request: Request, workspace: Workspace) -> Response:
    """``thumb`` or ``original`` of one image. Ids come from the content, so an answer may be kept for ever."""
    pool = opened_pool(workspace, request.path_params["project"])
    position = int(pool.positions([read_id(request.path_params["image_id"])])[0])
    size = request.path_params["size"]
    if position < 0 or size not in ("thumb", "original"):
        raise WorkspaceError("There is no such image in this project.", code="NO_IMAGE")
    data = pool.thumb(position) if size == "thumb" else pool.original(position)
    return Response(data, media_type=mime_of(data), headers=FOREVER | NO_SCRIPTS)
