"""Who belongs to a project, and as what."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from semiprune_core.accounts import schema
from semiprune_core.accounts.book import Account, Accounts, accounts_of
from semiprune_core.accounts.table import ROLES
from semiprune_core.errors import InvalidSettingError
from semiprune_core.paths import shown
from semiprune_core.project.workspace import Workspace

table = schema.members


def members_of(accounts: Accounts, project: str) -> list[tuple[Account, str]]:
    """The project's people with their roles, owners first."""
    state = accounts.state()
    rows = [(state.accounts[holder], role) for (place, holder), role in state.roles.items() if place == project]
    return sorted(rows, key=lambda row: (-ROLES.index(row[1]), row[0].shown.casefold()))


def set_role(accounts: Accounts, project: str, account_id: str, role: str) -> None:
    """Add somebody to a project, or change what they are there. The last owner stays one."""
    if role not in ROLES:
        raise InvalidSettingError(f"A role is {', '.join(ROLES)}; got '{shown(role, 40)}'.", code="NO_ROLE")
    values = {"project": project, "account": account_id, "role": role}

    def work(connection: Connection) -> None:
        if role != "owner":
            _check_other_owner(connection, project, account_id)
        connection.execute(_row(project, account_id))
        connection.execute(table.insert().values(values))

    accounts.write(work)


def remove_member(accounts: Accounts, project: str, account_id: str) -> None:
    """From the next request on the project is not there for this account."""

    def work(connection: Connection) -> None:
        _check_other_owner(connection, project, account_id)
        connection.execute(_row(project, account_id))

    accounts.write(work)


def forget_members(workspace: Workspace, project: str) -> None:
    """A project is gone: one made later under the same name must not find its members."""
    accounts = accounts_of(workspace)
    if accounts.are_on:
        accounts.write(lambda connection: connection.execute(table.delete().where(table.c.project == project)))


def make_owner(workspace: Workspace, project: str, account_id: str | None) -> None:
    """Whoever copies a project owns the copy."""
    if account_id is not None:
        set_role(accounts_of(workspace), project, account_id, "owner")


def _row(project: str, account_id: str) -> sa.Delete:
    return table.delete().where(table.c.project == project, table.c.account == account_id)


def _check_other_owner(connection: Connection, project: str, account_id: str) -> None:
    """Inside the transaction: two owners who remove each other at once do not leave the project without one."""
    query = sa.select(table.c.account).where(table.c.project == project, table.c.role == "owner")
    if connection.execute(query).scalars().all() == [account_id]:
        raise InvalidSettingError(
            f"'{shown(account_id, 60)}' is the only owner of '{project}'. Make somebody else one first.",
            code="NO_OWNER",
        )
