"""A job under way is seen on every page, on its project's card and where a page waits for it."""

import contextlib
import dataclasses
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.job_glance import DOING
from semiprune_core import jobs, steps
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.jobs import kinds
from tests.support.waiting import PATIENCE

MAIN = str(Path(__file__).resolve().parents[2] / "pages" / "main.py")


@pytest.fixture
def project(class_folder, import_into):
    return import_into(SourceSpec("folder", str(class_folder)))[0]


def opened(project, page):
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE)
    app.session_state["project"] = project.name
    app.run()
    if page != "home":
        app.switch_page(f"{page}.py").run()
    assert not app.exception
    return app


@contextlib.contextmanager
def running(project, kind="ssl", **values):
    """A job that this process works on, standing where ``values`` say."""
    job = jobs.submit(project, kind, {})
    with job.lease() as mine:
        assert mine
        status = dataclasses.replace(job.stored_status(), state=jobs.RUNNING, started=job.created, **values)
        job.write_status(status)
        yield job, status


def bars(app):
    """The words over every progress bar."""
    return [bar.proto.text for bar in app.get("progress") if bar.proto.text]


def sidebar(app):
    return [button.label.replace("\\", "") for button in app.sidebar.button]


def test_every_page_shows_how_far_a_run_is_and_how_long_it_takes(project):
    with running(project, done=17, total=100, seconds_left=360.0):
        for page in ("pool", "label", "map"):
            assert sidebar(opened(project, page)) == ["Training 17%, 6 min left"]


def test_a_page_that_waits_shows_what_it_waits_for_and_the_card_too(project):
    with running(project, done=17, total=100, seconds_left=360.0):
        assert [words.replace("\\", "") for words in bars(opened(project, "select"))] == ["Training 17%, 6 min left"]
        card = [words.replace("\\", "") for words in bars(opened(project, "home"))]
        assert card == ["1 of 9 steps", "Training 17%, 6 min left"]


def test_the_end_is_told_until_somebody_goes_to_see(project):
    with running(project, done=17, total=100) as (job, status):
        app = opened(project, "map")
        job.write_status(status.ended(jobs.DONE, ""))
    app.run()
    assert sidebar(app) == ["Training is done"] and app.sidebar.button[0].proto.icon == ":material/check:"
    app.sidebar.button[0].click().run()
    assert not app.exception and sidebar(app) == []


def test_a_job_of_another_project_names_it_and_leads_there(project, workspace):
    other = workspace.create("Birds")
    with running(project, done=1, total=2):
        app = opened(other, "pool")
        assert sidebar(app) == [f"Training 50% :gray[{project.name}]"]
        app.sidebar.button[0].click().run()
        assert app.session_state["project"] == project.name


def test_of_a_leading_job_and_its_steps_only_the_leader_is_listed_with_the_time_of_the_step(project):
    with running(project, "ssl", done=10, total=100, seconds_left=120.0) as (led, _):
        facts = {"step": "pseudo", "job": led.id}
        with running(project, "refresh", done=100, total=5000, seconds_left=9.0, facts=facts) as (leader, _):
            ((only, status),) = jobs.under_way(project.workspace)
            assert only == leader
            assert jobs.seconds_left(only, status) == 120.0
            assert sidebar(opened(project, "map")) == ["Bringing up to date 2%, 2 min left in this step"]


def test_every_kind_of_job_leads_to_the_page_that_shows_it():
    assert set(kinds.homes()) == set(DOING)
    assert {doing.page for doing in DOING.values()} <= {"home", *steps.BY_KEY}
