"""A labeler comes in, labels, is put out of the project and back into it while the page is open, and leaves."""

import pytest
from playwright.sync_api import expect

from semiprune_core.accounts import accounts_of, remove_member, set_role
from semiprune_core.labeling import open_store
from semiprune_core.project.workspace import Workspace
from tests.browser.serving import Server, free_port
from tests.support.people import WORDS, make_hashes_cheap
from tests.support.team import MINE, make_project, make_team

pytestmark = pytest.mark.browser


@pytest.fixture
def running(tmp_path):
    """An app of its own, since from the first account on the other tests could not come in; accounts come later."""
    workspace = Workspace.open(tmp_path / "home")
    make_project(workspace, MINE)
    server = Server(workspace.root, tmp_path, free_port(), tmp_path / "log")
    server.start()
    yield server
    server.kill()


def test_a_labeler_logs_in_labels_and_logs_out(running, chromium, monkeypatch):
    make_hashes_cheap(monkeypatch)
    workspace = Workspace.open(running.home)
    make_team(workspace)
    context = chromium(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.goto(f"{running.url}/export")
    page.get_by_label("Name").fill("lea")
    page.get_by_label("Password").fill("not the password")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_have_text("Name or password is not right.")
    page.get_by_label("Password").fill(WORDS)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("This needs the role engineer")).to_be_visible()

    page.get_by_role("link", name="Projects", exact=True).click()
    page.get_by_role("button", name="Label", exact=True).click()
    page.wait_for_selector(".stage[data-image]:not([data-image=''])")
    expect(page.get_by_label("Your name")).to_have_count(0)
    page.keyboard.press("1")
    expect(page.get_by_text("1 of 12", exact=True)).to_be_visible()
    page.keyboard.press("2")
    expect(page.get_by_text("All saved", exact=True)).to_be_visible()
    expect(page.get_by_text("2 of 12", exact=True)).to_be_visible()

    remove_member(accounts_of(workspace), MINE, "lea")
    page.keyboard.press("1")
    expect(page.get_by_text("There is no project 'one'", exact=False).first).to_be_visible()
    events = open_store(workspace.project(MINE)).events()
    assert [(event["annotator"], event["class_id"]) for event in events] == [("lea", 0), ("lea", 1)]
    set_role(accounts_of(workspace), MINE, "lea", "labeler")
    expect(page.get_by_text("All saved", exact=True)).to_be_visible()
    assert len(open_store(workspace.project(MINE)).events()) == 3

    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Password")).to_be_visible()
    page.goto(f"{running.url}/label?project={MINE}")
    expect(page.get_by_label("Password")).to_be_visible()
    assert accounts_of(workspace).state().sessions == {}
    context.close()
