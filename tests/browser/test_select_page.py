"""A data lead moves the slider, builds a coreset and downloads it."""

import csv
import io

import pytest
from playwright.sync_api import expect

from semiprune_core.labeling import open_store
from semiprune_core.labeling.import_labels import take_reference
from tests.browser.accessible import assert_accessible
from tests.browser.label_support import settled
from tests.support.scored_projects import make_scored

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def project(studio):
    """A project with scores in the running app's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMIPRUNE_ROOTS", str(studio.pictures))
        project = make_scored(studio.workspace, studio.pictures, name="Pick")
        store, pool = open_store(project), project.pool()
        store.drawings.draw(
            pool_hash=pool.hash, ids=pool.ids, duplicate_of=pool.duplicate_of, count=5, annotator="test"
        )
        take_reference(store, pool)
    return project


def kept(page):
    return page.get_by_test_id("stMetricValue").first


def test_from_the_slider_to_the_downloaded_csv(page, server, project):
    page.goto(f"{server.url}/select?project={project.name}")
    expect(kept(page)).to_have_text("36")
    slider = page.get_by_role("slider", name="Pruning ratio")
    slider.focus()
    for _ in range(20):
        slider.press("ArrowRight")
    expect(kept(page)).to_have_text("12")
    expect(page.locator(".js-plotly-plot .bars path")).not_to_have_count(0)
    page.get_by_role("button", name="Build coreset").click()
    link = page.get_by_role("link", name="Coreset CSV")
    expect(link).to_be_visible()
    assert_accessible(page)
    answer = page.request.get(f"{server.url}{link.get_attribute('href')}")
    assert answer.ok and "coreset-0001-kept-" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text())))
    assert len(rows) == 12 and {row["kept"] for row in rows} == {"1"}
    twin = page.request.get(f"{server.url}{page.get_by_role('link', name='All rows').get_attribute('href')}")
    everything = list(csv.DictReader(io.StringIO(twin.text())))
    assert len(everything) == 120 and sum(row["kept"] == "1" for row in everything) == 12


def test_keys_turn_the_slides_of_the_story(page, server, project):
    page.goto(f"{server.url}/present?project={project.name}")
    expect(page.get_by_role("heading", name="The pool")).to_be_visible()
    settled(page)
    page.keyboard.press("PageDown")
    expect(page.get_by_role("heading", name="The idea")).to_be_visible()
    settled(page)
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("heading", name="Label a tenth")).to_be_visible()
    expect(page.locator(".stage[data-image]:not([data-image=''])")).to_be_visible()
    assert page.url.endswith("slide=3") and not page.get_by_test_id("stSidebarNav").count()
    page.keyboard.press("PageUp")
    expect(page.get_by_role("heading", name="The idea")).to_be_visible()


def test_a_bar_opens_its_images_and_an_image_its_story(page, server, project):
    page.goto(f"{server.url}/scores?project={project.name}")
    plot = page.locator(".js-plotly-plot").first
    expect(plot.locator(".bars path").first).to_be_attached()
    settled(page)
    area = plot.locator(".nsewdrag").first
    area.hover(position={"x": 5, "y": 5})  # waits until it stands still
    box = area.bounding_box()
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + box["height"] - 5, steps=8)
    page.mouse.up()
    expect(page.get_by_text("picked on AUM")).to_be_visible()
    assert_accessible(page)
    settled(page)
    page.locator(".cell:visible").first.click()
    expect(page.get_by_text("Most similar images")).to_be_visible()
    page.get_by_role("textbox", name="Your name").fill("Ada")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as a review")).to_be_visible()
    assert [held.annotator for held in open_store(project).held() if held.round == "review"] == ["Ada"]
