"""The label page in trouble: lost connections, two tabs, unheard answers, hostile names, a killed server."""

import random
import time

import pytest
from playwright.sync_api import expect

from semiprune_core.labeling import Event
from semiprune_core.project.pool import show_id
from tests.browser.label_support import DeckPage, Studio, open_context, seen_and_pressed, settled
from tests.support.effort import FULL
from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser


@pytest.mark.fault
def test_labels_made_offline_are_sent_once_when_the_connection_returns(deck, context):
    context.set_offline(True)
    seen = seen_and_pressed(deck, "12312", 0.05)
    wait_until(lambda: "5 kept here" in deck.status(), "the status to tell the truth")
    assert "Offline" in deck.status()
    assert deck.labels() == {}
    context.set_offline(False)
    deck.all_saved()
    assert deck.labels() == {image: int(key) - 1 for image, key in zip(seen, "12312", strict=True)}
    assert len(deck.decisions()) == 5


@pytest.mark.fault
def test_an_answer_that_is_lost_doubles_nothing(deck):
    lost = []

    def swallow(route):
        if len(lost) < 2:
            lost.append(route.fetch().status)  # the server has saved it, the browser never hears of it
            route.abort()
        else:
            route.continue_()

    deck.page.route("**/labels", swallow)
    seen = seen_and_pressed(deck, "123", 0.1)
    deck.all_saved()
    assert lost == [200, 200]
    assert deck.labels() == dict(zip(seen, range(3), strict=True))
    assert len(deck.decisions()) == 3


def test_a_slow_server_puts_no_label_on_another_image(deck):
    def dawdle(route):
        time.sleep(0.3)
        route.continue_()

    deck.page.route("**/labels", dawdle)
    keys = "123" * 7
    seen = seen_and_pressed(deck, keys, 0.05)
    deck.all_saved()
    assert deck.labels() == {image: int(key) - 1 for image, key in zip(seen, keys, strict=True)}
    assert len(deck.decisions()) == len(keys)


@pytest.mark.fault
def test_a_reload_in_the_middle_keeps_unsent_labels(deck):
    deck.page.route("**/labels", lambda route: route.abort())
    seen = seen_and_pressed(deck, "321", 0.05)
    wait_until(lambda: "3 kept here" in deck.status(), "the status to tell the truth")
    deck.page.unroute("**/labels")
    deck.page.reload()
    assert deck.ready() not in seen
    deck.all_saved()
    assert deck.labels() == {image: int(key) - 1 for image, key in zip(seen, "321", strict=True)}
    assert len(deck.decisions()) == 3


@pytest.mark.parametrize("answer", ["Keep that", "Replace with mine"])
def test_the_second_of_two_tabs_is_told(deck, studio, context, answer):
    image = deck.shown()
    deck.press("1")
    deck.all_saved()
    other = DeckPage(studio, deck.project, context).open()
    deck.page.bring_to_front()
    deck.press("ArrowLeft", "3")
    deck.all_saved()
    other.page.bring_to_front()
    other.press("ArrowLeft")
    assert other.ready() == image
    other.press("2")
    banner = other.page.locator(".banner")
    banner.wait_for()
    assert "changed by you in another window" in banner.inner_text()
    assert "to 'owl'" in banner.inner_text()
    assert deck.labels() == {image: 2}  # nothing was overwritten
    assert other.status() == "1 not saved: changed elsewhere"
    banner.get_by_text(answer).click()
    other.all_saved()
    assert deck.labels() == {image: 2 if answer == "Keep that" else 1}
    assert not banner.is_visible()


def test_two_tabs_of_one_person_get_different_images_until_one_takes_the_rest_over(deck, studio, context):
    """Tab one has thirty of the forty, the other gets ten; when those are done it may take over what is left."""
    other = DeckPage(studio, deck.project, context).open()
    mine = {card["id"] for card in deck.cards()}
    assert not mine & {card["id"] for card in other.cards()}
    other.page.bring_to_front()
    for _ in range(len(other.cards())):
        other.ready()
        other.press("2")
    other.all_saved()
    other.page.get_by_text("Another tab of yours has the remaining images.").wait_for()
    assert len(other.labels()) == 40 - len(mine)
    other.page.get_by_role("button", name="Take them here").click()
    assert other.ready() in mine
    assert len(other.decisions()) == 40 - len(mine)  # no key labeled twice


def _decide_and_leave(deck):
    """Press 1 and leave the deck before the server answers; the request that waits for its answer."""
    waiting = []
    deck.page.route("**/labels", lambda route: waiting.append(route))
    deck.press("1")
    wait_until(lambda: deck.page.wait_for_timeout(20) or waiting, "the label to be sent")
    deck.view("Classes")
    deck.page.locator(".labeling").wait_for(state="detached")
    return waiting[0]


def _unheard(deck):
    count = "() => [...globalThis.semiprunePipes.values()].reduce((n, pipe) => n + pipe.unsettled.size, 0)"
    wait_until(lambda: deck.page.evaluate(count) == 1, "the answer to arrive")
    deck.page.unroute("**/labels")
    deck.view("Deck")


def test_a_conflict_that_nobody_heard_is_told_when_the_deck_returns(deck):
    image = deck.shown()
    number = int(image, 16)
    said = Event(event_id="elsewhere", annotator="ada", action="label", image_id=number, class_id=1)
    assert deck.store.append([said])[0].status == "saved"
    _decide_and_leave(deck).continue_()
    _unheard(deck)
    banner = deck.page.locator(".banner")
    banner.wait_for()
    path = deck.project.pool().column("path").to_pylist()[int(deck.project.pool().positions([number])[0])]
    assert path in banner.inner_text() and "to 'dog'" in banner.inner_text()
    assert deck.status() == "1 not saved: changed elsewhere"
    banner.get_by_text("Replace with mine").click()
    deck.all_saved()
    assert deck.labels() == {image: 0}


def test_a_refusal_that_nobody_heard_stays_until_it_is_dismissed(deck):
    route = _decide_and_leave(deck)
    [event] = route.request.post_data_json["events"]
    ack = {"event_id": event["event_id"], "status": "refused", "reason": "No such class.", "touched": []}
    route.fulfill(json={"acks": [ack]})
    _unheard(deck)
    deck.page.locator(".failure").wait_for()
    assert "No such class." in deck.page.locator(".failure").inner_text()
    assert deck.status() == "1 not saved: refused"
    deck.view("Grid")
    deck.page.locator(".cells").wait_for(state="attached")
    deck.page.locator(".failure").wait_for()  # told again, as nobody said to have read it
    deck.page.locator(".failure .dismiss").click()
    deck.all_saved()
    kept = "() => Object.keys(localStorage).filter((key) => key.startsWith('semiprune:labels')).length"
    assert deck.page.evaluate(kept) == 0


SCRIPTS = [
    "<script>pwned=1</script>",
    "<img src=x onerror=pwned=1>",
    "<svg onload=pwned=1>",
    "<svg/onload=pwned=1//",
    "<iframe srcdoc='<script>top.pwned=1</script>'>",
    "<a href=javascript:pwned=1>x</a>",
    "<b onmouseover=pwned=1>b</b>",
    "<details open ontoggle=pwned=1>",
    "<input autofocus onfocus=pwned=1>",
    "<style>*{display:none}</style>",
    "<body onload=pwned=1>",
    "<math><mi xlink:href=javascript:pwned=1>",
    "<template><script>pwned=1</script>",
    "</div></body></html>",
    "<!-- comment -->",
    "<![CDATA[x]]>",
    "&lt;script&gt;pwned=1&lt;/script&gt;",
    "&#60;img src=x onerror=pwned=1&#62;",
    "javascript:pwned=1",
    "'-alert(1)-'",
    '"><script>alert(1)</script>',
    "'><img src=x onerror=alert(1)>",
    "`${alert(1)}`",
    "${alert(1)}",
    "{{constructor.constructor('alert(1)')()}}",
    "#{7*7}",
    "<%= 7*7 %>",
    "\\x3cscript\\x3ealert(1)\\x3c/script\\x3e",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "__proto__",
    "constructor",
    "toString",
    "null",
    "undefined",
    "NaN",
    "[object Object]",
]
MARKDOWN = [
    "[click](javascript:alert(1))",
    "[click](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "<https://evil.example>",
    "https://evil.example",
    "www.evil.example",
    "[x]: https://evil.example",
    "**bold** _it_ ~~no~~",
    "# heading",
    "> quote",
    "* list",
    "1. list",
    "- [ ] task",
    "| a | b |",
    "`code`",
    "```",
    "$x^2$",
    "$$\\frac{1}{2}$$",
    ":material/delete:",
    ":red[red]",
    ":smile:",
    ":blue-background[x]",
    "---",
    "\\[x\\]",
    "a  b",
    "[[wiki]]",
    "<kbd>k</kbd>",
    "@everyone",
]
CELLS = [
    "=1+1",
    '=HYPERLINK("https://evil.example","x")',
    "+1",
    "-1+1",
    "@SUM(A1)",
    "=cmd|' /C calc'!A0",
    "'quoted",
    '"double"',
    "a,b;c",
    "'; DROP TABLE label_events; --",
    "' OR '1'='1",
    "%s %d %n",
    "{0} {name}",
]
ODD = [
    "\u202egpj.exe",
    "abc\u202edef",
    "\u2066iso\u2069",
    "\u200bzero",
    "a\u200db",
    "\u05d0\u05d1\u05d2 \u0627\u0644\u0639",
    "e\u0301",
    "Z\u0351\u036b\u0343\u036a\u0302a\u0336l\u0334go",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "\U0001f1e9\U0001f1ea",
    "日本語のクラス",
    "ñandú Ünïcödé",
    "CON",
    "NUL.png",
    "..",
    ".hidden",
    "trailing.",
    "a\\b",
    "../../etc/passwd",
    "\ufeffbom",
    "x" * 255,
    "é" * 127,
    "日" * 85,
]
PAYLOADS = [*SCRIPTS, *MARKDOWN, *CELLS, *ODD]


def as_shown(text):
    """What the page makes of characters that would hide or turn a text."""
    odd = "\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff\u061c"
    return "".join(f"\\u{ord(char):04x}" if char in odd else char for char in text)


def assert_harmless(page):
    assert page.evaluate("window.pwned") == 0
    foreign = page.evaluate(
        """() => {
          const all = [];
          const walk = (root) => root.querySelectorAll('*').forEach((one) => {
            const to = one.getAttribute('href') ?? one.getAttribute('src') ?? '';
            if (/evil|javascript:/i.test(to)) all.push(one.outerHTML.slice(0, 200));
            if (one.shadowRoot) walk(one.shadowRoot);
          });
          walk(document);
          return all;
        }"""
    )
    assert foreign == []


def test_a_hundred_hostile_class_names_are_shown_literally(studio, context):
    assert len(PAYLOADS) == 100
    requests = []
    project = studio.project("t-hostile-classes", n=4, classes=PAYLOADS)
    names = list(open_names(project))
    assert len(names) == 100
    deck = DeckPage(studio, project, context)
    deck.page.on("request", lambda request: requests.append(request.url))
    deck.open()
    deck.press("/")
    for name in names:
        deck.page.locator(".search input").fill(name)
        shown = deck.page.locator(".found .row bdi").all_text_contents()
        assert as_shown(name) in shown
    deck.press("Escape")
    deck.decoded(3)
    for key in "123":
        deck.press(key)
        deck.ready()
    deck.all_saved()
    expect(deck.page.locator(".latest")).to_contain_text(as_shown(names[2]))
    assert_harmless(deck.page)
    for view in ("Grid", "Classes", "Subset", "Import and export", "Deck"):
        deck.page.get_by_text(view, exact=True).first.click()
        settled(deck.page)
        assert_harmless(deck.page)
    assert [url for url in requests if "evil" in url] == []


def open_names(project):
    from semiprune_core.labeling import open_store

    return open_store(project).classes.names()


def test_hostile_file_names_are_shown_literally(studio, context):
    usable = [
        name.replace("/", "∕") + ".png"
        for name in PAYLOADS
        if len(name.encode()) < 240 and not name.startswith(".") and "\\" not in name
    ]
    project = studio.project("t-hostile-files", n=len(usable), names=usable)
    deck = DeckPage(studio, project, context).open()
    paths = dict(zip(map(show_id, project.pool().ids), project.pool().column("path").to_pylist(), strict=True))
    for _ in range(len(usable)):
        expected = as_shown(paths[deck.ready()])
        wait_until(lambda: deck.page.locator(".name").text_content() == expected, f"the name {expected}")  # noqa: B023
        deck.press("1")
    deck.all_saved()
    assert len(deck.labels()) == len(usable) > 80
    assert_harmless(deck.page)


def test_a_hostile_annotator_name_is_shown_literally(studio, chromium):
    name = "<img src=x onerror=alert(1)>[a](https://evil.example)"
    context = open_context(chromium, name)
    try:
        deck = DeckPage(studio, studio.project("t-hostile-name", n=4), context, name).open()
        deck.press("1")
        deck.all_saved()
        assert len(deck.labels()) == 1
        assert_harmless(deck.page)
    finally:
        context.close()


@pytest.mark.fault
def test_no_label_shown_as_saved_is_missing_after_kill_9(tmp_path, chromium):
    rounds = 50 if FULL else 1
    seed = random.randrange(1 << 30)
    dice = random.Random(seed)
    studio = Studio(tmp_path)
    studio.start()
    context = open_context(chromium)
    try:
        deck = DeckPage(studio, studio.project("t-kill", n=60 * rounds), context).open()
        for number in range(rounds):
            deck.ready()
            shown_as_saved: dict[str, int] = {}
            end = time.monotonic() + dice.uniform(0.3, 2.0)
            while time.monotonic() < end:
                deck.press(dice.choice("123"))
                time.sleep(dice.uniform(0.0, 0.05))
            studio.kill()
            cards = deck.cards()
            shown_as_saved = {
                card["id"]: card["classId"] for card in cards if card["save"] == "saved" and card["action"]
            }
            store = deck.store
            assert store.database.integrity_problems() == [], f"seed {seed}, round {number}"
            held = deck.labels()
            missing = {image for image, class_id in shown_as_saved.items() if held.get(image) != class_id}
            assert not missing, f"seed {seed}, round {number}: {missing}"
            made = {card["id"]: card["classId"] for card in cards if card["action"] == "label"}
            studio.start()
            wait_until(lambda made=made: set(made) <= set(deck.labels()), f"the kept labels to arrive, seed {seed}")
            assert {image: deck.labels()[image] for image in made} == made
            deck.page.reload()
        events = [row["image_id"] for row in deck.decisions()]
        assert len(events) == len(set(events)), "a label was doubled"
    finally:
        context.close()
        studio.kill()
