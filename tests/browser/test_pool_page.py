"""A person opens the demo, imports a folder, uploads a ZIP, and sees what could not be used."""

import io
import zipfile

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.browser.accessible import assert_accessible

pytestmark = pytest.mark.browser


@pytest.fixture
def page(page, server):
    """A page at the app's front door."""
    page.goto(server.url)
    return page


def png(seed, width=40, height=30):
    file = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def new_project(page, name):
    page.get_by_role("button", name="New project").click()
    page.get_by_role("textbox", name="Name").fill(name)


def wait_for_pictures(page, n):
    expect(page.locator(".cell img")).to_have_count(n)
    for number in range(min(n, 12)):
        expect(page.locator(".cell img").nth(number)).not_to_have_js_property("naturalWidth", 0)


def test_the_demo_is_one_click_away(page, server):
    if not server.workspace.names():
        expect(page.get_by_role("img", name="4. Keep what teaches.")).to_be_visible()
        assert_accessible(page)
    page.get_by_role("button", name="Open the demo").click()
    wait_for_pictures(page, 60)
    expect(page.get_by_text("6,000", exact=True).first).to_be_visible()
    page.get_by_role("tab", name="Classes").click()
    expect(page.get_by_text("Rarest: Sneaker")).to_be_visible()
    assert_accessible(page)


def test_an_image_opens_large_with_its_facts(page):
    page.get_by_role("button", name="Open the demo").click()
    wait_for_pictures(page, 60)
    page.locator(".cell").nth(3).click()
    expect(page.get_by_text("Reference label:")).to_be_visible()
    expect(page.locator(".picture img")).to_be_visible()


def test_a_reload_and_a_second_tab_find_the_same_project(page, server):
    page.get_by_role("button", name="Open the demo").click()
    wait_for_pictures(page, 60)
    page.reload()
    wait_for_pictures(page, 60)
    other = page.context.new_page()
    other.goto(page.url)
    wait_for_pictures(other, 60)


def test_a_server_folder_is_imported_and_its_problems_are_listed(page, server):
    folder = server.pictures / "mixed"
    for number in range(6):
        (folder / ("cat" if number % 2 else "dog")).mkdir(parents=True, exist_ok=True)
        (folder / ("cat" if number % 2 else "dog") / f"{number}.png").write_bytes(png(number))
    (folder / "cat" / "page.jpg").write_text("<html>not a picture</html>")
    new_project(page, "Mixed folder")
    page.get_by_text("Server folder").click()
    page.get_by_role("textbox", name="Folder").fill(str(folder))
    page.get_by_role("textbox", name="Folder").press("Enter")
    page.get_by_role("button", name="Import", exact=True).click()
    wait_for_pictures(page, 6)
    page.get_by_role("tab", name="Problems").click()
    expect(page.get_by_role("link", name="Download all problems (CSV)")).to_be_visible()
    answer = page.request.get(f"{server.url}/studio/projects/mixed-folder/problems.csv")
    assert "cat/page.jpg,NOT_AN_IMAGE" in answer.text()


def test_a_folder_outside_the_allowed_roots_is_refused_in_words(page):
    new_project(page, "Outside")
    page.get_by_text("Server folder").click()
    page.get_by_role("textbox", name="Folder").fill("/etc")
    page.get_by_role("textbox", name="Folder").press("Enter")
    expect(page.get_by_text("lies outside the allowed folders")).to_be_visible()
    expect(page.get_by_role("button", name="Import", exact=True)).to_be_disabled()


def upload(page, name, data):
    page.locator("input.files").set_input_files({"name": name, "mimeType": "application/zip", "buffer": data})


def test_a_zip_is_uploaded_and_imported(page):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(8):
            archive.writestr(f"{'a' if number < 4 else 'b'}/{number}.png", png(100 + number))
    new_project(page, "Zipped")
    upload(page, "pictures.zip", file.getvalue())
    expect(page.get_by_text("Ready: pictures.zip")).to_be_visible()
    expect(page.locator(".copies img")).to_have_count(8)  # what the net sees, before anything is imported
    expect(page.get_by_text("cropping leaves out 25%")).to_be_visible()
    assert_accessible(page)
    page.get_by_role("button", name="Import", exact=True).click()
    wait_for_pictures(page, 8)


def test_an_unsafe_zip_is_refused_in_words_and_leaves_nothing(page, server):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("../../escape.png", png(1))
    of_others = set((server.home / ".uploads").glob("*"))
    new_project(page, "Unsafe")
    upload(page, "unsafe.zip", file.getvalue())
    expect(page.get_by_text("Ready: unsafe.zip")).to_be_visible()
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_text("The import failed.")).to_be_visible()
    assert not list(server.home.parent.rglob("escape.png"))
    assert set((server.home / ".uploads").iterdir()) == of_others
    assert list((server.home / "unsafe" / "artifacts").iterdir()) == []


def test_images_dropped_into_the_browser_become_a_pool(page):
    new_project(page, "Dropped")
    files = [{"name": f"{number}.png", "mimeType": "image/png", "buffer": png(200 + number)} for number in range(5)]
    page.locator("input.files").set_input_files(files)
    expect(page.get_by_text("and 4 more")).to_be_visible()
    page.get_by_role("button", name="Import", exact=True).click()
    wait_for_pictures(page, 5)


def test_a_step_that_waits_says_for_what_and_links_there(page, server):
    page.get_by_role("button", name="Open the demo").click()
    wait_for_pictures(page, 60)
    for step in ("Train", "Pseudo-labels", "Scores", "Select", "Evaluate", "Export"):
        page.get_by_test_id("stSidebarNav").get_by_role("link", name=step).click()
        expect(page.get_by_text(f"{step} needs the step Label first")).to_be_visible()
    page.get_by_text("Go to Label").click()
    expect(page.get_by_role("heading", name="Label")).to_be_visible()


CALL = """(where) => new Promise((say) => {
  document.addEventListener("securitypolicyviolation", () => say("refused"), { once: true });
  const failed = () => setTimeout(say, 2000);  // long after a refusal
  if (where.startsWith("ws")) new WebSocket(where).onerror = failed;
  else fetch(where).catch(failed);
})"""


def test_a_hostile_project_name_is_shown_literally(page, server):
    name = "<img src=x onerror=window.hit=1> [a](javascript:window.hit=1) $x$ :red[y]"
    folder = server.pictures / "hostile"
    folder.mkdir()
    (folder / "<b>bold<i> ![x](y).png").write_bytes(png(7))
    new_project(page, name)
    page.get_by_text("Server folder").click()
    page.get_by_role("textbox", name="Folder").fill(str(folder))
    page.get_by_role("textbox", name="Folder").press("Enter")
    page.get_by_role("button", name="Import", exact=True).click()
    wait_for_pictures(page, 1)
    page.locator(".cell").first.click()
    expect(page.get_by_text("<b>bold<i> ![x](y).png").first).to_be_visible()
    server.workspace.create("www.evil.example http://evil.example/a img@2x.evil and more")
    page.goto(server.url)
    expect(page.get_by_text(name, exact=True).first).to_be_visible()
    expect(page.get_by_text("and more").first).to_be_visible()
    assert_accessible(page)
    assert page.evaluate("window.hit") is None
    assert page.locator("a[href^='javascript'], a[href*='evil.example'], a[href^='mailto']").count() == 0
    assert page.evaluate(CALL, "ws://localhost:1") == page.evaluate(CALL, "http://localhost:1") == "refused"
