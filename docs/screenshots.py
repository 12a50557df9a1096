"""Take the pictures of the README and of these pages from the running app.

    .venv/bin/python docs/screenshots.py                       of the finished demo
    .venv/bin/python docs/screenshots.py --fresh               of a project made first, which takes some minutes
    .venv/bin/python docs/screenshots.py --home DIR --project NAME      an existing one, looked at in a copy
    .venv/bin/python docs/screenshots.py --only map,select     some of them

Writes ``docs/images/*.png``, each with a palette and at most 150 KB. A shot that needs a step which the project has not
done is left out and said so.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, sync_playwright
from scipy.spatial import cKDTree

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from semiprune_core.labeling import open_store  # noqa: E402
from semiprune_core.labeling.progress_report import progress  # noqa: E402
from semiprune_core.project.pool import read_id  # noqa: E402
from semiprune_core.project.workspace import Project, Workspace  # noqa: E402
from tests.browser.serving import LET_IN, Server, free_port  # noqa: E402

IMAGES = ROOT / "docs" / "images"
LARGEST = 150_000
COMMON, GREYS = 96, 32
ANNOTATOR = "Ada"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE_MS = 240_000
STILL_SECONDS = 45.0
PROGRESS = re.compile(r"^[\d,]+ of [\d,]+$")


def finished_project(home: Path) -> str:
    """The finished demo in a workspace of its own; returns its name."""
    from semiprune_core import jobs
    from semiprune_core.demo import finished as finished_demo

    job = finished_demo.open_finished_demo(Workspace.open(home))
    if job is not None and jobs.wait(job).state != jobs.DONE:
        raise SystemExit(f"The finished demo could not be opened. {job.status().message}")
    return finished_demo.NAME


def build_project(home: Path) -> str:
    """A project on the bundled clip art with every step done, by the command line; returns its name."""
    from semiprune_core.cli import main as semiprune

    for line in (
        "new Clipart --from clipart",
        "embed clipart",
        "sample clipart --fraction 0.1",
        "labels reference clipart",
        "train clipart --start frozen",
        "map clipart",
        "dynamics clipart --start frozen",
        "select clipart --method semi_aum_cutoff --ratios 0.3,0.5,0.7",
        "select clipart --method semi_dual_beta --ratios 0.5,0.7",
        "evaluate clipart --test probe",
        "evaluate clipart --test probe --truth pseudo",
        "export clipart --format csv,imagefolder",
        "report clipart",
    ):
        say(f"semiprune {line}")
        if semiprune([*line.split(), "--home", str(home), "--quiet"]):
            raise SystemExit(f"semiprune {line} did not end well.")
    return "clipart"


@dataclass
class Studio:
    """The app with the project open in it."""

    url: str
    project: Project
    browser: Browser

    @contextlib.contextmanager
    def page(self, step: str, *, dark: bool = False, height: int = 800) -> Iterator[Page]:
        """A fresh browser profile at one step of the project."""
        context = self.browser.new_context(
            viewport={"width": 1280, "height": height},
            device_scale_factor=1.25,
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            extra_http_headers=LET_IN,
        )
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(f"localStorage.setItem('semiprune:annotator', {json.dumps(ANNOTATOR)});")
        page = context.new_page()
        page.goto(f"{self.url}/{step}?project={self.project.name}" if step else self.url)
        settled(page)
        try:
            yield page
        finally:
            context.close()


Shot = Callable[[Studio], bytes]


@dataclass
class Shots:
    """The pictures by name, in the order they are taken."""

    by_name: dict[str, tuple[Shot, str | None]] = field(default_factory=dict)

    def take(self, name: str, needs: str | None = None) -> Callable[[Shot], Shot]:
        """Register a picture; ``needs`` is the kind of artifact without which there is nothing to see."""

        def add(shot: Shot) -> Shot:
            self.by_name[name] = (shot, needs)
            return shot

        return add


SHOTS = Shots()


def settled(page: Page) -> None:
    """Wait until the page's script has run and every picture in view is there."""
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
    page.wait_for_selector('[data-testid="stMainBlockContainer"] h2')
    page.wait_for_function(
        """() => {
            const all = (root) => [...root.querySelectorAll("*")].flatMap(
                (one) => [one, ...(one.shadowRoot ? all(one.shadowRoot) : [])]);
            const inView = (box) => box.bottom > 0 && box.top < innerHeight;
            return all(document).every(
                (one) => one.tagName !== "IMG" || one.complete || !inView(one.getBoundingClientRect()));
        }"""
    )


def picture(page: Page) -> bytes:
    """The page as soon as two looks at it are alike."""
    settled(page)
    deadline = time.monotonic() + STILL_SECONDS
    before = page.screenshot()
    while time.monotonic() < deadline:
        page.wait_for_timeout(700)
        now = page.screenshot()
        if now == before:
            break
        before = now
    return before


def look(studio: Studio, step: str, *, dark: bool = False, height: int = 800) -> bytes:
    with studio.page(step, dark=dark, height=height) as page:
        return picture(page)


def choose(page: Page, words: str) -> None:
    """Press one of a page's views or tabs."""
    tab: Locator = page.get_by_role("tab", name=words)
    (tab if tab.count() else page.get_by_test_id("stButtonGroup").get_by_text(words, exact=True)).first.click()
    settled(page)


@SHOTS.take("home")
def home(studio: Studio) -> bytes:
    """Of a workspace without projects, put aside for the moment."""
    folder = studio.project.folder
    aside = folder.rename(folder.with_name(f".{folder.name}"))
    try:
        return look(studio, "", height=760)
    finally:
        aside.rename(folder)


@SHOTS.take("present", "evaluation")
def present(studio: Studio) -> bytes:
    with studio.page("present", height=760) as page:
        for _ in range(8):
            page.get_by_role("button", name="Next").click()
            settled(page)
        page.wait_for_selector(".js-plotly-plot:visible")
        return picture(page)


@SHOTS.take("pool", "pool")
def pool(studio: Studio) -> bytes:
    return look(studio, "pool")


@SHOTS.take("train", "pseudo")
def train(studio: Studio) -> bytes:
    return look(studio, "train", height=1000)


@SHOTS.take("pseudo", "pseudo")
def pseudo(studio: Studio) -> bytes:
    return look(studio, "pseudo", height=860)


@SHOTS.take("pseudo-confusion", "pseudo")
def pseudo_confusion(studio: Studio) -> bytes:
    with studio.page("pseudo", height=900) as page:
        choose(page, "Confusion")
        page.get_by_text("Click a cell to see its images").scroll_into_view_if_needed()
        return picture(page)


@SHOTS.take("pseudo-review", "pseudo")
def pseudo_review(studio: Studio) -> bytes:
    with studio.page("pseudo", height=900) as page:
        choose(page, "Review")
        page.wait_for_selector(".stage[data-image]:not([data-image=''])")
        return picture(page)


def lassoed(page: Page) -> bytes:
    """The map with a region drawn around, and its gallery below."""
    page.wait_for_selector(".map[data-state=ready] canvas")
    canvas = page.locator(".map canvas").first
    box = canvas.bounding_box()
    assert box is not None
    places = canvas.evaluate("c => Array.from({length: 4000}, (_, i) => c.studio.where(i))")
    shown = [(x, y) for x, y in places if 0 < x < box["width"] and 0 < y < box["height"]]
    half = 26

    def held(place: tuple[float, float]) -> int:
        return sum(abs(x - place[0]) < half and abs(y - place[1]) < half for x, y in shown)

    inner = [p for p in shown if half < p[0] < box["width"] - half and half < p[1] < box["height"] - half]
    x, y = min(inner[::25], key=lambda place: abs(held(place) - 60))
    corners = [(-1, -0.4), (-0.4, -1), (0.4, -1), (1, -0.4), (1, 0.4), (0.4, 1), (-0.4, 1), (-1, 0.4), (-1, -0.4)]
    path = [(box["x"] + x + half * dx, box["y"] + y + half * dy) for dx, dy in corners]
    page.mouse.move(*path[0])
    page.mouse.down()
    for corner in path[1:]:
        page.mouse.move(*corner, steps=4)
    page.mouse.up()
    page.mouse.move(5, 5)
    page.get_by_text("images selected").wait_for()
    return picture(page)


@SHOTS.take("map", "map")
def the_map(studio: Studio) -> bytes:
    with studio.page("map", height=1380) as page:
        return lassoed(page)


@SHOTS.take("map-dark", "map")
def the_map_dark(studio: Studio) -> bytes:
    with studio.page("map", dark=True, height=960) as page:
        page.wait_for_selector(".map[data-state=ready] canvas")
        return picture(page)


@SHOTS.take("scores", "scores")
def scores(studio: Studio) -> bytes:
    return look(studio, "scores", height=900)


@SHOTS.take("scores-plane", "scores")
def scores_plane(studio: Studio) -> bytes:
    with studio.page("scores", height=900) as page:
        choose(page, "Plane")
        page.wait_for_selector(".js-plotly-plot:visible")
        return picture(page)


@SHOTS.take("scores-story", "scores")
def scores_story(studio: Studio) -> bytes:
    with studio.page("scores", height=900) as page:
        choose(page, "Plane")
        page.get_by_text("Highest DUAL").scroll_into_view_if_needed()
        settled(page)
        cells = page.locator(".cell:visible")
        cells.nth(cells.count() // 2 + 1).click()
        page.get_by_role("dialog").get_by_text("Most similar images").wait_for()
        page.mouse.move(5, 5)
        return picture(page)


@SHOTS.take("select", "scores")
def select(studio: Studio) -> bytes:
    return look(studio, "select", height=1000)


@SHOTS.take("select-dark", "scores")
def select_dark(studio: Studio) -> bytes:
    return look(studio, "select", dark=True, height=860)


@SHOTS.take("evaluate", "coreset")
def evaluate(studio: Studio) -> bytes:
    return look(studio, "evaluate", height=1000)


@SHOTS.take("export", "coreset")
def export(studio: Studio) -> bytes:
    return look(studio, "export", height=1000)


def draw_more(studio: Studio) -> None:
    """Images to label for the label page's pictures; last of all, since it opens the step anew."""
    store, whole = open_store(studio.project), studio.project.pool()
    drawn = max((len(one) for one in store.drawings.all()), default=0)
    if progress(store).complete:
        count = min(len(whole), drawn + 300)
        store.drawings.draw(
            pool_hash=whole.hash, ids=whole.ids, duplicate_of=whole.duplicate_of, count=count, annotator=ANNOTATOR
        )


@SHOTS.take("label-grid", "pool")
def label_grid(studio: Studio) -> bytes:
    draw_more(studio)
    with studio.page("label") as page:
        choose(page, "Grid")
        page.locator(".cell:visible").first.wait_for()
        page.get_by_text(PROGRESS).first.wait_for()
        return picture(page)


@SHOTS.take("label", "pool")
def label(studio: Studio) -> bytes:
    draw_more(studio)
    whole, keys = studio.project.pool(), {one.name: one.key for one in open_store(studio.project).classes.all()}
    with studio.page("label") as page:
        page.wait_for_selector(".stage[data-image]:not([data-image=''])")
        page.get_by_text(PROGRESS).first.wait_for()
        for _ in range(3):
            shown = read_id(page.locator(".stage").get_attribute("data-image") or "")
            true = whole.reference_labels[int(whole.positions([shown])[0])]
            page.keyboard.press(keys[whole.class_names[true]] or " ")
            page.wait_for_timeout(300)
        return picture(page)


def save(png: bytes, path: Path) -> int:
    """Write a screenshot with a palette, as many pixels as fit; returns its size in bytes."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    for share in (1.0, 0.9, 0.8, 0.7, 0.6):
        small = image if share == 1 else image.resize((round(image.width * share), round(image.height * share)))
        out = io.BytesIO()
        with_palette(np.asarray(small)).save(out, "PNG", optimize=True)
        if out.tell() <= LARGEST:
            path.write_bytes(out.getvalue())
            return out.tell()
    raise SystemExit(f"{path.name} stays above {LARGEST:,} bytes. Make its part of the page smaller.")


def with_palette(pixels: np.ndarray) -> Image.Image:
    """(H, W, 3) in 256 colours: the most frequent ones as they are, some greys, and the rest shared out over the colour
    space however few pixels they have, so that a small dot keeps its colour."""
    colours, which, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    common = colours[np.argsort(-counts)[:COMMON]]
    greys = np.linspace(0, 255, GREYS).round().astype(np.uint8)[:, None].repeat(3, axis=1)
    _, first = np.unique(colours >> 3, axis=0, return_index=True)
    n_rest = min(256 - len(common) - GREYS, len(first))
    spread = Image.fromarray(colours[first][None]).quantize(n_rest, method=Image.Quantize.MEDIANCUT)
    rest = np.array(spread.getpalette()[: 3 * n_rest], dtype=np.uint8).reshape(-1, 3)
    palette = np.concatenate([common, greys, rest])
    _, nearest = cKDTree(palette.astype(float)).query(colours.astype(float))
    image = Image.fromarray(nearest.astype(np.uint8)[which].reshape(pixels.shape[:2]), mode="P")
    image.putpalette(palette.ravel().tolist())
    return image


def say(words: str) -> None:
    sys.stderr.write(words + "\n")


def browser_path() -> str:
    named = os.environ.get("SEMIPRUNE_BROWSER")
    found = named or next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise SystemExit("No Chromium here. Run `make tools`, or set SEMIPRUNE_BROWSER to its path.")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the screenshots of README and docs.")
    parser.add_argument("--home", type=Path, help="a workspace that is there already; it is copied")
    parser.add_argument("--project", help="with --home: the project's name")
    parser.add_argument("--fresh", action="store_true", help="make a project instead of opening the finished demo")
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--out", type=Path, default=IMAGES)
    args = parser.parse_args()
    names = args.only.split(",") if args.only else list(SHOTS.by_name)
    if unknown := [name for name in names if name not in SHOTS.by_name]:
        raise SystemExit(f"No picture is called {unknown[0]}. Known: {', '.join(SHOTS.by_name)}.")
    if bool(args.home) != bool(args.project):
        raise SystemExit("Name both, --home and --project, or neither.")
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        (base / "pictures").mkdir()
        workspace_home = base / "home"
        if args.home:
            Workspace.open(workspace_home)
            shutil.copytree(args.home / args.project, workspace_home / args.project, symlinks=True)
            name = args.project
        else:
            name = build_project(workspace_home) if args.fresh else finished_project(workspace_home)
        take(names, Workspace.open(workspace_home).project(name), base, args.out)
    total = sum(path.stat().st_size for path in args.out.glob("*.png"))
    say(f"{len(list(args.out.glob('*.png')))} pictures, {total / 1e6:.2f} MB in all.")


def take(names: list[str], project: Project, base: Path, out: Path) -> None:
    """Start the app and take these pictures of ``project``."""
    server = Server(project.folder.parent, base / "pictures", free_port(), base / "app.log")
    server.start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=browser_path(), args=FLAGS)
            studio = Studio(server.url, project, browser)
            for name in names:
                shot, needs = SHOTS.by_name[name]
                if needs is not None and project.latest(needs) is None:
                    say(f"{name}: left out, the project has no {needs} yet")
                    continue
                say(f"{name}: {save(shot(studio), out / f'{name}.png'):,} bytes")
            browser.close()
    finally:
        server.kill()


if __name__ == "__main__":
    main()
