"""The table of our own routes, all below ``/studio``, and how an error becomes an answer."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable

from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from semiprune_core.accounts import SessionRights, line_of
from semiprune_core.accounts.table import Line
from semiprune_core.errors import (
    ConflictError,
    DiskFullError,
    ForbiddenError,
    SemiPruneError,
    UnsafePathError,
    WorkspaceError,
)
from semiprune_core.project import rights
from semiprune_core.project.workspace import Workspace
from semiprune_core.server import downloads, labels, leaving, maps, pictures, review_queue, uploads  # noqa: F401 - registers

Handler = Callable[[Request, Workspace], Response | Awaitable[Response]]
STATUS: tuple[tuple[type[SemiPruneError], int], ...] = (
    (ForbiddenError, 403),
    (UnsafePathError, 403),
    (ConflictError, 409),
    (DiskFullError, 507),
    (WorkspaceError, 404),
    (SemiPruneError, 400),
)


class _Number(IntegerConvertor):
    """A whole number that fits into 64 bits; Starlette's own fails on thousands of digits."""

    regex = "[0-9]{1,18}"


register_url_convertor("number", _Number())


def studio_routes(workspace: Workspace, base: str = "") -> list[BaseRoute]:
    """Every route of ours, serving ``workspace``, below the app's ``base`` path."""
    stem = f"/{base.strip('/')}" if base.strip("/") else ""

    def route(path: str, handler: Handler, *methods: str) -> Route:
        lines = {method: line_of("route", f"{method} {path}") for method in methods}
        return Route(f"{stem}/studio{path}", _guarded(handler, workspace, lines), methods=list(methods))

    return [
        route("/projects/{project}/images/{image_id}/{size:str}", pictures.picture, "GET"),
        route("/projects/{project}/exports/{name}", downloads.export, "GET"),
        route("/projects/{project}/problems.csv", downloads.problems, "GET"),
        route("/projects/{project}/maps/{map}/points", maps.points, "GET"),
        route("/projects/{project}/columns/{column}", maps.column, "GET"),
        route("/projects/{project}/facts/{position:number}", maps.image_facts, "GET"),
        route("/projects/{project}/labels", labels.save, "POST"),
        route("/projects/{project}/labels/queue", labels.queue, "POST"),
        route("/projects/{project}/labels/leases", labels.leases, "POST"),
        route("/projects/{project}/labels/similar", labels.similar, "POST"),
        route("/projects/{project}/labels/live", labels.how_good, "POST"),
        route("/projects/{project}/labels/classes", labels.classes, "GET"),
        route("/projects/{project}/labels/classes", labels.add_class, "POST"),
        route("/projects/{project}/labels/progress", labels.how_far, "GET"),
        route("/projects/{project}/labels/export/{format}", labels.export, "GET"),
        route("/uploads", uploads.begin, "POST"),
        route("/uploads/{upload}/{number:number}", uploads.receive, "PUT"),
        route("/uploads/{upload}", uploads.discard, "DELETE"),
        route("/logout", leaving.log_out, "POST"),
    ]


def _check(line: Line, workspace: Workspace, project: str) -> None:
    """Whether whoever asks has the role for a route. For others a project is not there, like one that never was."""
    acting = rights.acting()
    if not isinstance(acting, SessionRights):
        return
    if not line.anywhere:
        workspace.project(project)
    acting.require("route", line.name, project)


def _guarded(
    handler: Handler, workspace: Workspace, lines: dict[str, Line]
) -> Callable[[Request], Awaitable[Response]]:
    """Run a handler (a plain function in a thread); a user error becomes JSON with its code and sentence."""

    @functools.wraps(handler)
    async def endpoint(request: Request) -> Response:
        try:
            line = lines.get(request.method) or lines["GET"]  # HEAD asks for what GET would
            await run_in_threadpool(_check, line, workspace, request.path_params.get("project", ""))
            if inspect.iscoroutinefunction(handler):
                return await handler(request, workspace)
            return await run_in_threadpool(handler, request, workspace)  # type: ignore[arg-type]
        except SemiPruneError as error:
            status = next(status for kind, status in STATUS if isinstance(error, kind))
            return JSONResponse({"code": error.code, "error": str(error)}, status_code=status)

    return endpoint
