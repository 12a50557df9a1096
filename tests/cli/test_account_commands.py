"""``accounts`` and ``audit`` on the command line."""

import csv
import io
import json

import pytest

from semiprune_core.accounts import accounts_of, invited, password_is, set_role, trail
from semiprune_core.cli import main
from tests.support.people import WORDS, make_hashes_cheap


@pytest.fixture
def run(workspace, capsys, monkeypatch):
    """A command with what is typed into it; its answer, or its sentence."""
    make_hashes_cheap(monkeypatch)

    def command(*words, typed=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        code = main([*words, "--home", str(workspace.root)])
        out, err = capsys.readouterr()
        return out if code == 0 else err

    return command


def test_accounts_begin_with_an_admin(run, workspace):
    assert "No accounts yet" in run("accounts")
    assert "--admin" in run("accounts", "add", "ada", typed=f"{WORDS}\n")
    assert "can be guessed" in run("accounts", "add", "ada", "--admin", typed="short\n")
    assert not accounts_of(workspace).are_on
    assert "everybody needs an account" in run("accounts", "add", "Ada", "--admin", typed=f"{WORDS}\n")
    assert password_is(accounts_of(workspace), "Ada", WORDS)
    assert run("accounts").strip() == "Ada  open  admin"
    assert accounts_of(workspace).path.stat().st_mode & 0o077 == 0


def test_an_invite_is_printed_as_a_link(run, workspace):
    run("accounts", "add", "Ada", "--admin", typed=f"{WORDS}\n")
    value = json.loads(run("accounts", "add", "bob", "--invite", "--url", "https://prune.example.org/", "--json"))
    assert value["invite"].startswith("https://prune.example.org/?invite=")
    assert invited(accounts_of(workspace), value["invite"].partition("=")[2]).id == "bob"
    assert "bob  invited" in run("accounts")


def test_roles_and_closing(run, workspace):
    project = workspace.create("Pool").name
    run("accounts", "add", "Ada", "--admin", typed=f"{WORDS}\n")
    run("accounts", "add", "bob", typed=f"{WORDS}\n")
    assert "engineer of pool" in run("accounts", "role", "bob", project, "engineer")
    assert "Write: semiprune accounts role" in run("accounts", "role", "bob")
    run("accounts", "role", "bob", project, "none")
    assert accounts_of(workspace).state().role(project, "bob") is None
    assert "only admin" in run("accounts", "close", "ada")
    run("accounts", "admin", "bob", "yes")
    run("accounts", "close", "ada")
    run("accounts", "password", "bob", typed="another password\n")
    assert password_is(accounts_of(workspace), "bob", "another password")
    assert "Ada  closed" in run("accounts")


def test_the_command_line_does_everything_and_is_in_the_trail(run, workspace):
    project = workspace.create("Pool").name
    run("accounts", "add", "Ada", "--admin", typed=f"{WORDS}\n")
    set_role(accounts_of(workspace), project, "Ada", "owner")
    assert "pool" in run("projects")
    rows = list(csv.reader(io.StringIO(run("audit", "--csv"))))
    assert rows[0][:3] == ["at", "account", "act"] and rows[1][1:3] == ["command line", "added an account"]
    assert "trail is empty" in run("audit", project)
    assert "added an account" in run("audit", "--search", "Ada")
    assert WORDS not in str(trail(accounts_of(workspace)))
