"""Who is logged in: a random cookie, of which only a hash is kept, and which can be ended at any time."""

from __future__ import annotations

import secrets

from sqlalchemy.engine import Connection

from semiprune_core.accounts import schema
from semiprune_core.accounts.book import IDLE_MS, LONGEST_MS, Account, Accounts, Session
from semiprune_core.accounts.people import mark_of

SEEN_EVERY_MS = 5 * 60_000
"""How often a sign of life is written down."""
MOST = 20
"""Sessions of one account; of more the longest unseen end."""
table = schema.sessions
SYSTEMS = ("Windows", "Android", "iPhone", "iPad", "Mac OS X", "CrOS", "Linux")
BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))


def begin_session(accounts: Accounts, account_id: str, *, address: str = "", agent: str = "") -> str:
    """Log in: what the browser's cookie will say."""
    cookie, now = secrets.token_urlsafe(32), accounts.now_ms
    values = {
        "mark": mark_of(cookie),
        "account": account_id,
        "made_ms": now,
        "seen_ms": now,
        "address": address[:64],
        "browser": browser_of(agent),
    }
    past = sorted(sessions_of(accounts, account_id), key=lambda session: session.seen_ms, reverse=True)[MOST - 1 :]

    def work(connection: Connection) -> None:
        over = (table.c.seen_ms < now - IDLE_MS) | (table.c.made_ms < now - LONGEST_MS)
        too_many = table.c.mark.in_([session.mark for session in past])
        connection.execute(table.delete().where(over | too_many))
        connection.execute(table.insert().values(values))

    accounts.write(work)
    return cookie


def session_of(accounts: Accounts, cookie: str) -> tuple[Session, Account] | None:
    """The session of a cookie with its account; None where it is over, was ended, or never was."""
    state = accounts.state()
    session = state.sessions.get(mark_of(cookie)) if cookie else None
    if session is None or session.is_over(accounts.now_ms):
        return None
    account = state.accounts.get(session.account)
    return None if account is None or account.is_closed else (session, account)


def give_sign_of_life(accounts: Accounts, session: Session) -> None:
    now = accounts.now_ms
    if now - session.seen_ms >= SEEN_EVERY_MS:
        mine = table.update().where(table.c.mark == session.mark)
        accounts.write(lambda connection: connection.execute(mine.values(seen_ms=now)))


def sessions_of(accounts: Accounts, account_id: str) -> list[Session]:
    """The sessions of an account that still hold, the latest first."""
    state, now = accounts.state(), accounts.now_ms
    mine = [session for session in state.sessions.values() if session.account == account_id]
    return sorted((one for one in mine if not one.is_over(now)), key=lambda one: one.seen_ms, reverse=True)


def end_session(accounts: Accounts, account_id: str, mark: str) -> None:
    """End a session of this account; those of others stay."""
    mine = table.delete().where(table.c.mark == mark, table.c.account == account_id)
    accounts.write(lambda connection: connection.execute(mine))


def browser_of(agent: str) -> str:
    """A browser's and a system's name, for somebody who looks through their sessions."""
    browser = next((name for sign, name in BROWSERS if sign in agent), "")
    system = next((name for name in SYSTEMS if name in agent), "").replace("Mac OS X", "macOS")
    return " on ".join(filter(None, (browser, system)))
