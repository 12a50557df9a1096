"""Tell the story of docs/demo.md once in Chromium, at the pace of a speaker, and write down how long it took.

    .venv/bin/python docs/rehearse.py              of the finished demo, in real time: about ten minutes
    .venv/bin/python docs/rehearse.py --wpm 4000   in a hurry, to see that everything works; nothing is written down

The seconds of each slide are written into docs/demo.md.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from screenshots import FLAGS, browser_path, finished_project, say, settled  # noqa: E402

from tests.browser.serving import LET_IN, Server, free_port  # noqa: E402

SCRIPT = ROOT / "docs" / "demo.md"
WORDS_PER_MINUTE = 110.0
SECONDS_PER_LABEL = 1.5
MARKS = "<!-- timed:begin -->", "<!-- timed:end -->"


def spoken() -> dict[str, str]:
    """What is said at each slide, by its title."""
    text = SCRIPT.read_text()
    slides = re.findall(r"^### \d+\. ([^\n]+)\n\n(.+?)(?=\n### |\n## )", text, re.MULTILINE | re.DOTALL)
    return {title: re.sub(r"\*Do: .*?\*", "", words, flags=re.DOTALL) for title, words in slides}


def label_twenty(page: Page) -> None:
    page.wait_for_selector(".stage[data-image]:not([data-image=''])")
    for number in range(20):
        page.keyboard.press(str((number * 3) % 10))
        page.wait_for_timeout(1000 * SECONDS_PER_LABEL)


def wait_for_the_curve(page: Page) -> None:
    page.get_by_role("button", name="Play again").wait_for()


def draw_around_an_island(page: Page) -> None:
    page.wait_for_selector(".map[data-state=ready] canvas")
    canvas = page.locator(".map canvas").first
    box = canvas.bounding_box() or {"x": 0, "y": 0}
    x, y = canvas.evaluate("(c) => c.studio.where(0)")
    corners = [(-60, -60), (60, -60), (60, 60), (-60, 60), (-60, -60)]
    page.mouse.move(box["x"] + x - 60, box["y"] + y - 60)
    page.mouse.down()
    for dx, dy in corners[1:]:
        page.mouse.move(box["x"] + x + dx, box["y"] + y + dy, steps=12)
    page.mouse.up()
    page.get_by_text("selected").last.wait_for()


def move_the_slider(page: Page) -> None:
    slider = page.get_by_role("slider", name="Pruning ratio")
    slider.focus()
    for key in 4 * ["ArrowRight"] + 4 * ["ArrowLeft"]:
        slider.press(key)
        page.wait_for_timeout(900)
    settled(page)


DO: dict[str, Callable[[Page], None]] = {
    "Label a tenth": label_twenty,
    "The rest is learned": wait_for_the_curve,
    "A map of the pool": draw_around_an_island,
    "How much to keep?": move_the_slider,
}


def tell(page: Page, address: str, words_per_minute: float) -> dict[str, float]:
    """The seconds of each slide, speaking and doing."""
    took = {}
    page.goto(address)
    for number, (title, words) in enumerate(spoken().items()):
        began = time.monotonic()
        if number:
            page.keyboard.press("PageDown")
        page.get_by_role("heading", name=title).wait_for()
        settled(page)
        page.wait_for_timeout(60_000 * len(words.split()) / words_per_minute)
        DO.get(title, settled)(page)
        took[title] = time.monotonic() - began
        say(f"{title}: {took[title]:.0f} s")
    return took


def write_down(took: dict[str, float]) -> None:
    rows = "".join(f"| {title} | {seconds:.0f} s |\n" for title, seconds in took.items())
    total = sum(took.values())
    words = f"Driven once through in Chromium at {WORDS_PER_MINUTE:.0f} words a minute: "
    words += f"**{int(total // 60)} min {total % 60:.0f} s**.\n\n"
    table = f"{words}| slide | took |\n|---|---|\n{rows}"
    before, rest = SCRIPT.read_text().split(MARKS[0])
    SCRIPT.write_text(f"{before}{MARKS[0]}\n{table}{MARKS[1]}{rest.split(MARKS[1])[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Tell the story of docs/demo.md once, and time it.")
    parser.add_argument("--wpm", type=float, default=WORDS_PER_MINUTE)
    wpm = parser.parse_args().wpm
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        base = Path(folder)
        (base / "pictures").mkdir()
        name = finished_project(base / "home")
        server = Server(base / "home", base / "pictures", free_port(), base / "app.log")
        server.start()
        try:
            browser = playwright.chromium.launch(executable_path=browser_path(), args=FLAGS)
            say("The app runs.")
            page = browser.new_page(viewport={"width": 1440, "height": 900}, extra_http_headers=LET_IN)
            page.set_default_timeout(120_000)
            took = tell(page, f"{server.url}/present?project={name}", wpm)
            browser.close()
        finally:
            server.kill()
    say(f"{sum(took.values()):.0f} s in all")
    if wpm == WORDS_PER_MINUTE:
        write_down(took)


if __name__ == "__main__":
    main()
