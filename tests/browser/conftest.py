"""The real app in a real browser: one server per test module, one Chromium for all."""

from __future__ import annotations

import os
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.browser.label_support import DeckPage, Studio, open_context
from tests.browser.serving import Server, free_port

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)  # a busy machine is slow, not wrong


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("app")
    (folder / "pictures").mkdir()
    running = Server(folder / "home", folder / "pictures", free_port(), folder / "app.log")
    running.start()
    yield running
    running.kill()
    assert "Traceback" not in running.log.read_text(), running.log.read_text()


@pytest.fixture(scope="session")
def chromium():
    named = os.environ.get("SEMIPRUNE_BROWSER")
    path = named or next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.fail("No Chromium for the browser tests. Run `make tools`, or set SEMIPRUNE_BROWSER to its path.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, server):
    """A fresh page at the app's front door; a script error on it fails the test."""
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    tab = context.new_page()
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(server.url)
    yield tab
    context.close()
    assert errors == []


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    """The app over small projects, for the label page."""
    studio = Studio(tmp_path_factory.mktemp("home"))
    studio.start()
    yield studio
    studio.kill()


@pytest.fixture
def context(chromium):
    """A fresh browser profile of the annotator ada."""
    context = open_context(chromium)
    yield context
    context.close()


@pytest.fixture
def deck(studio, context, request):
    """The label page with a project of its own."""
    name = f"t-{abs(hash(request.node.nodeid)):x}"
    return DeckPage(studio, studio.project(name), context).open()
