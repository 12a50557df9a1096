"""Accounts: ids, passwords, invites, sessions, members, the trail."""

import sqlite3
import subprocess
import sys

import pytest
from sqlalchemy.exc import DBAPIError

from semiprune_core import accounts as house
from semiprune_core.accounts import passwords, schema
from semiprune_core.accounts.book import FILE, IDLE_MS, LONGEST_MS, Accounts
from semiprune_core.accounts.people import INVITE_MS
from semiprune_core.accounts.sessions import MOST, browser_of
from semiprune_core.accounts.table import ACTS, RANKS, TABLE
from semiprune_core.copies import archive_project, archived_projects, bring_back
from semiprune_core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidSettingError,
    SemiPruneError,
    UnknownNameError,
    WorkspaceError,
)
from semiprune_core.project import rights
from semiprune_core.project.workspace import Workspace
from tests.support.people import WORDS


@pytest.fixture
def ada(accounts):
    return house.add_account(accounts, "Ada Lovelace", password=WORDS)


@pytest.fixture
def project(workspace):
    return workspace.create("Pool").name


# --- accounts and passwords -------------------------------------------------------------------------------------------


def test_asking_whether_there_are_accounts_makes_no_file(workspace):
    accounts = Accounts(workspace.root / FILE)
    assert not accounts.are_on and house.trail(accounts) == []
    assert not accounts.path.exists()


def test_the_first_account_is_an_admin(workspace):
    accounts = Accounts(workspace.root / FILE)
    with pytest.raises(InvalidSettingError, match="--admin"):
        house.add_account(accounts, "ada", password=WORDS)
    assert not accounts.are_on


@pytest.mark.parametrize(
    "name", ["ada lovelace", "ADA LOVELACE", " Ada Lovelace ", "Ada Lovelace".replace("A", "\uff21")]
)
def test_two_ids_never_differ_in_case_or_spelling_alone(accounts, ada, name):
    with pytest.raises(ConflictError):
        house.add_account(accounts, name)
    assert house.find(accounts, name) == ada


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 65, "reference", "\u202eada"])
def test_an_id_is_a_name_that_a_label_can_carry(accounts, name):
    with pytest.raises(SemiPruneError):
        house.add_account(accounts, name)


@pytest.mark.parametrize("password", ["", "short", "aaaaaaaaaa", "        ", "Ada Lovelace", "x1y2" * 200])
def test_weak_passwords_are_refused(accounts, password):
    with pytest.raises(InvalidSettingError) as refused:
        house.add_account(accounts, "Ada Lovelace", password=password)
    assert refused.value.code == "WEAK_PASSWORD"


def test_a_password_is_kept_as_a_salted_slow_hash_alone(accounts, ada, monkeypatch):
    stored = [passwords.hash_of(WORDS) for _ in range(2)]
    assert stored[0] != stored[1] and all(passwords.matches(WORDS, one) for one in stored)
    assert not passwords.matches("correct horsf", stored[0])
    monkeypatch.setattr(passwords, "COST", 5)  # an older hash is still checked by its own numbers
    assert passwords.matches(WORDS, stored[0])
    assert WORDS.encode() not in accounts.path.read_bytes()


def test_an_unknown_name_costs_as_much_as_a_wrong_password(accounts, ada, monkeypatch):
    calls = []
    real = passwords._scrypt
    monkeypatch.setattr(passwords, "_scrypt", lambda *args: calls.append(args[2:]) or real(*args))
    assert not house.password_is(accounts, ada.id, "wrong password")
    assert not house.password_is(accounts, "nobody", "wrong password")
    assert calls[0] == calls[1]


def test_a_new_password_ends_all_other_sessions(accounts, ada):
    here, there = (house.begin_session(accounts, ada.id) for _ in range(2))
    mark = house.session_of(accounts, here)[0].mark
    with pytest.raises(ForbiddenError):
        house.change_password(accounts, ada.id, "not it at all", "another password", keep=mark)
    house.change_password(accounts, ada.id, WORDS, "another password", keep=mark)
    assert house.session_of(accounts, here) is not None and house.session_of(accounts, there) is None
    assert house.password_is(accounts, ada.id, "another password") and not house.password_is(accounts, ada.id, WORDS)


def test_a_closed_account_is_out_at_once_and_its_name_stays_taken(accounts, ada, project):
    house.set_role(accounts, project, ada.id, "owner")
    cookie = house.begin_session(accounts, ada.id)
    house.close_account(accounts, ada.id)
    assert house.session_of(accounts, cookie) is None
    assert not house.password_is(accounts, ada.id, WORDS)
    assert accounts.state().roles_of(ada.id) == {}
    with pytest.raises(ConflictError):
        house.add_account(accounts, ada.id)


def test_the_last_admin_stays_one(accounts, ada):
    for act in (lambda: house.close_account(accounts, "Root"), lambda: house.set_admin(accounts, "Root", False)):
        with pytest.raises(InvalidSettingError, match="only admin"):
            act()
    house.set_admin(accounts, ada.id, True)
    house.set_admin(accounts, "Root", False)
    assert not house.get(accounts, "Root").is_admin


# --- invites ----------------------------------------------------------------------------------------------------------


def test_an_invite_is_used_once(accounts):
    bob = house.add_account(accounts, "bob")
    assert not house.password_is(accounts, bob.id, "")
    code = house.invite(accounts, bob.id)
    assert house.invited(accounts, code).id == bob.id
    with pytest.raises(InvalidSettingError):
        house.accept_invite(accounts, code, "short")
    house.accept_invite(accounts, code, WORDS)
    assert house.password_is(accounts, bob.id, WORDS)
    with pytest.raises(ForbiddenError):
        house.accept_invite(accounts, code, "another password")
    assert house.password_is(accounts, bob.id, WORDS)


def test_an_invite_expires_and_a_newer_one_voids_it(accounts, clock):
    bob = house.add_account(accounts, "bob")
    first, second = house.invite(accounts, bob.id), house.invite(accounts, bob.id)
    assert house.invited(accounts, first) is None and house.invited(accounts, second) is not None
    clock.now += INVITE_MS / 1000
    assert house.invited(accounts, second) is None
    assert first.encode() not in accounts.path.read_bytes()


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_only_a_hash_of_the_cookie_is_kept(accounts, ada):
    cookie = house.begin_session(accounts, ada.id)
    assert len(cookie) >= 43 and cookie.encode() not in accounts.path.read_bytes()
    assert house.session_of(accounts, cookie)[1] == ada
    assert house.session_of(accounts, house.session_of(accounts, cookie)[0].mark) is None
    assert house.session_of(accounts, "") is None


def test_a_session_ends_after_three_idle_days_and_after_thirty_in_any_case(accounts, ada, clock):
    idle, busy = house.begin_session(accounts, ada.id), house.begin_session(accounts, ada.id)
    begun = clock.now
    while clock.now + 2 * 24 * 3600 <= begun + LONGEST_MS / 1000:
        clock.now += 2 * 24 * 3600
        house.give_sign_of_life(accounts, house.session_of(accounts, busy)[0])
    assert house.session_of(accounts, idle) is None and house.session_of(accounts, busy) is not None
    clock.now = begun + LONGEST_MS / 1000 + 1
    assert house.session_of(accounts, busy) is None
    assert IDLE_MS < LONGEST_MS


def test_a_person_ends_sessions_of_their_own_alone(accounts, ada):
    bob = house.add_account(accounts, "bob")
    cookie = house.begin_session(accounts, ada.id)
    mark = house.session_of(accounts, cookie)[0].mark
    house.end_session(accounts, bob.id, mark)
    assert house.session_of(accounts, cookie) is not None
    house.end_session(accounts, ada.id, mark)
    assert house.session_of(accounts, cookie) is None


def test_sessions_do_not_pile_up(accounts, ada):
    for _ in range(MOST + 5):
        house.begin_session(accounts, ada.id)
    assert len(house.sessions_of(accounts, ada.id)) == MOST


def test_a_session_that_another_process_ends_is_over_at_once(accounts, ada):
    cookie = house.begin_session(accounts, ada.id)
    assert house.session_of(accounts, cookie) is not None
    other = sqlite3.connect(accounts.path)
    other.execute("DELETE FROM account_sessions")
    other.commit()
    other.close()
    assert house.session_of(accounts, cookie) is None


@pytest.mark.parametrize(
    "agent, words",
    [
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36", "Chrome on Linux"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) Version/17 Safari/605.1", "Safari on macOS"),
        ("<script>", ""),
    ],
)
def test_a_session_is_named_by_browser_and_system(agent, words):
    assert browser_of(agent) == words


# --- members and roles ------------------------------------------------------------------------------------------------


def test_a_role_counts_in_its_project_alone(accounts, ada, project):
    house.set_role(accounts, project, ada.id, "engineer")
    acts = house.SessionRights(accounts, house.begin_session(accounts, ada.id))
    assert acts.allows("run", project) and not acts.allows("run", "other") and not acts.allows("delete", project)
    with pytest.raises(ForbiddenError, match="engineer there"):
        acts.check("delete", project)
    with pytest.raises(ForbiddenError, match="no member"):
        acts.check("run", "other")
    house.set_role(accounts, project, ada.id, "labeler")
    assert not acts.allows("run", project)
    house.remove_member(accounts, project, ada.id)
    assert not acts.allows("open", project)


@pytest.mark.parametrize("line", ACTS, ids=lambda line: line.name)
def test_every_act_is_allowed_from_its_role_on(accounts, ada, project, line):
    acts = house.SessionRights(accounts, house.begin_session(accounts, ada.id))
    for role in house.ROLES:
        house.set_role(accounts, project, "Root", "owner")
        house.set_role(accounts, project, ada.id, role)
        assert acts.allows(line.name, project) == (RANKS[role] >= RANKS[line.least])
    house.set_admin(accounts, ada.id, True)
    assert acts.allows(line.name, project)


def test_asking_about_a_project_without_naming_one_is_a_defect(accounts, ada):
    acts = house.SessionRights(accounts, house.begin_session(accounts, ada.id))
    with pytest.raises(ValueError, match="none was named"):
        acts.allows("delete")
    with pytest.raises(KeyError):
        acts.allows("fly", "pool")


def test_every_line_names_a_role_that_there_is():
    lines = [line for lines in TABLE.values() for line in lines]
    assert {line.least for line in lines} <= set(RANKS)
    assert all(line.anywhere for line in lines if line.least == "account")


def test_a_project_keeps_an_owner(accounts, ada, project):
    house.set_role(accounts, project, ada.id, "owner")
    for act in (
        lambda: house.set_role(accounts, project, ada.id, "engineer"),
        lambda: house.remove_member(accounts, project, ada.id),
    ):
        with pytest.raises(InvalidSettingError, match="only owner"):
            act()
    house.set_role(accounts, project, "Root", "owner")
    house.remove_member(accounts, project, ada.id)
    assert [(account.id, role) for account, role in house.members_of(accounts, project)] == [("Root", "owner")]


def test_a_role_must_be_one(accounts, ada, project):
    with pytest.raises(InvalidSettingError, match="labeler, engineer, owner"):
        house.set_role(accounts, project, ada.id, "admin")


# --- whose rights count -----------------------------------------------------------------------------------------------


def test_where_nobody_acts_everything_is_allowed():
    rights.check("delete", "pool")
    assert rights.allows("delete", "pool") and rights.account() is None


def test_a_request_acts_for_its_session_and_the_app_for_itself(accounts, ada, project):
    acts = house.SessionRights(accounts, house.begin_session(accounts, ada.id))
    with rights.acted_by(acts):
        assert rights.account() == ada.id and not rights.allows("run", project)
        with pytest.raises(ForbiddenError, match="another name"):
            rights.check_own("bob")
        with rights.acted_by_the_app():
            assert rights.allows("run", project)
        with rights.acted_by(None):
            assert not rights.allows("run", project)
    assert rights.acting() is None


def test_what_was_archived_is_brought_back_by_an_admin_who_then_owns_it(accounts, ada, workspace):
    workspace.create("Archived")
    archive_project(workspace, "archived")
    root = house.find(accounts, "Root")
    with rights.acted_by(house.SessionRights(accounts, house.begin_session(accounts, ada.id))):
        assert archived_projects(workspace) == []
        with pytest.raises(WorkspaceError, match="no archived project"):
            bring_back(workspace, next((workspace.root / ".archive").iterdir()).name)
    with rights.acted_by(house.SessionRights(accounts, house.begin_session(accounts, root.id))):
        (archived,) = archived_projects(workspace)
        bring_back(workspace, archived.folder)
    assert house.members_of(accounts, "archived") == [(root, "owner")]


def test_an_ended_session_may_nothing(accounts, ada, project):
    cookie = house.begin_session(accounts, ada.id)
    acts = house.SessionRights(accounts, cookie)
    house.end_session(accounts, ada.id, acts.mark)
    for ask in (lambda: acts.account, lambda: acts.allows("open", project), lambda: acts.record("run", project)):
        with pytest.raises(ForbiddenError) as refused:
            ask()
        assert refused.value.code == "SESSION_OVER"


# --- the trail --------------------------------------------------------------------------------------------------------


def test_the_trail_is_found_by_words_and_only_added_to(accounts, ada, project):
    house.add_to_trail(accounts, ada.id, "drew", project=project, note="600 images\nby 10%", address="10.0.0.1")
    house.add_to_trail(accounts, "Root", "deleted", project="other")
    assert [entry.act for entry in house.trail(accounts)] == ["deleted", "drew"]
    assert [entry.note for entry in house.trail(accounts, project=project)] == ["600 images by 10%"]
    assert [entry.act for entry in house.trail(accounts, search="ADA 10%")] == ["drew"]
    assert house.trail(accounts, search="%") == house.trail(accounts, search="10%")
    for change in (schema.trail.update().values(account="bob"), schema.trail.delete()):
        with pytest.raises(DBAPIError, match="only added to"):
            accounts.write(lambda connection, change=change: connection.execute(change))
    assert len(house.trail(accounts)) == 2


def test_no_cell_of_the_trail_is_a_formula(accounts):
    house.add_to_trail(accounts, "=cmd", "drew", note="@SUM(1)")
    assert list(house.as_rows(house.trail(accounts)))[1][1:5] == ["'=cmd", "drew", "", "'@SUM(1)"]


# --- the file ---------------------------------------------------------------------------------------------------------


def test_accounts_of_a_newer_version_are_refused_in_words(accounts):
    accounts.write(lambda connection: connection.execute(schema.schema_steps.insert().values(step=99)))
    with pytest.raises(WorkspaceError, match="newer SemiPrune Studio"):
        Accounts(accounts.path).state()


def test_a_damaged_file_lets_nobody_in(workspace):
    (workspace.root / FILE).write_bytes(b"no database at all, but long enough to have a count" * 20)
    with pytest.raises(WorkspaceError):
        _ = Accounts(workspace.root / FILE).are_on


def test_many_processes_add_one_account_of_a_name(accounts):
    code = (
        "import sys\nfrom pathlib import Path\nfrom semiprune_core.accounts import Accounts, add_account, passwords\n"
        "from semiprune_core.errors import ConflictError\npasswords.COST = 4\n"
        "try:\n    add_account(Accounts(Path(sys.argv[1])), 'bob', password='correct horse')\n    print('added')\n"
        "except ConflictError:\n    print('taken')\n"
    )
    words = [sys.executable, "-c", code, str(accounts.path)]
    children = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert sorted(child.communicate()[0].strip() for child in children) == ["added", "taken", "taken"]


def test_an_unknown_account_is_named(accounts):
    with pytest.raises(UnknownNameError, match="bob"):
        house.get(accounts, "bob")


def test_a_workspace_has_its_own_accounts(tmp_path, accounts):
    assert not house.accounts_of(Workspace.open(tmp_path / "other")).are_on
