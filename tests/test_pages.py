"""Every page opens, for nobody's project, for an empty one and for one with images."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from semiprune_core import line
from semiprune_core.sources.base import SourceSpec

MAIN = str(Path(__file__).resolve().parents[1] / "pages" / "main.py")
PAGES = ["home", "new", *line.BY_KEY]


def opened(page, project=None):
    app = AppTest.from_file(MAIN, default_timeout=60)
    if project is not None:
        app.session_state["project"] = project.name
    app.run()
    return app.switch_page(f"{page}.py").run() if page != "home" else app


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_without_a_project(page):
    app = opened(page)
    assert not app.exception
    if page in line.BY_KEY:
        assert "No project is open" in app.info[0].value


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_for_a_project_without_images(page, workspace):
    app = opened(page, workspace.create("Empty"))
    assert not app.exception
    if page in line.BY_KEY and page != "pool":
        assert "needs the step Pool first" in app.info[0].value


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_for_a_project_with_images(page, class_folder, import_into):
    app = opened(page, import_into(SourceSpec("folder", str(class_folder)))[0])
    assert not app.exception


def test_a_project_that_went_away_is_no_error(workspace):
    app = AppTest.from_file(MAIN, default_timeout=60)
    app.session_state["project"] = "gone"
    assert not app.run().exception


def test_a_damaged_project_is_named_beside_the_others(workspace):
    workspace.create("Fine")
    (workspace.create("Broken").folder / "project.json").write_text("{")
    app = opened("home")
    assert not app.exception
    assert "damaged" in app.error[0].value
