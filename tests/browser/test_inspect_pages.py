"""A person looks at the map and the pseudo-labels of the demo pool, and mends what is wrong on the spot."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import open_store
from semiprune_core.maps.embedding_map import MapSettings, make_maps
from semiprune_core.progress import Collected
from semiprune_core.project.pool import show_id
from semiprune_core.refresh import freshness
from semiprune_core.results import latest_pseudo
from semiprune_core.trust.confusion import confusion_of
from tests.browser.accessible import assert_accessible
from tests.browser.label_support import choose, settled
from tests.support.demo_pool import write_tenth
from tests.support.pseudo_runs import fake_pseudo, label_share
from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser
PROJECT = "clothes"
N_IMAGES = 600


@pytest.fixture(scope="module")
def project(studio):
    """A tenth of the demo with a tenth of it labeled, pseudo-labels of which 15% are wrong, and two maps."""
    space = studio.workspace
    made = space.create("Clothes", name=PROJECT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMIPRUNE_ROOTS", str(studio.pictures))
        source = SourceSpec("npz", str(write_tenth(studio.pictures)))
        import_source(made, ImportSettings(source=source.to_json(), n_workers=1), Collected())
    made = space.project(PROJECT)
    label_share(made)
    fake_pseudo(made)
    for features in ("pixels", "ssl"):
        make_maps(made, MapSettings(method="pca", features=features), Collected())
    return made


def open_page(page, server, name):
    page.goto(f"{server.url}/{name}?project={PROJECT}")


def open_map(page, server):
    """The map, drawn; and where on the page each image lies."""
    open_page(page, server, "map")
    expect(page.locator(".map[data-state=ready] canvas").first).to_be_visible()
    canvas = page.locator(".map canvas").first
    canvas.scroll_into_view_if_needed()
    places = canvas.evaluate("(c, n) => Array.from({length: n}, (_, i) => c.studio.where(i))", N_IMAGES)
    box = canvas.bounding_box()
    return canvas, np.array(places) + [box["x"], box["y"]]


def small_region(places, labels):
    """A square on the page that holds 8 to 50 images of at least two classes, none of them near its edge."""
    for centre in places[::7]:
        for half in (6, 10, 16, 24, 40):
            distance = np.abs(places - centre).max(axis=1)
            held = np.flatnonzero(distance < half)
            clear = not ((distance > half - 0.7) & (distance < half + 0.7)).any()
            if clear and 8 <= len(held) <= 50 and len(set(labels[held])) >= 2:
                return centre, half, held
    raise AssertionError("No such region on this map.")


def lasso(page, centre, half):
    corners = [(-half, -half), (half, -half), (half, half), (-half, half), (-half, -half)]
    page.mouse.move(centre[0] - half, centre[1] - half)
    page.mouse.down()
    for dx, dy in corners[1:]:
        page.mouse.move(centre[0] + dx, centre[1] + dy, steps=6)
    page.mouse.up()


def turned(canvas, *, ctrl):
    """Turn the wheel over the map: whether it kept that from the page, and whether it looks different."""
    return tuple(
        canvas.evaluate(
            """(c, ctrlKey) => {
              const before = c.studio.where(0).join();
              const turn = new WheelEvent("wheel", { deltaY: -200, ctrlKey, cancelable: true });
              c.dispatchEvent(turn);
              return [turn.defaultPrevented, c.studio.where(0).join() !== before];
            }""",
            ctrl,
        )
    )


def shown_ids(page):
    return page.locator(".grid .cell").evaluate_all("cells => cells.map((cell) => cell.dataset.id)")


def test_hover_shows_the_image_under_the_pointer(page, server, project):
    canvas, places = open_map(page, server)
    pool = project.pool()
    box = page.locator(".map canvas").first.bounding_box()
    inside = np.flatnonzero((places[:, 1] > box["y"] + 5) & (places[:, 1] < 890))
    expect(canvas).to_have_attribute("data-paints", re.compile(r"\d+"))
    painted = canvas.get_attribute("data-paints")
    for position in inside[[3, 150, 300]]:
        page.mouse.move(*places[position])
        wanted = show_id(pool.ids[position])
        expect(page.locator(f'.tip[data-id="{wanted}"]')).to_be_visible()
        expect(page.locator(".tip img")).to_have_attribute("src", re.compile(f"{wanted}/thumb$"))
        expect(page.locator(".tip img")).not_to_have_js_property("naturalWidth", 0)
        expect(page.locator(".tip .path")).to_have_text(pool.path(int(position)))
    assert canvas.get_attribute("data-paints") == painted  # a ring goes over the picture, the points do not


def test_a_click_opens_the_image(page, server, project):
    _, places = open_map(page, server)
    position = int(np.flatnonzero(places[:, 1] < 880)[100])
    page.mouse.click(*places[position])
    expect(page.get_by_text(show_id(project.pool().ids[position]))).to_be_visible()
    expect(page.get_by_role("dialog").locator(".picture img")).to_be_visible()


def test_a_lasso_over_two_classes_gives_exactly_these_images(page, server, project):
    canvas, places = open_map(page, server)
    pool = project.pool()
    visible = np.where((places[:, 1] < 870)[:, None], places, -1e4)
    centre, half, held = small_region(visible, pool.reference_labels)
    lasso(page, centre, half)
    expect(page.get_by_text(f"{len(held)} images selected")).to_be_visible()
    expect(page.locator(".grid .cell")).to_have_count(len(held))
    assert set(shown_ids(page)) == {show_id(number) for number in pool.ids[held]}
    assert sorted(canvas.evaluate("c => c.studio.selected()")) == held.tolist()
    expect(page.locator(".map .count")).to_have_text(f"{len(held)} selected")
    gallery = page.locator(".grid .cell").first
    assert gallery.bounding_box()["x"] > canvas.bounding_box()["x"] + canvas.bounding_box()["width"]  # beside it
    assert turned(canvas, ctrl=False) == (False, False)  # the wheel belongs to the page
    expect(page.get_by_text("Hold Ctrl to zoom")).to_have_count(1)
    assert turned(canvas, ctrl=True) == (True, True)
    settled(page)
    page.get_by_role("button", name="Clear", exact=True).click()
    expect(page.locator(".grid .cell")).to_have_count(0)


def test_two_maps_highlight_the_same_images(page, server, project):
    open_map(page, server)
    choose(page, "Compare with", "PCA of Raw pixels")
    expect(page.locator(".map canvas")).to_have_count(2)
    expect(page.locator(".map[data-state=ready]")).to_be_visible()
    box = page.locator(".map canvas").first.bounding_box()
    lasso(page, (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2), 40)
    expect(page.get_by_text("images selected")).to_be_visible()
    assert_accessible(page)
    first, second = (page.locator(".map canvas").nth(n).evaluate("c => c.studio.selected()") for n in (0, 1))
    assert first and first == second


def test_a_correction_in_the_gallery_changes_the_store_and_what_follows_is_out_of_date(page, server, project):
    _, places = open_map(page, server)
    visible = np.where((places[:, 1] < 870)[:, None], places, -1e4)
    lasso(page, *small_region(visible, project.pool().reference_labels)[:2])
    expect(page.locator(".grid .cell").first).to_be_visible()
    image = shown_ids(page)[0]
    name = page.get_by_role("textbox", name="Your name")
    name.fill("Bea")
    name.press("Enter")
    expect(name).to_have_count(0)
    page.locator(f'.grid .cell[data-id="{image}"]').click()
    choose(page, "Class", "Sandal")
    assert freshness.out_of_date(project) == []
    page.get_by_role("button", name="Label 1 image").click()
    expect(page.get_by_text("Labeled 1 image as Sandal")).to_be_visible()
    store = open_store(project)
    snapshot = store.snapshot()
    place = snapshot.ids.tolist().index(int(image, 16))
    assert snapshot.class_names[snapshot.labels[place]] == "Sandal" and not snapshot.uniform_mask[place]
    assert [one.artifact.kind for one in freshness.out_of_date(project)][:1] == ["pseudo"]
    open_page(page, server, "pseudo")
    expect(page.get_by_text("labels have changed since it was made")).to_be_visible()
    expect(page.get_by_role("button", name="Bring up to date")).to_be_visible()


def test_a_click_on_a_confusion_cell_gives_its_images(page, server, project):
    pool, run = project.pool(), latest_pseudo(project)
    n_classes = len(run.class_names)
    pairs = [(row, column) for row in range(n_classes) for column in range(n_classes) if row != column]
    confusion = confusion_of(pool, run)
    confused = {pair: confusion.cell(*pair) for pair in pairs}
    (row, column), wanted = max(confused.items(), key=lambda item: len(item[1]))
    assert len(wanted)
    open_page(page, server, "pseudo")
    page.get_by_role("radio", name="Confusion").click()
    cell = page.locator(f'.matrix .cell[data-cell="{row},{column}"]')
    cell.click()
    expect(page.locator(".grid .cell")).to_have_count(len(wanted))
    assert shown_ids(page) == [show_id(number) for number in pool.ids[wanted]]
    assert cell.inner_text() == str(len(wanted))
    assert_accessible(page)


def test_enter_accepts_the_suggestion_and_a_class_key_corrects_it(page, server, project):
    page.route(re.compile("/progress"), lambda route: route.abort())  # what was done here shows without it
    open_page(page, server, "pseudo")
    page.get_by_role("radio", name="Review").click()
    name = page.get_by_role("textbox", name="Your name")
    name.fill("Cem")
    name.press("Enter")
    expect(page.locator(".tag.suggestion")).to_be_visible()
    store = open_store(project)
    before = store.last_seq
    names = {one.name: one.class_id for one in store.classes.all()}
    suggested = re.match(r"Enter: (.+) \(\d+%\)", page.locator(".tag.suggestion").inner_text())[1]
    for key in ("Enter", "3"):
        wait_until(
            lambda: page.locator(".labeling").evaluate("root => Boolean(root.studio.card?.ready)"), "the picture"
        )
        page.keyboard.press(key)
    wait_until(lambda: len(store.events(after=before)) >= 2, "two events in the store")
    events = store.events(after=before)
    assert [event["source"] for event in events] == ["review", "review"]
    assert [event["class_id"] for event in events] == [names[suggested], names["Pullover"]]
    expect(page.locator(".labeling .count")).to_have_text("2 reviewed")  # of this queue, not of the drawing


@pytest.mark.parametrize("view", ["Quality", "Classes", "Compare runs"])
def test_every_view_opens(page, server, project, view):
    open_page(page, server, "pseudo")
    page.get_by_role("radio", name=view).click()
    expect(page.get_by_text("Held-out accuracy").first).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)
