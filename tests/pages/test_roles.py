"""Every page for every role, roles and sessions that change while a page is open, and the pages about people."""

import ast
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts import identity
from semiprune_core import steps
from semiprune_core.accounts import (
    RANKS,
    accounts_of,
    begin_session,
    end_session,
    find,
    invited,
    members_of,
    password_is,
    sessions_of,
    set_role,
    trail,
)
from semiprune_core.accounts.table import PAGES
from semiprune_core.errors import ForbiddenError, UnsafePathError
from semiprune_core.importing import ImportSettings, begin_import, begin_project
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import open_store
from semiprune_core.project import rights
from tests.support.people import WORDS, make_hashes_cheap
from tests.support.team import MINE, OTHER, ROLES, make_project, make_team
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
MAIN = str(ROOT / "pages" / "main.py")


@pytest.fixture
def space(workspace, monkeypatch):
    make_hashes_cheap(monkeypatch)
    make_project(workspace, MINE)
    make_project(workspace, OTHER, seed=1)
    make_team(workspace)
    return workspace


@pytest.fixture
def come(space, monkeypatch):
    """Open the app as somebody, on a page."""

    def run(name, page="home", project=MINE):
        cookie = begin_session(accounts_of(space), name) if name != "nobody" else ""
        monkeypatch.setattr(identity, "_bearer", lambda _: cookie)
        monkeypatch.setattr(identity, "_address", lambda: "127.0.0.1")
        app = AppTest.from_file(MAIN, default_timeout=PATIENCE)
        if project is not None:
            app.session_state["project"] = project
        app.run()
        return app.switch_page(f"{page}.py").run() if page != "home" else app

    return run


def words(app):
    parts = [*app.markdown, *app.caption, *app.error, *app.info, *app.header, *app.title, *app.success, *app.code]
    return " ".join(part.value for part in parts)


def goes_to(app, page):
    """Open a page of the open project, if it is among those that there are; whether it was."""
    try:
        app.switch_page(f"{page}.py").run()
    except ValueError as error:
        assert "Could not find a navigation page" in str(error)
        return False
    return app.session_state[identity.PAGE][0] == page


def test_every_page_has_a_line_and_every_line_a_page():
    files = {path.stem for path in (ROOT / "pages").glob("*.py")} - {"__init__", "main"}
    assert files == {line.name for line in PAGES}
    assert set(steps.BY_KEY) <= files


@pytest.mark.parametrize("name", ["nobody", *ROLES])
def test_every_page_opens_for_the_roles_of_the_table_alone(come, name):
    rank = {"nobody": -1, "otto": 0}.get(name)
    rank = RANKS[ROLES[name]] if rank is None else rank
    app = come(name)
    for line in PAGES:
        opened = goes_to(app, line.name)
        assert not app.exception, (line.name, app.exception)
        may = rank >= RANKS[line.least]
        if name == "otto" and line.name == "label":  # of nobody's project, as he labels in another one
            assert "No project is open" in words(app)
            may = True
        assert opened == may, line.name
        assert name != "nobody" or "not logged in" in words(app)


def test_a_labeler_sees_the_deck_and_how_far_it_is(come, space):
    app = come("lea", "label")
    assert not app.exception and "Label: one" in words(app)
    assert not app.text_input  # no name to type
    assert [button.label for button in app.button] == []
    home = come("lea")
    assert [button.label for button in home.button] == ["Label"]


def test_home_shows_the_projects_that_are_ones_own(come):
    assert [mark.value for mark in come("otto", project=None).markdown] == ["#### two"]
    assert "#### one" in words(come("eve", project=None)) and "#### two" not in words(come("eve", project=None))
    everything = words(come("root", project=None))
    assert "#### one" in everything and "#### two" in everything


def test_only_owners_copy_and_delete_and_only_admins_make_projects(come):
    labels = {name: {button.label for button in come(name).button} for name in ("eve", "olga", "root")}
    assert "Delete" not in labels["eve"] and "Make a copy" not in labels["eve"]
    assert {"Delete", "Make a copy"} <= labels["olga"] and "New project" not in labels["olga"]
    assert {"Delete", "New project"} <= labels["root"]


def test_whoever_copies_a_project_owns_the_copy(come, space):
    app = come("olga")
    app.button(key=f"copy_{MINE}").click().run()
    copy = next(name for name in space.names() if name not in (MINE, OTHER))
    assert [(account.id, role) for account, role in members_of(accounts_of(space), copy)] == [("olga", "owner")]


# --- what changes while a page is open --------------------------------------------------------------------------------


def test_a_write_after_the_role_was_lowered_is_refused_in_words(come, space):
    app = come("eve", "label")
    app.segmented_control(key="label_view").set_value("classes").run()
    set_role(accounts_of(space), MINE, "eve", "labeler")
    before = open_store(space.project(MINE)).last_seq
    store = open_store(space.project(MINE))
    with rights.acted_by(identity.SessionRights(accounts_of(space), begin_session(accounts_of(space), "eve"))):
        with pytest.raises(ForbiddenError, match="labeler there"):
            store.classes.add(["bird"], annotator="eve")
        with pytest.raises(ForbiddenError, match="labeler there"):
            space.project(MINE).update(features=False)
    assert store.last_seq == before
    app.run()
    assert "Label: one" in words(app)  # the labelers' page now


def test_an_ended_session_shows_a_sentence_and_nothing_else(come, space):
    app = come("eve", "pool")
    accounts = accounts_of(space)
    for session in sessions_of(accounts, "eve"):
        end_session(accounts, "eve", session.mark)
    app.run()
    assert "not logged in any more" in words(app) and not app.button and "Pool" not in words(app)


def test_a_fragment_looks_whether_its_page_is_still_ones_own(come, space):
    app = AppTest.from_string(
        "import streamlit as st\n"
        "from pages.parts import errors, identity\n"
        "st.session_state[identity.PAGE] = ('train', 'one')\n"
        "with errors.shown():\n    st.write('numbers of the run')\n"
    )
    come("lea")
    assert "numbers" not in words(app.run()) and "no longer yours" in words(app)
    come("eve")
    assert "numbers" in words(app.run())


def test_every_fragment_and_dialog_asks():
    """Streamlit runs them without the frame around the page, so each is a ``shown`` function."""
    for path in (ROOT / "pages").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                marks = [ast.unparse(mark) for mark in node.decorator_list]
                if any(mark.startswith(("st.fragment", "st.dialog")) for mark in marks):
                    assert "errors.shown()" in marks, f"{path.name}: {node.name}"


def test_another_account_in_the_same_tab_finds_nothing_of_the_first(come, space, monkeypatch):
    app = come("eve", "label")
    app.session_state["something of eve"] = "secret"
    cookie = begin_session(accounts_of(space), "lea")
    monkeypatch.setattr(identity, "_bearer", lambda _: cookie)
    app.run()
    assert "something of eve" not in app.session_state


# --- folders of the server --------------------------------------------------------------------------------------------


def test_only_admins_read_folders_of_the_server(space, class_folder):
    settings = ImportSettings(source=SourceSpec("folder", str(class_folder)).to_json())
    accounts = accounts_of(space)
    acts = {name: identity.SessionRights(accounts, begin_session(accounts, name)) for name in ("eve", "olga", "root")}
    for name in ("eve", "olga"):
        with rights.acted_by(acts[name]):
            with pytest.raises(UnsafePathError):
                begin_import(space.project(MINE), settings, title="Adding")
            with pytest.raises((ForbiddenError, UnsafePathError)):
                begin_project(space, "Three", settings)
            with pytest.raises(ForbiddenError):
                space.allow_folder(class_folder)
    with rights.acted_by(acts["root"]):
        begin_import(space.project(MINE), settings, title="Adding")
    assert trail(accounts, project=MINE, search="started import")[0].account == "root"


# --- pages about people -----------------------------------------------------------------------------------------------


def test_an_owner_adds_somebody_new_who_gets_an_invite(come, space):
    app = come("olga", "members")
    app.text_input[0].set_value("Nora")
    app.button[0].click().run()
    assert not app.exception
    code = app.code[0].value.partition("?invite=")[2]
    assert invited(accounts_of(space), code).id == "Nora"
    assert ("Nora", "labeler") in [(account.id, role) for account, role in members_of(accounts_of(space), MINE)]
    app.run()
    assert not app.code  # shown once
    assert code not in str(trail(accounts_of(space)))


def test_an_owner_changes_and_removes_members_and_stays_one(come, space):
    app = come("olga", "members")
    app.selectbox(key="role_lea_labeler").set_value("engineer").run()
    assert accounts_of(space).state().role(MINE, "lea") == "labeler"  # until it is saved
    app.button(key="save_lea").click().run()
    assert accounts_of(space).state().role(MINE, "lea") == "engineer"
    app.button(key="remove_lea").click().run()
    assert accounts_of(space).state().role(MINE, "lea") is None
    app.button(key="remove_olga").click().run()
    assert "only owner" in words(app) and accounts_of(space).state().role(MINE, "olga") == "owner"
    assert {entry.act for entry in trail(accounts_of(space), project=MINE)} >= {"changed a role", "removed a member"}


def test_an_owner_sends_no_new_password_link_for_an_account_in_use(come, space):
    app = come("olga", "members")
    assert not [button for button in app.button if button.label == "New link"]
    accounts = accounts_of(space)
    acts = identity.Managing(identity.SessionRights(accounts, begin_session(accounts, "olga")))
    for name in ("root", "eve"):
        with pytest.raises(ForbiddenError):
            acts.invite(name)
    with pytest.raises(ForbiddenError):
        acts.trail(None)
    with pytest.raises(ForbiddenError):
        acts.add_member(OTHER, "olga", "owner")


def test_an_admin_adds_and_closes_accounts(come, space):
    app = come("root", "people")
    app.text_input[0].set_value("Nora")
    app.button[0].click().run()
    assert "?invite=" in app.code[0].value
    app.button(key="close_lea").click().run()
    assert find(accounts_of(space), "lea").is_closed and not app.exception


def test_one_changes_ones_own_password_and_ends_ones_sessions(come, space):
    accounts = accounts_of(space)
    begin_session(accounts, "lea")
    app = come("lea", "account")
    [end] = [button for button in app.button if button.label == "End"]
    end.click().run()
    assert len(sessions_of(accounts, "lea")) == 1
    for field, text in zip(app.text_input[1:], (WORDS, "another password", "another password"), strict=True):
        field.set_value(text)
    next(button for button in app.button if button.label == "Change password").click().run()
    assert password_is(accounts, "lea", "another password")
    assert not app.exception


def test_the_trail_is_searched(come, space):
    accounts = accounts_of(space)
    with rights.acted_by(identity.SessionRights(accounts, begin_session(accounts, "olga"))):
        rights.record("drew", MINE, "600 images")
        rights.record("stopped a job", MINE)
    app = come("olga", "trail")
    assert list(app.dataframe[0].value["What"])[:2] == ["stopped a job", "drew"]
    app.text_input(key="trail_search").set_value("600").run()
    assert list(app.dataframe[0].value["What"]) == ["drew"]


def test_without_accounts_there_are_no_such_pages(workspace):
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE).run()
    assert identity.current() is None and not app.exception
    assert not any(goes_to(app, page) for page in ("members", "trail", "people", "account"))
