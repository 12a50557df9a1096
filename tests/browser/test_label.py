"""The label page in a real browser: keys, undo, search, queues, the deck and the grid."""

import pytest
from playwright.sync_api import expect

from semiprune_core.labeling import Event, open_store
from semiprune_core.project.pool import show_id
from tests.browser.accessible import assert_accessible
from tests.browser.label_support import DeckPage, choose, seen_and_pressed
from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser


def test_ten_keys_in_one_second_label_ten_images(deck):
    keys = "1231231231"
    seen = seen_and_pressed(deck, keys, 0.08)
    deck.all_saved()
    assert len(set(seen)) == 10
    assert deck.labels() == {image: int(key) - 1 for image, key in zip(seen, keys, strict=True)}
    assert len(deck.decisions()) == 10
    order = [show_id(one) for one in deck.store.drawings.latest().ids[:10]]
    assert seen == order


def test_ten_keys_at_once_label_ten_images_in_order(deck):
    deck.page.keyboard.type("1231231231")
    deck.all_saved()
    order = [show_id(one) for one in deck.store.drawings.latest().ids[:10]]
    assert deck.labels() == {image: int(key) - 1 for image, key in zip(order, "1231231231", strict=True)}


def test_a_held_key_labels_one_image(deck):
    first = deck.shown()
    for _ in range(15):  # the second and later downs of one press carry event.repeat
        deck.page.keyboard.down("2")
    deck.page.keyboard.up("2")
    deck.all_saved()
    assert deck.labels() == {first: 1}


def test_the_number_pad_and_shift_digits_label(studio, context):
    project = studio.project("t-numpad", classes=[f"class {number}" for number in range(1, 23)])
    deck = DeckPage(studio, project, context).open()
    seen = seen_and_pressed(deck, ["Numpad3", "Numpad4", "Shift+Digit2", "a", "Digit0"], 0.1)
    deck.all_saved()
    assert [deck.labels()[image] for image in seen] == [2, 3, 11, 10, 9]


def test_undo_and_redo_go_back_and_forth(deck):
    first, second = seen_and_pressed(deck, "12", 0.1)
    deck.press("Backspace")
    assert deck.ready() == second
    deck.press("Control+z")
    assert deck.ready() == first
    deck.all_saved()
    assert deck.labels() == {}
    deck.press("Control+Shift+z", "Control+y")
    deck.all_saved()
    assert deck.labels() == {first: 0, second: 1}
    deck.press("Delete", "3")
    deck.all_saved()
    assert deck.labels() == {first: 0, second: 2}
    assert_accessible(deck.page)
    deck.press("Control+y")  # nothing to redo after a new decision
    deck.all_saved()
    assert deck.labels() == {first: 0, second: 2}


def test_undo_reaches_back_over_a_reload(deck):
    first, second = seen_and_pressed(deck, "12", 0.1)
    deck.all_saved()
    deck.page.reload()
    assert deck.ready() not in (first, second)
    deck.press("Backspace")
    assert deck.ready() == second
    deck.all_saved()
    assert deck.labels() == {first: 0}


def test_arrows_move_and_a_correction_returns_to_the_open_image(deck):
    first, second = seen_and_pressed(deck, "11", 0.1)
    third = deck.shown()
    deck.press("ArrowLeft", "ArrowLeft")
    assert deck.ready() == first
    deck.press("3")
    assert deck.ready() == third
    deck.all_saved()
    assert deck.labels() == {first: 2, second: 0}


def test_a_latest_decision_is_corrected_by_click(deck):
    first, _ = seen_and_pressed(deck, "11", 0.1)
    wait_until(lambda: deck.page.locator(".decision").count() == 2, "two latest decisions")
    deck.page.locator(".decision").nth(1).click()
    assert deck.ready() == first
    deck.page.locator(".class", has_text="owl").click()
    deck.all_saved()
    assert deck.labels()[first] == 2


def test_space_skips_and_f_flags(deck):
    first = deck.shown()
    deck.press("f", "Space")
    second = deck.ready()
    deck.all_saved()
    [skipped] = [one for one in deck.store.held(annotator="ada") if one.action == "skip"]
    assert show_id(skipped.image_id) == first != second
    assert [show_id(one) for one in deck.store.flagged_ids()] == [first]


def test_keys_are_dead_while_typing(deck):
    deck.press("/")
    deck.page.keyboard.type("12f ")
    deck.press("Backspace", "Escape")
    deck.page.get_by_role("button", name="ada").click()  # a field outside the deck's shadow
    field = deck.page.get_by_label("Your name")
    field.fill("")
    field.press_sequentially("a1 2f")
    deck.page.keyboard.press("Backspace")
    assert field.input_value() == "a1 2"
    deck.all_saved()
    assert deck.decisions() == []


@pytest.mark.parametrize("key", ["Control+1", "Alt+1", "Meta+1"])
def test_keys_with_a_modifier_label_nothing(deck, key):
    deck.press(key)
    deck.press("2")
    deck.all_saved()
    assert list(deck.labels().values()) == [1]


def test_a_double_click_labels_one_image(deck):
    first = deck.shown()
    deck.page.locator(".class", has_text="dog").dblclick()
    deck.all_saved()
    assert deck.labels() == {first: 1}


def test_search_labels_and_adds_classes(deck):
    first = deck.shown()
    deck.press("/")
    deck.page.keyboard.type("ow")
    deck.press("Enter")
    second = deck.ready()
    deck.press("/")
    deck.page.keyboard.type("newt")
    deck.press("Enter")
    wait_until(lambda: deck.shown() not in ("", second), "the next image")
    deck.all_saved()
    assert deck.labels() == {first: 2, second: 3}
    assert deck.store.classes.names() == ("cat", "dog", "owl", "newt")


def test_a_suggestion_is_accepted_with_enter(deck):
    def suggest(route):
        answer = route.fetch()
        said = answer.json()
        for item in said["items"]:
            item["suggestion"] = {"class_id": 1, "confidence": 0.9}
        route.fulfill(response=answer, json={**said, "round": "review"})

    deck.page.route("**/labels/queue", suggest)
    deck.page.reload()
    first = deck.ready()
    assert "dog (90%)" in deck.page.locator(".suggestion").inner_text()
    deck.press("Enter")
    deck.all_saved()
    [held] = [one for one in deck.store.held() if one.round == "review"]
    assert (show_id(held.image_id), held.class_id, held.source) == (first, 1, "review")


def test_help_shows_and_hides(deck):
    deck.press("?")
    assert deck.page.locator(".help").is_visible()
    deck.press("1", "Escape")
    assert not deck.page.locator(".help").is_visible()
    assert deck.decisions() == []


@pytest.mark.parametrize("queue, keys", [("Skipped images", ["Space"]), ("Flagged images", ["f", "1"])])
def test_a_queue_of_decided_images_shows_them_again(deck, queue, keys):
    first = deck.shown()
    deck.press(*keys)
    second = deck.ready()
    deck.press(*keys)
    deck.all_saved()
    deck.page.reload()
    choose(deck.page, "Show", queue)
    deck.page.locator(".st-key-deck_drawn").wait_for(state="detached")
    wait_until(lambda: deck.shown() in (first, second), "an image of the queue")
    seen = [deck.shown()]
    deck.press("2")
    wait_until(lambda: deck.shown() in {first, second} - set(seen), "the other image of the queue")
    deck.press("3", "Backspace")
    wait_until(lambda: deck.shown() in {first, second} - set(seen), "the image that was taken back")
    seen.append(deck.shown())
    deck.press("3")
    wait_until(lambda: "That was the last one." in deck.page.locator(".word").inner_text(), "the end")
    deck.all_saved()
    assert deck.labels() == {seen[0]: 1, seen[1]: 2}


def test_the_folder_that_names_the_class_is_not_shown(studio, context):
    names = [f"{('cat', 'dog')[number % 2]}/{number:03d}.png" for number in range(10)]
    deck = DeckPage(studio, studio.project("t-blind", n=10, names=names, classes=("x", "y")), context).open()
    wait_until(lambda: deck.page.locator(".name").text_content(), "the name")
    assert deck.page.locator(".name").text_content() in {name.split("/")[1] for name in names}
    deck.press("1")
    deck.ready()
    deck.page.locator(".decision").wait_for()
    assert "cat" not in deck.page.locator(".labeling").inner_html()
    assert "dog" not in deck.page.locator(".labeling").inner_html()


def test_a_narrow_page_keeps_its_head_small(deck):
    deck.press("Space", "1", "1")
    deck.all_saved()
    deck.page.set_viewport_size({"width": 420, "height": 860})
    deck.page.reload()
    deck.ready()
    expect(deck.page.locator(".count")).not_to_be_empty()  # it comes with the project's progress
    assert not deck.page.locator(".pace").is_visible()
    boxes = {name: deck.page.locator(name).bounding_box() for name in (".count", ".status", ".help-button")}
    middle = {name: box["y"] + box["height"] / 2 for name, box in boxes.items()}
    assert max(middle.values()) - min(middle.values()) < 6  # one line
    assert all(box["x"] + box["width"] <= 420 for box in boxes.values())
    show = deck.page.get_by_role("combobox", name="Show").bounding_box()
    person = deck.page.get_by_role("button", name="ada").bounding_box()
    assert show["y"] < person["y"] + person["height"] and person["y"] < show["y"] + show["height"]  # side by side


def test_images_go_back_when_nobody_looks_at_them(deck):
    wait_until(deck.leased, "the deck's leases")
    deck.view("Grid")
    wait_until(lambda: deck.page.locator(".cells .cell").count() == 40, "the grid's cells")
    deck.page.locator(".st-key-deck_drawn").wait_for(state="detached")
    assert deck.leased() == 40  # the deck handed its images on
    deck.view("Classes")
    wait_until(lambda: deck.leased() == 0, "the grid to give its images back")
    deck.view("Deck")
    first = deck.ready()
    wait_until(deck.leased, "the deck's leases")
    deck.press("1")
    deck.all_saved()
    deck.page.goto("about:blank")
    wait_until(lambda: deck.leased() <= 1, "the page to give its images back")
    assert deck.labels() == {first: 0}


def test_classes_of_a_dropped_csv_are_added(deck):
    deck.view("Classes")
    file = {"name": "more.csv", "mimeType": "text/csv", "buffer": "name,key\nfüchse,x\n".encode()}
    deck.page.locator("input.files").set_input_files(file)
    deck.page.get_by_role("button", name="Add classes from the CSV").click()
    deck.page.get_by_text("Added 1 class.").wait_for()
    deck.page.get_by_role("button", name="Add classes from the CSV").wait_for(state="detached")
    assert [(label_class.name, label_class.key) for label_class in deck.store.classes.all()][-1] == ("füchse", "x")


def test_the_page_says_when_the_subset_is_complete(studio, context):
    deck = DeckPage(studio, studio.project("t-complete", n=3), context).open()
    seen_and_pressed(deck, "123", 0.2)
    deck.page.get_by_text("go to Train").wait_for()
    assert "complete" in deck.page.locator(".word").inner_text()


def test_practice_tells_how_often_one_agrees_and_saves_nothing(studio, context):
    project = studio.project("practice", n=3)
    store = open_store(project)
    ids = [int(image) for image in project.pool().ids]
    store.append([Event(event_id=f"p{i}", annotator="bob", action="label", image_id=i, class_id=0) for i in ids])
    deck = DeckPage(studio, project, context)
    deck.page.goto(f"{studio.url}/label?project={project.name}")
    button = deck.page.get_by_role("button", name="Practice on 20 images")
    expect(button).to_have_count(1)  # not before the browser has told the name
    button.click()
    last, kept = store.last_seq, []
    for key in "121":
        kept.append(deck.ready())
        deck.press(key)
    deck.page.get_by_text("You agree with the labels on 2 of 3.").wait_for()
    assert deck.status() == "Practice: nothing is saved" and len(set(kept)) == 3
    assert store.last_seq == last and deck.leased() == 0


def test_the_grid_labels_a_selection_and_undoes_it_whole(studio, context):
    deck = DeckPage(studio, studio.project("t-grid"), context).open()
    page = deck.page
    page.get_by_text("Grid", exact=True).click()
    cells = page.locator(".cells .cell")
    wait_until(lambda: cells.count() == 40, "the grid's cells")
    wait_until(
        lambda: page.locator(".labeling").evaluate("root => root.studio.shown.every((card) => card.ready)"), "pictures"
    )
    chosen = [cells.nth(place).get_attribute("data-card") for place in range(2, 7)]
    cells.nth(2).click()
    cells.nth(6).click(modifiers=["Shift"])
    deck.press("2")
    deck.all_saved()
    assert deck.labels() == dict.fromkeys(chosen, 1)
    assert cells.count() == 35
    deck.press("Control+z")
    deck.all_saved()
    assert deck.labels() == {}
    assert cells.count() == 40
    deck.press("Control+y")
    deck.all_saved()
    assert deck.labels() == dict.fromkeys(chosen, 1)

    box, corner = cells.nth(0).bounding_box(), cells.nth(2).bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + 4)
    page.mouse.down()
    page.mouse.move(corner["x"] + 20, corner["y"] + 20, steps=4)
    page.mouse.up()
    assert page.locator(".cell[aria-pressed='true']").count() == 3
    deck.press("Escape")
    cells.nth(0).click()
    page.locator(".similar").click()
    wait_until(lambda: page.locator(".cell[aria-pressed='true']").count() == 12, "the similar ones")
    deck.press("Control+a", "3")
    deck.all_saved()
    assert len(deck.labels()) == 40
    groups = {row["group_id"] for row in deck.decisions() if row["action"] == "label"}
    assert len(groups) == 2
