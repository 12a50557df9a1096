"""What people do with accounts in the app: each act is checked, done, and written into the trail."""

from __future__ import annotations

from dataclasses import dataclass

from semiprune_core.accounts.acting import SessionRights
from semiprune_core.accounts.book import Account, Accounts
from semiprune_core.accounts.members import remove_member, set_role
from semiprune_core.accounts.people import (
    add_account,
    change_password,
    close_account,
    find,
    get,
    invite,
    rename,
    set_admin,
)
from semiprune_core.accounts.sessions import end_session
from semiprune_core.accounts.trail import Entry, trail
from semiprune_core.errors import ForbiddenError, InvalidSettingError
from semiprune_core.paths import shown


@dataclass(frozen=True)
class Managing:
    """The acts of one person. Without the role for one, it is refused in words."""

    rights: SessionRights

    @property
    def accounts(self) -> Accounts:
        return self.rights.accounts

    # --- a project's members -------------------------------------------------------------------------------------

    def add_member(self, project: str, name: str, role: str) -> str | None:
        """Add somebody; one without an account gets one, and the code of an invite is returned."""
        self.rights.check("members", project)
        account, code = find(self.accounts, name), None
        if account is not None and account.is_closed:
            raise InvalidSettingError(f"The account '{shown(account.id, 60)}' is closed. An admin can open it again.")
        if account is not None and account.id in self._members(project):
            raise InvalidSettingError(f"'{shown(account.id, 60)}' is a member already. Change the role in the list.")
        if account is None:
            account, code = self._new_account(name, admin=False)
        self._set_role(project, account.id, role)
        return code

    def change_role(self, project: str, account_id: str, role: str) -> None:
        self.rights.check("members", project)
        if account_id not in self._members(project):
            raise InvalidSettingError(f"'{shown(account_id, 60)}' is no member of '{project}' any more.")
        self._set_role(project, account_id, role)

    def remove_member(self, project: str, account_id: str) -> None:
        self.rights.check("members", project)
        remove_member(self.accounts, project, account_id)
        self.rights.record("removed a member", project, account_id)

    def trail(self, project: str | None, search: str = "", limit: int = 1000) -> list[Entry]:
        """The trail of a project, or of everything."""
        if project is None:
            self.rights.check("manage accounts")
        else:
            self.rights.check("members", project)
        return trail(self.accounts, project=project, search=search, limit=limit)

    def _members(self, project: str) -> set[str]:
        return {account for place, account in self.accounts.state().roles if place == project}

    def _set_role(self, project: str, account_id: str, role: str) -> None:
        set_role(self.accounts, project, account_id, role)
        self.rights.record("changed a role", project, f"{account_id}: {role}")

    # --- the accounts of the server ------------------------------------------------------------------------------

    def add_account(self, name: str, *, admin: bool = False) -> str:
        """A new account; the code of its invite."""
        self.rights.check("manage accounts")
        return self._new_account(name, admin=admin)[1]

    def may_invite(self, account: Account) -> bool:
        """An invite lets its bearer choose the password: of an account in use only admins may send one."""
        is_own_guest = not account.has_password and account.made_by == self.rights.account and not account.is_closed
        return is_own_guest or self.rights.allows("manage accounts")

    def invite(self, account_id: str) -> str:
        account = get(self.accounts, account_id)
        if not self.may_invite(account):
            raise ForbiddenError("Only admins of the server may invite somebody who has a password already.")
        code = invite(self.accounts, account.id)
        self.rights.record("invited", note=account.id)
        return code

    def close(self, account_id: str) -> None:
        self.rights.check("manage accounts")
        close_account(self.accounts, account_id)
        self.rights.record("closed an account", note=account_id)

    def set_admin(self, account_id: str, admin: bool) -> None:
        self.rights.check("manage accounts")
        set_admin(self.accounts, account_id, admin)
        self.rights.record("changed a role", note=f"{account_id}: {'admin' if admin else 'no admin'}")

    def _new_account(self, name: str, *, admin: bool) -> tuple[Account, str]:
        account = add_account(self.accounts, name, admin=admin, by=self.rights.account)
        code = invite(self.accounts, account.id)
        self.rights.record("invited", note=account.id)
        return account, code

    # --- one's own account ---------------------------------------------------------------------------------------

    def change_password(self, old: str, new: str) -> None:
        """Ends all other sessions of the account."""
        change_password(self.accounts, self.rights.account, old, new, keep=self.rights.mark)
        self.rights.record("changed the password")

    def rename(self, shown_as: str) -> None:
        rename(self.accounts, self.rights.account, shown_as.strip())

    def end_session(self, mark: str) -> None:
        end_session(self.accounts, self.rights.account, mark)
        self.rights.record("ended a session")
