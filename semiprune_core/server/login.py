"""How somebody shows that they may come in: by the token of the start link, by a password, or not at all.

- Without any setting a token is made at every start and printed in a link. Whoever opens the link, or pastes the token
  on the page that everybody else gets, is given a cookie; the token leaves the address bar.
- ``SEMIPRUNE_TOKEN`` sets the token. A program or a proxy sends it as ``Authorization: Bearer TOKEN``.
- ``SEMIPRUNE_PASSWORD`` asks for a password instead (HTTP Basic).
- ``SEMIPRUNE_LOGIN=off`` lets in everybody who reaches the port.

The cookie comes from the workspace's secret, so it outlives the app: after a restart a reload, a bookmark and labels
that were not sent yet go through, while the old link is void.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qsl, quote, unquote_plus, urlencode

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request, cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response

from semiprune_core.errors import ForbiddenError
from semiprune_core.project.rights import Rights
from semiprune_core.project.workspace import Workspace
from semiprune_core.server.guesses import Guesses
from semiprune_core.server.login_page import login_page

PASSWORD_VARIABLE = "SEMIPRUNE_PASSWORD"  # noqa: S105 - a variable's name
TOKEN_VARIABLE = "SEMIPRUNE_TOKEN"  # noqa: S105 - a variable's name
SWITCH_VARIABLE = "SEMIPRUNE_LOGIN"
SECRETS = (PASSWORD_VARIABLE, TOKEN_VARIABLE)
"""Variables that nobody but the app needs to know."""
_taken: dict[str, str] = {}
PARAMETER = "token"
LEAST_LETTERS = 8
LEAST_DIFFERENT = 4
COOKIE_SECONDS = 30 * 24 * 3600
LONGEST_FORM = 4096
NEEDED = "A password is needed."
TOKEN_NEEDED = "Open the link that was printed when the app was last started."  # noqa: S105 - a sentence
BASIC = {"WWW-Authenticate": 'Basic realm="SemiPrune Studio", charset="UTF-8"'}
BEARER = {"WWW-Authenticate": 'Bearer realm="SemiPrune Studio"', "Cache-Control": "no-store"}


class AccessError(ForbiddenError):
    """The request is not allowed; the message says why."""

    code = "FORBIDDEN"


def same(given: str, wanted: str) -> bool:
    """Whether two texts of any letters are equal, in a time that tells nothing."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode("utf-8", "surrogatepass"))


def check_chosen(word: str | None, variable: str) -> None:
    """Refuse a password or token that can be guessed in no time."""
    if word is not None and (len(word.strip()) < LEAST_LETTERS or len(set(word)) < LEAST_DIFFERENT):
        raise AccessError(
            f"{variable} is too short: it needs at least {LEAST_LETTERS} characters, "
            f"{LEAST_DIFFERENT} of them different. Use a few words, or: openssl rand -base64 18",
            code="WEAK_PASSWORD",
        )


@dataclass(frozen=True)
class Cookie:
    """What a browser that was let in carries."""

    name: str
    value: str

    def is_in(self, headers: Headers) -> bool:
        return same(cookie_parser(headers.get("cookie", "")).get(self.name, ""), self.value)

    def header(self, *, secure: bool) -> str:
        """``SameSite=Lax``: a link in a chat or a web terminal leads in too; writes need our origin anyway."""
        ending = "; Secure" if secure else ""
        return f"{self.name}={self.value}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax{ending}"


def cookie_of(workspace: Workspace, chosen: str) -> Cookie:
    """The cookie of this workspace, which another password or token makes void."""

    def mark(purpose: str) -> str:
        return hmac.new(workspace.secret.encode(), purpose.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    return Cookie(f"semiprune_{mark('cookie')[:8]}", mark(f"login {chosen}"))


@dataclass(frozen=True)
class Verdict:
    """What becomes of a request: an ``answer`` instead of the app's, or the app's own; with a new cookie or without."""

    answer: Response | None = None
    cookie: Cookie | None = None
    rights: Rights | None = None
    """What whoever was let in may do; None where there are no accounts and everything is allowed."""


class Login(Protocol):
    """One way to come in."""

    async def look(self, connection: HTTPConnection) -> Verdict:
        """Let somebody in, or say what is missing."""
        ...


class NoLogin:
    """Everybody who reaches the port comes in."""

    async def look(self, connection: HTTPConnection) -> Verdict:
        return Verdict()


class PasswordLogin:
    """HTTP Basic. Wrong ones are slowed down; a browser that was let in once never waits for others' guesses."""

    def __init__(self, password: str, cookie: Cookie) -> None:
        self.password, self.cookie, self.guesses = password, cookie, Guesses()

    async def look(self, connection: HTTPConnection) -> Verdict:
        given, knows_us = _given_password(connection.headers), self.cookie.is_in(connection.headers)
        if given is None:
            return Verdict(PlainTextResponse(NEEDED, 401, BASIC))
        address = address_of(connection)
        seconds = 0.0 if knows_us else self.guesses.wait(address)
        if seconds > 0:
            return Verdict(PlainTextResponse(wait_words("passwords", seconds), 429))
        if not same(given, self.password):
            self.guesses.wrong(address)
            return Verdict(PlainTextResponse(NEEDED, 401, BASIC))
        self.guesses.right(address)
        return Verdict(cookie=None if knows_us else self.cookie)


class TokenLogin:
    """A token in the link, in the login page's form or in a header, exchanged for a cookie.

    One that a person has chosen might be guessed, so wrong tries are slowed down; a random one cannot be, and nobody
    on this machine can keep others out by guessing.
    """

    def __init__(self, token: str, cookie: Cookie, *, chosen: bool) -> None:
        self.token, self.cookie, self.chosen, self.guesses = token, cookie, chosen, Guesses()

    async def look(self, connection: HTTPConnection) -> Verdict:
        in_link = connection.query_params.get(PARAMETER) if is_page(connection, "GET") else None
        if self.cookie.is_in(connection.headers):
            return Verdict() if in_link is None else Verdict(without(connection))
        if (bearer := _bearer(connection.headers)) is not None:
            refusal = self._refusal(connection, bearer)
            return Verdict(cookie=self.cookie) if refusal is None else Verdict(refusal)
        given = in_link if in_link is not None else await _in_form(connection)
        refusal = self._refusal(connection, given)
        return Verdict(refusal) if refusal is not None else Verdict(without(connection), self.cookie)

    def _refusal(self, connection: HTTPConnection, given: str | None) -> Response | None:
        """What to answer to a token that is wrong, missing or comes too soon after wrong ones."""
        if given is None:
            return _ask(connection, "", 401)
        address = address_of(connection)
        seconds = self.guesses.wait(address) if self.chosen else 0.0
        if seconds > 0:
            return _ask(connection, wait_words("tokens", seconds), 429)
        if not same(given.strip(), self.token):
            self.guesses.wrong(address)
            newer = "" if self.chosen else " A new one is made at every start: use the latest link."
            return _ask(connection, f"That is not the token of this app.{newer}", 401)
        self.guesses.right(address)
        return None


def take_login(workspace: Workspace) -> Login:
    """The way in that this process's environment asks for. Password and token leave it: no job is told."""
    _taken.update({variable: os.environ.pop(variable) for variable in SECRETS if variable in os.environ})
    return login_of(workspace, {**os.environ, **_taken})


def is_set(variable: str) -> bool:
    """Whether a variable is set, or was until it was taken."""
    return bool(_taken.get(variable) or os.environ.get(variable))


def login_of(workspace: Workspace, environment: Mapping[str, str]) -> Login:
    """The way in that an environment asks for; a random token where it says nothing."""
    password = environment.get(PASSWORD_VARIABLE) or None
    token = environment.get(TOKEN_VARIABLE) or None
    switch = environment.get(SWITCH_VARIABLE, "").strip().lower()
    if switch not in ("", "off"):
        raise AccessError(f"{SWITCH_VARIABLE} is '{switch}'. Set it to off, or leave it away.", code="WRONG_SETTING")
    if switch == "off" and (password or token):
        named = PASSWORD_VARIABLE if password else TOKEN_VARIABLE
        raise AccessError(f"{SWITCH_VARIABLE}=off and {named} contradict each other. Take one of them away.")
    if switch == "off":
        return NoLogin()
    check_chosen(password, PASSWORD_VARIABLE)
    check_chosen(token, TOKEN_VARIABLE)
    cookie = cookie_of(workspace, password or token or "")
    if password is not None:
        return PasswordLogin(password, cookie)
    return TokenLogin(token or secrets.token_urlsafe(32), cookie, chosen=token is not None)


def in_force(login: Login) -> Login:
    """The way in that counts just now, where another one may come in its place."""
    now: Login = getattr(login, "now", login)
    return now


def start_link(address: str | None, port: int, base: str, login: Login, *, tls: bool = False) -> str:
    """What to open in a browser, with the token where one is needed."""
    login = in_force(login)
    name = address if address and address not in ("0.0.0.0", "::") else "127.0.0.1"  # noqa: S104 - shown, not bound
    host = f"[{name}]" if ":" in name and not name.startswith("[") else name
    path = f"/{base.strip('/')}/" if base.strip("/") else "/"
    query = f"?{urlencode({PARAMETER: login.token})}" if isinstance(login, TokenLogin) else ""
    return f"{'https' if tls else 'http'}://{host}:{port}{path}{query}"


def address_of(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client else ""


def wait_words(what: str, seconds: float) -> str:
    return f"Too many wrong {what}. Try again in {seconds:.0f} seconds."


def _given_password(headers: Headers) -> str | None:
    """The password of a request; None where it gives none that can be read."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(given, validate=True).decode("utf-8").partition(":")[2]
    except ValueError:
        return None


def _bearer(headers: Headers) -> str | None:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.encode("latin-1").decode("utf-8", "replace") if scheme.lower() == "bearer" else None


def is_page(connection: HTTPConnection, method: str) -> bool:
    return connection.scope["type"] == "http" and connection.scope["method"] == method


async def _in_form(connection: HTTPConnection) -> str | None:
    """The token that was typed into the login page's form, or the whole link; None where there is none."""
    given = (await form_of(connection)).get(PARAMETER) or None
    return unquote_plus(given.partition(f"?{PARAMETER}=")[2]) if given and f"?{PARAMETER}=" in given else given


async def form_of(connection: HTTPConnection) -> dict[str, str]:
    """The fields of a form that was posted; none where it is no form, or a longer one than any of ours."""
    body = b""
    if not isinstance(connection, Request) or not is_form(connection):
        return {}
    async for piece in connection.stream():
        body += piece
        if len(body) > LONGEST_FORM:
            return {}
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def is_form(connection: HTTPConnection) -> bool:
    kind = connection.headers.get("content-type", "").partition(";")[0].strip().lower()
    return is_page(connection, "POST") and kind == "application/x-www-form-urlencoded"


def without(connection: HTTPConnection, parameter: str = PARAMETER) -> Response:
    """The same page again, by an address that may be shown, kept and bookmarked."""
    pairs = [pair for pair in parse_qsl(connection.url.query, keep_blank_values=True) if pair[0] != parameter]
    path = "/" + quote(connection.scope["path"].lstrip("/"))  # one slash: two would name another site
    address = f"{path}?{urlencode(pairs)}" if pairs else path
    return RedirectResponse(address, 303, {"Cache-Control": "no-store"})


def _ask(connection: HTTPConnection, trouble: str, status: int) -> Response:
    """A page for people, JSON for our own scripts, a sentence for Streamlit's, which shows it as it is."""
    if "text/html" in connection.headers.get("accept", ""):
        return HTMLResponse(login_page(trouble), status, BEARER)
    if "/studio/" in connection.scope["path"]:
        return JSONResponse({"code": "LOGIN_NEEDED", "error": trouble or TOKEN_NEEDED}, status, BEARER)
    return PlainTextResponse(trouble or TOKEN_NEEDED, status, BEARER)
