"""The tour: one panel per page, forwards and back, left at any time."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.tour import STOPS
from semiprune_core import steps
from tests.support.waiting import PATIENCE

MAIN = str(Path(__file__).resolve().parents[2] / "pages" / "main.py")


def opened():
    return AppTest.from_file(MAIN, default_timeout=PATIENCE).run()


def panel(app):
    """The heading of the tour's panel, or None."""
    return next((one.value for one in app.markdown if "Tour, " in one.value), None)


def keys(app):
    return {button.key for button in app.button if button.key and button.key.startswith("tour_")}


def test_it_has_a_stop_for_every_page_in_the_order_of_the_line():
    assert [stop.page for stop in STOPS] == ["home", *(step.key for step in steps.STEPS)]
    assert all(stop.shows and stop.attempt for stop in STOPS)


def test_nobody_is_toured_unasked():
    app = opened()
    assert panel(app) is None and keys(app) == {"tour_start"}


def test_it_goes_through_every_page_and_ends_at_home():
    app = opened()
    app.button(key="tour_start").click().run()
    seen = []
    for _ in STOPS[:-1]:
        seen.append(panel(app))
        app.button(key="tour_next").click().run()
        assert not app.exception
    assert [text.split("**")[1] for text in [*seen, panel(app)]] == [stop.title for stop in STOPS]
    app.button(key="tour_finish").click().run()
    assert not app.exception and panel(app) is None and keys(app) == {"tour_start"}


def test_it_goes_back_and_follows_the_person_who_goes_elsewhere():
    app = opened()
    app.button(key="tour_start").click().run()
    assert "tour_back" not in keys(app)
    app.switch_page("scores.py").run()
    assert "**Scores**" in panel(app)
    app.button(key="tour_back").click().run()
    assert "**Map**" in panel(app)


@pytest.mark.parametrize("page", ["home", "map"])
def test_it_is_left_at_once_and_stays_away(page):
    app = opened()
    app.button(key="tour_start").click().run()
    if page != "home":
        app.switch_page(f"{page}.py").run()
    app.button(key="tour_leave").click().run()
    assert panel(app) is None
    app.switch_page("pool.py").run()
    assert not app.exception and panel(app) is None


def test_a_reload_finds_it_again_in_the_address():
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE)
    app.query_params["tour"] = "1"
    assert "**Projects**" in panel(app.run())
