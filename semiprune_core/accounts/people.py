"""Accounts: adding, inviting, passwords, closing."""

from __future__ import annotations

import hashlib
import secrets
import unicodedata
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from semiprune_core.accounts import schema
from semiprune_core.accounts.book import HOUR, Account, Accounts
from semiprune_core.accounts.passwords import check_password, hash_of, matches
from semiprune_core.errors import ConflictError, ForbiddenError, InvalidSettingError, UnknownNameError
from semiprune_core.labeling.events import check_person
from semiprune_core.paths import shown

INVITE_MS = 7 * 24 * HOUR
table = schema.accounts


def folded(name: str) -> str:
    """What two names must not have in common: upper and lower case, and ways to write one letter, are the same."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def find(accounts: Accounts, name: str) -> Account | None:
    """The account of this name, in any case; closed ones too."""
    wanted = folded(name.strip())
    return next((account for account in accounts.state().accounts.values() if folded(account.id) == wanted), None)


def get(accounts: Accounts, name: str) -> Account:
    account = find(accounts, name)
    if account is None:
        raise UnknownNameError(f"There is no account '{shown(name, 60)}'.", code="NO_ACCOUNT")
    return account


def add_account(
    accounts: Accounts, name: str, *, shown_as: str = "", admin: bool = False, password: str | None = None, by: str = ""
) -> Account:
    """A new account. Its id is the name as it was typed, and stands in every label it gives; it never changes."""
    name = unicodedata.normalize("NFC", name.strip())
    check_person(name)
    check_person(shown_as or name)
    if not accounts.are_on and not admin:
        raise InvalidSettingError("The first account must be an admin: add --admin.", code="NO_ADMIN")
    if password is not None:
        check_password(password, name)
    values = {
        "id": name,
        "folded": folded(name),
        "shown": shown_as or name,
        "password": None if password is None else hash_of(password),
        "is_admin": admin,
        "made_ms": accounts.now_ms,
        "made_by": by,
    }

    def work(connection: Connection) -> None:
        if connection.execute(sa.select(table.c.id).where(table.c.folded == values["folded"])).first():
            raise ConflictError(f"There is already an account '{shown(name, 60)}'.", code="ACCOUNT_EXISTS")
        connection.execute(table.insert().values(values))

    accounts.write(work)
    return get(accounts, name)


def rename(accounts: Accounts, account_id: str, shown_as: str) -> None:
    """Another shown name; the id stays."""
    check_person(shown_as)
    _change(accounts, account_id, shown=shown_as)


def set_password(accounts: Accounts, account_id: str, password: str, *, keep: str = "") -> None:
    """A new password ends every session of the account but ``keep``, and voids its invite."""
    check_password(password, account_id)
    made = hash_of(password)

    def work(connection: Connection) -> None:
        connection.execute(table.update().where(table.c.id == account_id).values(password=made))
        _forget_doors(connection, account_id, keep)

    accounts.write(work)


def change_password(accounts: Accounts, account_id: str, old: str, new: str, *, keep: str = "") -> None:
    if not password_is(accounts, account_id, old):
        raise ForbiddenError("The present password is not right.", code="WRONG_PASSWORD")
    set_password(accounts, account_id, new, keep=keep)


def password_is(accounts: Accounts, account_id: str, password: str) -> bool:
    """Whether an open account has this password; takes as long where there is no such account."""
    query = sa.select(table.c.password).where(table.c.id == account_id, table.c.closed_ms.is_(None))
    with accounts.database.read() as connection:
        stored = connection.execute(query).scalar()
    return matches(password, stored)


def set_admin(accounts: Accounts, account_id: str, admin: bool) -> None:
    if not admin:
        _check_other_admin(accounts, account_id)
    _change(accounts, account_id, is_admin=admin)


def close_account(accounts: Accounts, account_id: str) -> None:
    """From now on nobody comes in by this account. Its labels and its name stay, and nobody else gets them."""
    _check_other_admin(accounts, account_id)

    def work(connection: Connection) -> None:
        mine = table.update().where(table.c.id == account_id)
        connection.execute(mine.values(closed_ms=accounts.now_ms, password=None, is_admin=False))
        _forget_doors(connection, account_id)
        connection.execute(schema.members.delete().where(schema.members.c.account == account_id))

    accounts.write(work)


def invite(accounts: Accounts, account_id: str) -> str:
    """A code that lets its bearer choose the account's password, once, within a week; an earlier one is void.

    It opens a closed account again.
    """
    code = secrets.token_urlsafe(24)
    values = {"account": account_id, "mark": mark_of(code), "expires_ms": accounts.now_ms + INVITE_MS}

    def work(connection: Connection) -> None:
        connection.execute(schema.invites.delete().where(schema.invites.c.account == account_id))
        connection.execute(schema.invites.insert().values(values))
        connection.execute(table.update().where(table.c.id == account_id).values(closed_ms=None))

    accounts.write(work)
    return code


def invited(accounts: Accounts, code: str) -> Account | None:
    """Whom an invite is for; None for one that was used, has expired or never was."""
    with accounts.database.read() as connection:
        account_id = _invited(connection, code, accounts.now_ms)
    return None if account_id is None else get(accounts, account_id)


def accept_invite(accounts: Accounts, code: str, password: str) -> Account:
    """Choose the password; of two that come at once, one wins."""
    account = invited(accounts, code)
    if account is None:
        raise ForbiddenError(
            "This invite has expired or was used already. Ask whoever sent it for a new one.", code="INVITE_OVER"
        )
    check_password(password, account.id)
    made = hash_of(password)

    def work(connection: Connection) -> None:
        if _invited(connection, code, accounts.now_ms) != account.id:
            raise ForbiddenError("This invite was used meanwhile. Ask for a new one.", code="INVITE_OVER")
        connection.execute(table.update().where(table.c.id == account.id).values(password=made))
        _forget_doors(connection, account.id)

    accounts.write(work)
    return get(accounts, account.id)


def mark_of(secret: str) -> str:
    """What is kept of a random secret: enough to recognise it, too little to use it."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _invited(connection: Connection, code: str, now_ms: int) -> str | None:
    query = sa.select(schema.invites.c.account)
    open_now = (schema.invites.c.mark == mark_of(code)) & (schema.invites.c.expires_ms > now_ms)
    return connection.execute(query.where(open_now)).scalar()


def _forget_doors(connection: Connection, account_id: str, keep: str = "") -> None:
    """End the account's sessions but ``keep``, and void its invite."""
    sessions, invites = schema.sessions, schema.invites
    connection.execute(sessions.delete().where(sessions.c.account == account_id, sessions.c.mark != keep))
    connection.execute(invites.delete().where(invites.c.account == account_id))


def _change(accounts: Accounts, account_id: str, **values: Any) -> None:
    accounts.write(lambda connection: connection.execute(table.update().where(table.c.id == account_id).values(values)))


def _check_other_admin(accounts: Accounts, account_id: str) -> None:
    admins = [account.id for account in accounts.state().accounts.values() if account.is_admin]
    if admins == [account_id]:
        raise InvalidSettingError(
            f"'{shown(account_id, 60)}' is the only admin. Make somebody else one first.", code="NO_ADMIN"
        )
