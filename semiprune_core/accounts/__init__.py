"""Accounts, roles per project, sessions, and the trail of who did what. Off until the first account is added."""

from semiprune_core.accounts.acting import CommandLine, SessionRights
from semiprune_core.accounts.book import Account, Accounts, Session, accounts_of
from semiprune_core.accounts.managing import Managing
from semiprune_core.accounts.members import forget_members, make_owner, members_of, remove_member, set_role
from semiprune_core.accounts.people import (
    accept_invite,
    add_account,
    change_password,
    close_account,
    find,
    get,
    invite,
    invited,
    password_is,
    rename,
    set_admin,
    set_password,
)
from semiprune_core.accounts.sessions import begin_session, end_session, give_sign_of_life, session_of, sessions_of
from semiprune_core.accounts.table import RANKS, ROLES, TABLE, has_line, line_of
from semiprune_core.accounts.trail import COMMAND_LINE, add_to_trail, as_rows, trail

__all__ = [
    "COMMAND_LINE",
    "RANKS",
    "ROLES",
    "TABLE",
    "Account",
    "Accounts",
    "CommandLine",
    "Managing",
    "Session",
    "SessionRights",
    "accept_invite",
    "accounts_of",
    "add_account",
    "add_to_trail",
    "as_rows",
    "begin_session",
    "change_password",
    "close_account",
    "end_session",
    "find",
    "forget_members",
    "get",
    "give_sign_of_life",
    "has_line",
    "invite",
    "invited",
    "line_of",
    "make_owner",
    "members_of",
    "password_is",
    "remove_member",
    "rename",
    "session_of",
    "sessions_of",
    "set_admin",
    "set_password",
    "set_role",
    "trail",
]
