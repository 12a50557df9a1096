"""The real app in a real browser: one server and one Chromium for all tests of a worker process."""

from __future__ import annotations

import os
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.browser.label_support import DeckPage, Studio, open_context
from tests.browser.serving import LET_IN
from tests.support.waiting import PATIENCE

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# nothing moves by itself: nobody looks at the frames
STILL = """
  const still = new CSSStyleSheet();
  still.replaceSync("*, *::before, *::after { animation: none !important; transition: none !important; }");
  document.adoptedStyleSheets = [still];
"""
expect.set_options(timeout=1000 * PATIENCE)


@pytest.fixture(scope="session")
def studio(tmp_path_factory):
    """The running app; every test makes projects of its own in it."""
    studio = Studio(tmp_path_factory.mktemp("studio"))
    studio.start()
    yield studio
    studio.kill()


@pytest.fixture
def server(studio):
    """The running app, which must not have said anything of an error when the test is over."""
    before = len(studio.log.read_text())
    yield studio
    said = studio.log.read_text()[before:]
    assert "Traceback" not in said, said


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """Opens a Chromium with a profile of its own on disk, which keeps the compiled code of the app."""
    named = os.environ.get("SEMIPRUNE_BROWSER")
    path = named or next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.fail("No Chromium for the browser tests. Run `make tools`, or set SEMIPRUNE_BROWSER to its path.")
    with sync_playwright() as playwright:

        def open_profile(**options):
            folder = tmp_path_factory.mktemp("profile")
            options |= {"executable_path": path, "args": FLAGS, "extra_http_headers": LET_IN}
            context = playwright.chromium.launch_persistent_context(folder, **options)
            context.add_init_script(STILL)
            return context

        yield open_profile


@pytest.fixture(scope="session")
def wide(chromium):
    """The profile of a person in a wide window. What it has loaded of the app it need not load again."""
    context = chromium(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(1000 * PATIENCE)
    yield context
    context.close()


@pytest.fixture
def page(wide, server):
    """A page of a person who was never here; a script error on it fails the test."""
    tab = wide.new_page()
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    yield tab
    leave(wide, server)
    assert errors == []


@pytest.fixture(scope="session")
def ada(chromium):
    """The profile of the annotator ada."""
    context = open_context(chromium)
    yield context
    context.close()


@pytest.fixture
def context(ada, studio):
    """The annotator ada, who was never here."""
    yield ada
    leave(ada, studio)


def leave(context, studio):
    """Close all pages but the empty one it began with, and forget everything but the app's own files."""
    blank, *tabs = context.pages
    for tab in tabs:
        tab.close()
    context.unroute_all()
    context.set_offline(False)
    kinds = "cookies,local_storage,indexeddb,service_workers,cache_storage"
    context.new_cdp_session(blank).send("Storage.clearDataForOrigin", {"origin": studio.url, "storageTypes": kinds})


@pytest.fixture
def deck(studio, context, request):
    """The label page with a project of its own."""
    name = f"t-{abs(hash(request.node.nodeid)):x}"
    return DeckPage(studio, studio.project(name), context).open()
