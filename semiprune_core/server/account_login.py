"""Coming in by an account: name and password for a session of our own, or an invite for a first password.

As long as there is no account, the way that the environment asks for counts (``login``). From the first one on neither
its token nor its password lets anybody in.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection, cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from semiprune_core.accounts import (
    Account,
    Accounts,
    SessionRights,
    accept_invite,
    add_to_trail,
    begin_session,
    find,
    give_sign_of_life,
    invited,
    password_is,
    session_of,
)
from semiprune_core.errors import SemiPruneError
from semiprune_core.project.workspace import Workspace
from semiprune_core.server.guesses import Guesses
from semiprune_core.server.login import (
    Cookie,
    Login,
    Verdict,
    address_of,
    cookie_of,
    form_of,
    is_form,
    is_page,
    wait_words,
    without,
)
from semiprune_core.server.login_page import account_page, invite_page

INVITE = "invite"
WRONG = "Name or password is not right."
NEEDED = "Log in to go on: reload the page."
NO_STORE = {"Cache-Control": "no-store", "WWW-Authenticate": "Session"}
OVER = "This invite has expired or was used already. Ask whoever sent it for a new one, or log in."


def session_cookie(workspace: Workspace, value: str) -> Cookie:
    """The cookie of a session; each workspace has a name of its own."""
    return Cookie(f"{cookie_of(workspace, '').name}_session", value)


def bearer_of(workspace: Workspace, cookies: Mapping[str, str]) -> str:
    """What a browser's cookies say of its session; "" where they say nothing."""
    return cookies.get(session_cookie(workspace, "").name, "")


@dataclass(frozen=True)
class Attempt:
    """What somebody tried who is not in: where from, with which browser, and the fields of the form."""

    address: str
    agent: str
    fields: dict[str, str]


class AccountLogin:
    """Sessions of accounts where there are any, else ``otherwise``."""

    def __init__(self, workspace: Workspace, accounts: Accounts, otherwise: Login) -> None:
        self.workspace, self.accounts, self.otherwise = workspace, accounts, otherwise
        self.by_address, self.by_account = Guesses(), Guesses(together=False)

    @property
    def now(self) -> Login:
        """The way in that counts just now."""
        return self if self.accounts.are_on else self.otherwise

    async def look(self, connection: HTTPConnection) -> Verdict:
        if not self.accounts.path.exists():
            return await self.otherwise.look(connection)
        if not await run_in_threadpool(lambda: self.accounts.are_on):
            return await self.otherwise.look(connection)
        code = connection.query_params.get(INVITE) if is_page(connection, "GET") else None
        if code is not None:
            return Verdict(await run_in_threadpool(self._welcome, connection, code))
        rights = await run_in_threadpool(self._recognised, connection)
        if rights is not None and is_form(connection) and "/studio/" not in connection.scope["path"]:
            return Verdict(without(connection, INVITE))  # logged in in another tab meanwhile
        if rights is not None:
            return Verdict(rights=rights)
        attempt = Attempt(address_of(connection), connection.headers.get("user-agent", ""), await form_of(connection))
        return await run_in_threadpool(self._try, connection, attempt)

    def _recognised(self, connection: HTTPConnection) -> SessionRights | None:
        """The rights of a browser that has logged in."""
        bearer = bearer_of(self.workspace, cookie_parser(connection.headers.get("cookie", "")))
        held = session_of(self.accounts, bearer)
        if held is None:
            return None
        with contextlib.suppress(SemiPruneError):  # a full disk ends no session before its time
            give_sign_of_life(self.accounts, held[0])
        return SessionRights(self.accounts, bearer, address_of(connection))

    def _try(self, connection: HTTPConnection, attempt: Attempt) -> Verdict:
        if INVITE in attempt.fields:
            return self._accept(connection, attempt)
        if "password" in attempt.fields:
            return self._log_in(connection, attempt)
        return Verdict(_ask(connection, "", 401))

    def _log_in(self, connection: HTTPConnection, attempt: Attempt) -> Verdict:
        """One answer for an unknown name and for a wrong password, after the same time."""
        name = attempt.fields.get("name", "").strip()
        account = find(self.accounts, name)
        key = f"account {account.id if account else name.casefold()[:64]}"
        seconds = max(self.by_address.wait(attempt.address), self.by_account.wait(key))
        if seconds > 0:
            return Verdict(_ask(connection, wait_words("passwords", seconds), 429, name))
        if not password_is(self.accounts, account.id if account else "", attempt.fields["password"]):
            self.by_address.wrong(attempt.address)
            self.by_account.wrong(key)
            note = "" if account else "unknown name"  # what was typed there may be a password
            who = account.id if account else ""
            add_to_trail(self.accounts, who, "failed to log in", note=note, address=attempt.address)
            return Verdict(_ask(connection, WRONG, 401, name))
        assert account is not None  # nobody else has a password
        self.by_address.right(attempt.address)
        self.by_account.right(key)
        return self._let_in(connection, attempt, account)

    def _let_in(self, connection: HTTPConnection, attempt: Attempt, account: Account) -> Verdict:
        bearer = begin_session(self.accounts, account.id, address=attempt.address, agent=attempt.agent)
        add_to_trail(self.accounts, account.id, "logged in", address=attempt.address)
        return Verdict(without(connection, INVITE), session_cookie(self.workspace, bearer))

    def _welcome(self, connection: HTTPConnection, code: str) -> Response:
        account = invited(self.accounts, code)
        if account is None:
            return HTMLResponse(account_page(OVER), 401, NO_STORE)
        return HTMLResponse(invite_page("", code, account.id, account.shown), headers=NO_STORE)

    def _accept(self, connection: HTTPConnection, attempt: Attempt) -> Verdict:
        code, password = attempt.fields[INVITE], attempt.fields.get("password", "")
        account = invited(self.accounts, code)
        if account is None:
            return Verdict(HTMLResponse(account_page(OVER), 401, NO_STORE))
        again = functools.partial(invite_page, code=code, account_id=account.id, shown=account.shown)
        if password != attempt.fields.get("again"):
            return Verdict(HTMLResponse(again("The two passwords differ."), 400, NO_STORE))
        try:
            account = accept_invite(self.accounts, code, password)
        except SemiPruneError as error:
            return Verdict(HTMLResponse(again(str(error)), 400, NO_STORE))
        add_to_trail(self.accounts, account.id, "accepted an invite", address=attempt.address)
        return self._let_in(connection, attempt, account)


def _ask(connection: HTTPConnection, trouble: str, status: int, name: str = "") -> Response:
    """A page for people, JSON for our own scripts, a sentence for Streamlit's, which shows it as it is."""
    if "text/html" in connection.headers.get("accept", ""):
        return HTMLResponse(account_page(trouble, name), status, NO_STORE)
    if "/studio/" in connection.scope["path"]:
        return JSONResponse({"code": "LOGIN_NEEDED", "error": trouble or NEEDED}, status, NO_STORE)
    return PlainTextResponse(trouble or NEEDED, status, NO_STORE)
