"""Logging out: the session ends, here and in every tab that has it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from semiprune_core.accounts import SessionRights, end_session
from semiprune_core.project import rights
from semiprune_core.project.workspace import Workspace
from semiprune_core.server.access import check_write
from semiprune_core.server.account_login import session_cookie


def log_out(request: Request, workspace: Workspace) -> Response:
    """End the session of this browser and take its cookie away; without accounts there is nothing to end."""
    check_write(request, workspace)
    acting = rights.acting()
    if isinstance(acting, SessionRights):
        acting.record("logged out")
        end_session(acting.accounts, acting.account, acting.mark)
    gone = Response(status_code=204, headers={"Cache-Control": "no-store"})
    gone.delete_cookie(session_cookie(workspace, "").name, path="/", httponly=True, samesite="lax")
    return gone
