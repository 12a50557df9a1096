"""The story for a room full of people: every slide is drawn, and only those that have something to show."""

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts import story
from semiprune_core import steps
from semiprune_core.coresets import CoresetRequest, build_coreset
from tests.support.scored_projects import make_scored
from tests.support.trial_tables import fake_evaluation
from tests.support.waiting import PATIENCE


def opened(project=None):
    app = AppTest.from_file("../../pages/main.py", default_timeout=PATIENCE)
    if project is not None:
        app.session_state["project"] = project.name
    return app.run().switch_page("present.py").run()


@pytest.fixture
def project(workspace, tmp_path):
    """A small project with a coreset and an evaluation."""
    project = make_scored(workspace, tmp_path)
    build_coreset(project, CoresetRequest(method="semi_aum_cutoff", pruning_ratio=0.5))
    fake_evaluation(project)
    return project


def test_every_slide_is_drawn_and_the_last_one_ends_the_story(project, monkeypatch):
    monkeypatch.setattr(story, "FRAMES", 1)
    titles = [slide.title for slide in story.slides_of(project)]
    assert titles == [slide.title for slide in story.SLIDES if slide.title != "A map of the pool"]  # it has no map
    app = opened(project)
    for number, title in enumerate(titles, start=1):
        assert not app.exception and not app.error
        assert app.header[0].value == title
        if number < len(titles):
            app.button(key="story_next").click().run()
    assert app.button(key="story_next").disabled
    app.button(key="story_end").click().run()
    assert not app.exception and app.header[0].value == "Projects"


def test_without_anything_to_tell_it_says_where_the_story_is():
    app = opened()
    assert not app.exception and "Open it on Projects" in app.info[0].value


def test_a_slide_is_about_a_step_and_the_story_takes_ten_minutes():
    assert {slide.page for slide in story.SLIDES} == set(steps.BY_KEY)
    assert 9 * 60 <= sum(slide.seconds for slide in story.SLIDES) <= 10 * 60
