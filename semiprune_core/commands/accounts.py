"""``accounts`` and ``audit``: people, their roles in projects, and the trail of who did what."""

from __future__ import annotations

import argparse
import csv
import getpass
import io
import sys
from collections.abc import Callable
from typing import Any

from semiprune_core.accounts import (
    COMMAND_LINE,
    ROLES,
    Accounts,
    accounts_of,
    add_account,
    add_to_trail,
    as_rows,
    close_account,
    get,
    invite,
    remove_member,
    set_admin,
    set_password,
    set_role,
    trail,
)
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.errors import InvalidSettingError
from semiprune_core.paths import shown
from semiprune_core.project.workspace import Workspace

NOBODY = "No accounts yet. Until the first one is added, the app is opened by its start link or its password."


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", default="list", choices=tuple(ACTIONS), help="the action (default: list)")
    parser.add_argument("name", nargs="?", help="the account")
    parser.add_argument("project", nargs="?", help="role: the project")
    parser.add_argument("role", nargs="?", choices=(*ROLES, "none"), help="role: what the account is there")
    parser.add_argument("--admin", action="store_true", help="add: an admin of the server")
    parser.add_argument("--shown", default="", metavar="TEXT", help="add: the name that others see")
    parser.add_argument("--invite", action="store_true", help="add: print an invite instead of asking for a password")
    parser.add_argument("--url", default="", metavar="URL", help="the app's address, for the link of an invite")


def _run(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    accounts = accounts_of(workspace)
    if args.what != "list" and not args.name:
        raise InvalidSettingError(f"Which account? Write: semiprune accounts {args.what} NAME")
    return ACTIONS[args.what](args, workspace, accounts)


def _list(args: argparse.Namespace, workspace: Workspace, accounts: Accounts) -> Outcome:
    state = accounts.state()
    rows: list[dict[str, Any]] = [
        {
            "id": account.id,
            "shown": account.shown,
            "admin": account.is_admin,
            "state": "closed" if account.is_closed else "open" if account.has_password else "invited",
            "roles": state.roles_of(account.id),
        }
        for account in sorted(state.accounts.values(), key=lambda account: account.id.casefold())
    ]
    return Outcome(rows, "\n".join(map(_line, rows)) or NOBODY)


def _line(row: dict[str, Any]) -> str:
    roles = ", ".join(f"{role} of {project}" for project, role in sorted(row["roles"].items()))
    words = [shown(row["id"], 64), row["state"], "admin" if row["admin"] else "", roles]
    return "  ".join(filter(None, words))


def _add(args: argparse.Namespace, workspace: Workspace, accounts: Accounts) -> Outcome:
    first = not accounts.are_on
    if first and not args.admin:
        raise InvalidSettingError("The first account must be an admin: add --admin.", code="NO_ADMIN")
    password = None if args.invite else read_password()
    account = add_account(
        accounts, args.name, shown_as=args.shown, admin=args.admin, password=password, by=COMMAND_LINE
    )
    _write_down(accounts, "added an account", f"{account.id}{', admin' if account.is_admin else ''}")
    words = [f"Added the account '{shown(account.id, 64)}'."]
    words += ["From now on everybody needs an account: the start link and the one password let nobody in."] * first
    value: dict[str, Any] = {"account": account.id, "admin": account.is_admin}
    if args.invite:
        value["invite"] = _link(args, accounts, account.id)
        words.append(f"Invite, to be used once within a week: {value['invite']}")
    return Outcome(value, " ".join(words))


def _invite(args: argparse.Namespace, workspace: Workspace, accounts: Accounts) -> Outcome:
    account = get(accounts, args.name)
    link = _link(args, accounts, account.id)
    _write_down(accounts, "invited", account.id)
    words = f"Whoever opens this chooses the password of '{shown(account.id, 64)}', once, within a week: {link}"
    return Outcome({"account": account.id, "invite": link}, words)


def _link(args: argparse.Namespace, accounts: Accounts, account_id: str) -> str:
    return f"{args.url.rstrip('/')}/?invite={invite(accounts, account_id)}"


def _password(args: argparse.Namespace, workspace: Workspace, accounts: Accounts) -> Outcome:
    account = get(accounts, args.name)
    set_password(accounts, account.id, read_password())
    _write_down(accounts, "changed a password", account.id)
    return Outcome({"account": account.id}, "The password was changed. All sessions of the account have ended.")


def _close(args: argparse.Namespace, workspace: Workspace, accounts: Accounts) -> Outcome:
    account = get(accounts, args.name)
    close_account(accounts, account.id)
    _write_down(accounts, "closed an account", account.id)
    return Outcome({"account": account.id}, "The account is closed. Its labels stay; an invite opens it again.")


def _admin(args: argparse.Namespace, workspace: Workspace, accounts: Accounts) -> Outcome:
    """``project`` is where yes or no was written."""
    account = get(accounts, args.name)
    if args.project not in ("yes", "no"):
        raise InvalidSettingError("Write: semiprune accounts admin NAME yes|no")
    set_admin(accounts, account.id, args.project == "yes")
    _write_down(accounts, "changed a role", f"{account.id}: admin {args.project}")
    return Outcome({"account": account.id, "admin": args.project == "yes"}, f"Admin: {args.project}.")


def _role(args: argparse.Namespace, workspace: Workspace, accounts: Accounts) -> Outcome:
    account = get(accounts, args.name)
    if not args.project or not args.role:
        raise InvalidSettingError(f"Write: semiprune accounts role NAME PROJECT {'|'.join((*ROLES, 'none'))}")
    project = workspace.project(args.project).name
    if args.role == "none":
        remove_member(accounts, project, account.id)
    else:
        set_role(accounts, project, account.id, args.role)
    _write_down(accounts, "changed a role", f"{account.id}: {args.role}", project)
    value = {"account": account.id, "project": project, "role": args.role}
    return Outcome(value, f"'{shown(account.id, 64)}' is {args.role} of {project} now.".replace("none", "no member"))


def _write_down(accounts: Accounts, act: str, note: str, project: str = "") -> None:
    add_to_trail(accounts, COMMAND_LINE, act, project=project, note=note)


def read_password() -> str:
    """A password typed twice without being shown, or the first line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass("Password: ")
    if getpass.getpass("Once more: ") != password:
        raise InvalidSettingError("The two passwords differ. Nothing was changed.")
    return password


ACTIONS: dict[str, Callable[[argparse.Namespace, Workspace, Accounts], Outcome]] = {
    "list": _list,
    "add": _add,
    "invite": _invite,
    "password": _password,
    "close": _close,
    "admin": _admin,
    "role": _role,
}


def _configure_audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="the project (default: everything)")
    parser.add_argument("--search", default="", metavar="WORDS", help="only entries with all of these words")
    parser.add_argument("--last", type=int, default=1000, metavar="N", help="how many, the latest (default: 1000)")
    parser.add_argument("--csv", action="store_true", help="as a CSV that is safe for spreadsheets")


def _audit(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name).name if args.name else None
    entries = trail(accounts_of(workspace), project=project, search=args.search, limit=args.last)
    value = [entry.to_json() for entry in entries]
    if args.csv:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(as_rows(entries))
        return Outcome(value, text.getvalue().rstrip("\n"))
    lines = [
        "  ".join(filter(None, (entry.at, *_who(entry.account), entry.act, entry.project, entry.note)))
        for entry in entries
    ]
    return Outcome(value, "\n".join(lines) or "The trail is empty: it begins with the first account.")


def _who(account: str) -> tuple[str]:
    return (shown(account, 64) or "somebody",)


COMMANDS.register("accounts")(Command("add, invite and close accounts, and give them roles", _configure, _run))
COMMANDS.register("audit")(Command("who did what, when", _configure_audit, _audit))
