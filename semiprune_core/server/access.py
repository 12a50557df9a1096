"""Who may come in: host names, the optional password, cross-site requests, and the headers on every answer.

- Only known ``Host`` names are answered (against DNS rebinding): loopback names, the address the server was bound to,
  and those in ``SEMIPRUNE_ALLOWED_HOSTS``.
- ``SEMIPRUNE_PASSWORD`` puts HTTP Basic authentication in front of every route, pages and WebSocket included. Wrong
  ones are slowed down (``guesses``); a browser that was let in once has a cookie and never waits for others' guesses.
- A request that a page of another site makes is refused before anything else sees it: its ``Origin`` must be our
  ``Host``, port included. A WebSocket without an ``Origin`` comes from no browser and is refused too.
- A write to our own routes must carry the token that our page was given.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import os
import secrets
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from semiprune_core.errors import SemiPruneError
from semiprune_core.paths import shown
from semiprune_core.project.workspace import Workspace
from semiprune_core.server.guesses import Guesses

HOSTS_VARIABLE = "SEMIPRUNE_ALLOWED_HOSTS"
PASSWORD_VARIABLE = "SEMIPRUNE_PASSWORD"  # noqa: S105 - a variable's name
TOKEN_HEADER = "x-semiprune-token"  # noqa: S105 - a header's name
COOKIE = "semiprune_login"
NEEDED = "A password is needed."
LEAST_LETTERS = 8
LEAST_DIFFERENT = 4
CLOSED = ("/_stcore/metrics",)
"""Routes of Streamlit's that tell more than anybody here needs to know."""
LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' ws: wss:; worker-src 'self' blob:; "
        "object-src 'none'; base-uri 'self'; frame-ancestors 'self'"
    ),
}


class AccessError(SemiPruneError):
    """The request is not allowed; the message says why."""

    code = "FORBIDDEN"


def is_loopback(address: str) -> bool:
    if address in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


def check_address(address: str | None, password: str | None) -> None:
    """Refuse to serve beyond this machine without a login (an empty address means every interface)."""
    if not (address and is_loopback(address)) and not password:
        raise AccessError(
            f"Refusing to serve on {address or 'every address'} without a login. Set {PASSWORD_VARIABLE}, "
            "or bind to 127.0.0.1 and put a proxy with a login in front."
        )


def check_password(password: str | None) -> None:
    """Refuse a password that can be guessed in no time."""
    if password is not None and (len(password.strip()) < LEAST_LETTERS or len(set(password)) < LEAST_DIFFERENT):
        raise AccessError(
            f"{PASSWORD_VARIABLE} is too short: it needs at least {LEAST_LETTERS} characters, "
            f"{LEAST_DIFFERENT} of them different. Use a few words, or: openssl rand -base64 18",
            code="WEAK_PASSWORD",
        )


def start_warnings(address: str | None, password: str | None) -> list[str]:
    """What whoever starts the app should know about its door."""
    if password is None:
        return [f"No password is set: every user of this machine can open the app. {PASSWORD_VARIABLE} sets one."]
    if not (address and is_loopback(address)):
        return [
            "The password is sent in the clear unless a proxy with TLS is in front. See docs/proxy.md.",
        ]
    return []


def lets_others_in() -> bool:
    """Whether the app is set up for more people than the one at this machine."""
    return bool(os.environ.get(PASSWORD_VARIABLE) or os.environ.get(HOSTS_VARIABLE))


def browser_token(workspace: Workspace) -> str:
    """What our pages carry and foreign pages cannot know."""
    return hmac.new(workspace.secret.encode(), b"browser", hashlib.sha256).hexdigest()


def check_write(request: Request, workspace: Workspace) -> None:
    """Refuse a write that does not come from our own page."""
    if not is_our_origin(request.headers):
        origin = shown(request.headers["origin"], 80)
        raise AccessError(f"This write came from another site ({origin}). Use the app's own page.")
    if not hmac.compare_digest(request.headers.get(TOKEN_HEADER, ""), browser_token(workspace)):
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

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str] = (), password: str | None = None) -> None:
        self.app = app
        named = os.environ.get(HOSTS_VARIABLE, "").split(",")
        self.hosts = {host.strip().lower() for host in (*LOOPBACK, *hosts, *named) if host.strip()}
        self.password = password
        self.guesses = Guesses()
        self._cookie = secrets.token_urlsafe(32)  # for as long as this process lives

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        guarded = _with_headers(send)
        if _host_name(headers.get("host", "")) not in self.hosts:
            await _refuse(scope, receive, guarded, 421, f"Unknown host name. Add it to {HOSTS_VARIABLE} to allow it.")
        elif not is_our_origin(headers, must_be_named=scope["type"] == "websocket"):
            await _refuse(scope, receive, guarded, 403, "This request came from another site. Use the app's own page.")
        elif scope["path"].endswith(CLOSED):
            await _refuse(scope, receive, guarded, 404, "Not found.")
        elif self.password is not None and (refusal := self._refusal(scope, headers, self.password)):
            await _refuse(scope, receive, guarded, *refusal)
        elif self.password is not None and not self._was_let_in(headers):
            await self.app(scope, receive, _with_headers(send, self._cookie))
        else:
            await self.app(scope, receive, guarded)

    def _refusal(self, scope: Scope, headers: Headers, password: str) -> tuple[int, str] | None:
        """Status and reason for somebody who gives no password or a wrong one, or must wait; None where it is right."""
        candidate = _given_password(headers)
        if candidate is None:
            return 401, NEEDED
        address = (scope.get("client") or ("", 0))[0]
        seconds = 0.0 if self._was_let_in(headers) else self.guesses.wait(address)
        if seconds > 0:
            return 429, f"Too many wrong passwords. Try again in {seconds:.0f} seconds."
        if not hmac.compare_digest(candidate.encode(), password.encode()):
            self.guesses.wrong(address)
            return 401, NEEDED
        self.guesses.right(address)
        return None

    def _was_let_in(self, headers: Headers) -> bool:
        given = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        return hmac.compare_digest(given.encode(), self._cookie.encode())


def _host_name(host: str) -> str:
    name, _, port = host.lower().rpartition(":")
    return name if name and port.isdigit() else host.lower()


def _given_password(headers: Headers) -> str | None:
    """The password of a request; None where it gives none that can be read."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(given, validate=True).decode("utf-8").partition(":")[2]
    except ValueError:
        return None


def _with_headers(send: Send, cookie: str | None = None) -> Send:
    """Put the security headers on the answer, and a cookie where there is one to give."""

    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
            if cookie is not None:
                headers.append("Set-Cookie", f"{COOKIE}={cookie}; Path=/; HttpOnly; SameSite=Strict")
        await send(message)

    return wrapped


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, reason: str) -> None:
    if scope["type"] == "websocket":
        await WebSocketClose(code=1008, reason=reason)(scope, receive, send)
        return
    headers = {"WWW-Authenticate": 'Basic realm="SemiPrune Studio", charset="UTF-8"'} if status == 401 else None
    await PlainTextResponse(reason, status_code=status, headers=headers)(scope, receive, send)
