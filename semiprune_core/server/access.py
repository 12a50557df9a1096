"""Who may come in: host names, the login, cross-site requests, and the headers on every answer.

- Only known ``Host`` names are answered (against DNS rebinding): loopback names, the address the server was bound to,
  and those in ``SEMIPRUNE_ALLOWED_HOSTS``.
- A request that a page of another site makes is refused before anything else sees it: its ``Origin`` must be our
  ``Host``, port included. A WebSocket without an ``Origin`` comes from no browser and is refused too.
- The login (``login``) stands in front of every route, pages and WebSocket included.
- A write to our own routes must carry the token that our page was given.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import ipaddress
import logging
import os
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose, WebSocketDisconnected

from semiprune_core.accounts import SessionRights
from semiprune_core.errors import SemiPruneError
from semiprune_core.paths import shown
from semiprune_core.project import rights
from semiprune_core.project.rights import acted_by
from semiprune_core.project.workspace import Workspace
from semiprune_core.server.login import (
    PASSWORD_VARIABLE,
    SWITCH_VARIABLE,
    AccessError,
    Cookie,
    Login,
    NoLogin,
    Verdict,
    in_force,
    is_set,
    same,
)

log = logging.getLogger("semiprune")
HOSTS_VARIABLE = "SEMIPRUNE_ALLOWED_HOSTS"
CLOSED_DOOR = "The accounts of this app cannot be read, so nobody can come in. Its log says why."
TOKEN_HEADER = "x-semiprune-token"  # noqa: S105 - a header's name
CLOSED = ("/_stcore/metrics", "/_stcore/upload_file")
"""Routes of Streamlit's: one tells more than anybody here needs to know, one takes files into memory without end."""
LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'{sockets}; worker-src 'self' blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'"
)
"""What a page may load and whom it may call: nobody but us. Some browsers do not count sockets to ``'self'``."""


def is_loopback(address: str) -> bool:
    if address in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


def check_address(address: str | None, login: Login) -> None:
    """Refuse to serve beyond this machine without a login (an empty address means every interface).

    Somebody who names host names has a proxy in mind, and ``SEMIPRUNE_LOGIN=off`` says that it asks who comes.
    """
    beyond = not (address and is_loopback(address))
    if beyond and isinstance(in_force(login), NoLogin) and not os.environ.get(HOSTS_VARIABLE):
        raise AccessError(
            f"Refusing to serve on {address or 'every address'} without a login. Take {SWITCH_VARIABLE}=off away, or "
            f"bind to 127.0.0.1, or name the host names of the proxy that asks for a login in {HOSTS_VARIABLE}."
        )


def start_warnings(address: str | None, login: Login) -> list[str]:
    """What whoever starts the app should know about its door."""
    login, beyond = in_force(login), not (address and is_loopback(address))
    if isinstance(login, NoLogin):
        who = "everybody who reaches this port" if beyond else "every user and every program of this machine"
        return [f"{SWITCH_VARIABLE}=off: {who} can open the app, label, train, export and delete."]
    if beyond:
        return ["Password and token are sent in the clear unless a proxy with TLS is in front. See docs/proxy.md."]
    return []


def may_allow_folders() -> bool:
    """Whether whoever uses the page may let the app read another folder: an admin, or the one person there is."""
    if isinstance(rights.acting(), SessionRights):
        return rights.allows("read server folders")
    return not lets_others_in()


def lets_others_in() -> bool:
    """Whether the app is set up for more people than the one at this machine."""
    return any(is_set(variable) for variable in (PASSWORD_VARIABLE, HOSTS_VARIABLE, SWITCH_VARIABLE))


def browser_token(workspace: Workspace) -> str:
    """What our pages carry and foreign pages cannot know."""
    return hmac.new(workspace.secret.encode(), b"browser", hashlib.sha256).hexdigest()


def check_write(request: Request, workspace: Workspace) -> None:
    """Refuse a write that does not come from our own page."""
    if not is_our_origin(request.headers):
        origin = shown(request.headers["origin"], 80)
        raise AccessError(f"This write came from another site ({origin}). Use the app's own page.")
    if not same(request.headers.get(TOKEN_HEADER, ""), browser_token(workspace)):
        raise AccessError("This write carries no valid token. Reload the page and try again.", code="BAD_TOKEN")


def is_our_origin(headers: Headers, *, must_be_named: bool = False) -> bool:
    """Whether the page that makes a request is one of ours: the same host and port as the request's own."""
    origin = headers.get("origin")
    if origin is None:
        return not must_be_named
    try:
        site = urlsplit(origin)
    except ValueError:
        return False
    return site.scheme in ("http", "https") and site.netloc.lower() == headers.get("host", "").lower()


class Access:
    """ASGI middleware over every route."""

    def __init__(self, app: ASGIApp, *, login: Login, hosts: Iterable[str] = ()) -> None:
        self.app = app
        self.login = login
        named = os.environ.get(HOSTS_VARIABLE, "").split(",")
        self.hosts = {host.strip().lower() for host in (*LOOPBACK, *hosts, *named) if host.strip()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        try:
            refusal = self._refusal(scope)
            connection = Request(scope, receive) if scope["type"] == "http" else HTTPConnection(scope)
            verdict = Verdict() if refusal else await self.login.look(connection)
        except SemiPruneError as error:  # who may come in cannot be told: nobody does
            log.error("Nobody can come in: %s", error)
            refusal = 503, CLOSED_DOOR
        if refusal:
            await _answer(PlainTextResponse(refusal[1], refusal[0]), scope, receive, _with_headers(send))
            return
        secure, host = scope.get("scheme") in ("https", "wss"), Headers(scope=scope)["host"]
        guarded = _with_headers(send, verdict.cookie, secure=secure, sockets=f" ws://{host} wss://{host}")
        if verdict.answer is not None:
            await _answer(verdict.answer, scope, receive, guarded)
            return
        sender = guarded if verdict.rights is None else _for_one_account(guarded)
        # a tab that closes while it is being answered is no error
        with contextlib.suppress(WebSocketDisconnected), acted_by(verdict.rights):
            await self.app(scope, receive, sender)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason for a request that nobody may make."""
        headers = Headers(scope=scope)
        if _host_name(headers.get("host", "")) not in self.hosts:
            return 421, f"Unknown host name. Add it to {HOSTS_VARIABLE} to allow it."
        if not is_our_origin(headers, must_be_named=scope["type"] == "websocket"):
            return 403, "This request came from another site. Use the app's own page."
        if any(closed in scope["path"] for closed in CLOSED):
            return 404, "Not found."
        try:  # another server than Streamlit's own may have bound to whatever it likes
            check_address(_bound_to(scope), self.login)
        except AccessError as error:
            return 403, str(error)
        return None


def _bound_to(scope: Scope) -> str:
    """The address at which a request has arrived; a socket in the file system is this machine's."""
    host, port = scope.get("server") or ("127.0.0.1", 0)
    return str(host) if port is not None else "127.0.0.1"


def _host_name(host: str) -> str:
    name, _, port = host.lower().rpartition(":")
    return name if name and port.isdigit() else host.lower()


def _with_headers(send: Send, cookie: Cookie | None = None, *, secure: bool = False, sockets: str = "") -> Send:
    """Put the security headers on the answer, and a cookie where there is one to give."""
    policy = {"Content-Security-Policy": POLICY.format(sockets=sockets)}

    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in {**SECURITY_HEADERS, **policy}.items():
                headers.setdefault(name, value)
            if cookie is not None:
                headers.append("Set-Cookie", cookie.header(secure=secure))
        await send(message)

    return wrapped


def _for_one_account(send: Send) -> Send:
    """What a browser keeps for one session it must not show in another."""

    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).add_vary_header("Cookie")
        await send(message)

    return wrapped


async def _answer(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await WebSocketClose(code=1008, reason="You may not come in. Reload the page.")(scope, receive, send)
    else:
        await response(scope, receive, send)
