"""From the key to the next picture: the deck in Chromium, without and with the line that says how good the labels are,
and a plain st.button page beside it, all in the same run; and from the twentieth label to the line.

    .venv/bin/python benchmarks/labeling.py [--small] [--keep]

Measured inside the page: from the key's (or click's) event to the end of the first frame in which the next picture is
complete and in the document. Every label is then looked up in the store, on the image that was in view. The line stands
on made-up features, as many and as wide as the packaged encoder's, so that fitting takes what it takes for real ones.
Its process fits all the while.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import common
import numpy as np
from playwright.sync_api import sync_playwright

from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import open_store
from semiprune_core.progress import Collected
from semiprune_core.project.pool import show_id
from semiprune_core.project.workspace import Workspace
from semiprune_core.results.features import segments_of

ARGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ROUNDS = 3
N_DIMENSIONS = 1280
FIRST = 20
"""Labels after which the line appears."""
PACE_MS = 600
"""A quick person's pause between two of the first labels."""

# Both pages are watched by the same eye: frame by frame, until another picture is complete and in the document.
EYE = """
window.after = (from, picture, before) => new Promise((resolve) => {
  const look = () => {
    const [name, image] = picture();
    if (!name || name === before || !image?.complete || !image.naturalWidth) return requestAnimationFrame(look);
    const channel = new MessageChannel();           // a message sent in a frame arrives after it was drawn
    channel.port1.onmessage = () => {
      const drawn = performance.now() - from;
      requestAnimationFrame(() => resolve([drawn, performance.now() - from]));  // by then it is on the screen
    };
    channel.port2.postMessage(null);
  };
  requestAnimationFrame(look);
});
window.deep = (what, root = document) => {
  const found = root.querySelector(what);
  if (found) return found;
  for (const one of root.querySelectorAll("*")) {
    const inside = one.shadowRoot && window.deep(what, one.shadowRoot);
    if (inside) return inside;
  }
  return null;
};
let stageElement = null;
window.stage = () => (stageElement = stageElement?.isConnected ? stageElement : window.deep(".stage"));
window.onDeck = () => [window.stage()?.dataset.image, window.stage()?.querySelector(".slot img")];
window.onPage = () => {
  const image = document.querySelector("[data-testid='stImage'] img");
  return [image?.currentSrc, image];
};
window.addEventListener("keydown", (event) => {
  if (!window.stage() || event.repeat) return;
  window.measured = window.after(performance.now(), window.onDeck, window.onDeck()[0]);
}, true);
localStorage.setItem("semiprune:annotator", "bench");
"""


@contextmanager
def served(script: str, home: Path, project: str):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {"SEMIPRUNE_HOME": str(home), "BENCH_PROJECT": project, "PYTHONPATH": str(common.ROOT)}
    environment["SEMIPRUNE_LOGIN"] = "off"
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port)]
    process = subprocess.Popen(
        command, cwd=common.ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{url}/_stcore/health", timeout=2).close()
                break
            except OSError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise RuntimeError(f"{script} did not start") from None
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def make_project(home: Path, name: str, n: int, *, with_features: bool):
    workspace = Workspace.open(home)
    project = workspace.create(name)
    import_source(project, ImportSettings(source=SourceSpec("demo").to_json()), Collected())
    store, pool = open_store(project), project.pool()
    store.classes.add(pool.class_names, annotator="bench")
    store.drawings.draw(pool_hash=pool.hash, ids=pool.ids, duplicate_of=pool.duplicate_of, count=n, annotator="bench")
    if with_features:
        write_features(project, pool)
    return project


def write_features(project, pool) -> None:
    """One direction for each class, and noise around it."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(len(pool.class_names), N_DIMENSIONS))
    noise = 4 * rng.normal(size=(len(pool), N_DIMENSIONS))
    with project.draft("features", settings={"encoder": "made up"}, inputs={"pool": pool.hash}) as draft:
        np.save(draft.path("features.npy"), np.maximum(centres[pool.reference_labels] + noise, 0).astype(np.float32))
        draft.facts.update(n_images=len(pool), n_dimensions=N_DIMENSIONS, segments=list(segments_of(project)))


class DeckSide:
    """Keys on the deck; remembers what was in view at each."""

    def __init__(self, page, url: str, project: str) -> None:
        self.page, self.dice, self.pressed = page, random.Random(0), {}
        page.goto(f"{url}/label?project={project}")
        page.wait_for_function("() => window.stage() && window.onDeck()[0]", timeout=60_000)
        page.wait_for_timeout(1500)

    def until_the_line(self) -> float:
        """Seconds from the twentieth label to the line that needs it, the first nineteen at a person's pace."""
        self.page.bring_to_front()
        for number in range(FIRST):
            self.press()
            if number < FIRST - 1:
                self.page.wait_for_timeout(PACE_MS)
        began = time.perf_counter()
        self.page.wait_for_function("() => window.deep('.live').dataset.state === 'ready'", timeout=120_000, polling=20)
        return time.perf_counter() - began

    def press(self) -> None:
        key = self.dice.randrange(10)
        self.pressed[self.page.evaluate("window.onDeck()[0]")] = (key + 9) % 10  # key 1 is the first class
        self.page.keyboard.press(str(key))

    def measure(self, n: int) -> list[list[float]]:
        """For each one: milliseconds until drawn, and until the frame after."""
        self.page.bring_to_front()
        times = []
        for _ in range(n):
            self.press()
            times.append(self.page.evaluate("Promise.race([window.measured, new Promise((r) => setTimeout(r, 5000))])"))
            self.page.wait_for_timeout(self.dice.uniform(20, 60))
        self.page.wait_for_function("() => window.deep('.status').textContent === 'All saved'", timeout=60_000)
        return [pair for pair in times if pair is not None]  # after the very last image no picture comes


class ButtonSide:
    """Clicks on the plain page's buttons."""

    def __init__(self, page, url: str) -> None:
        self.page, self.dice = page, random.Random(0)
        page.goto(url)
        page.wait_for_function("() => window.onPage()[1]?.complete", timeout=60_000)
        page.wait_for_timeout(1500)

    def measure(self, n: int) -> list[list[float]]:
        """For each one: milliseconds until drawn, and until the frame after."""
        self.page.bring_to_front()
        times = []
        for _ in range(n):
            click = """(place) => {
              const buttons = document.querySelectorAll("[data-testid='stButton'] button");
              const before = window.onPage()[0];
              const from = performance.now();
              buttons[place].click();
              return window.after(from, window.onPage, before);
            }"""
            times.append(self.page.evaluate(click, self.dice.randrange(10)))
            self.page.wait_for_timeout(self.dice.uniform(20, 60))
        return times


def main() -> None:
    args = common.benchmark_parser(__doc__, small="60 images instead of 300").parse_args()
    n, n_buttons = (60, 30) if args.small else (300, 120)
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = Path(folder)
        project = make_project(home, "bench", n, with_features=False)
        followed = make_project(home, "followed", n + FIRST, with_features=True)
        browser = playwright.chromium.launch(executable_path=executable, args=ARGS)
        with (
            served("app.py", home, project.name) as app,
            served("benchmarks/button_page.py", home, project.name) as plain,
        ):
            pages = []
            for _ in range(3):
                context = browser.new_context(viewport={"width": 1280, "height": 860})
                context.add_init_script(EYE)
                pages.append(context.new_page())
            ours, theirs = DeckSide(pages[0], app, project.name), ButtonSide(pages[1], plain)
            live = DeckSide(pages[2], app, followed.name)
            line_seconds = live.until_the_line()
            deck, with_line, buttons = common.rounds(
                ROUNDS,
                lambda: ours.measure(n // ROUNDS),
                lambda: live.measure(n // ROUNDS),
                lambda: theirs.measure(n_buttons // ROUNDS),
            )
        chromium = browser.version
        browser.close()
        held = {
            (side.name, show_id(answer.image_id)): answer.class_id
            for side in (project, followed)
            for answer in open_store(side).held(annotator="bench")
            if answer.action == "label"
        }
        wrong = sum(
            held.get((side.name, image)) != class_id
            for side, deck_side in ((project, ours), (followed, live))
            for image, class_id in deck_side.pressed.items()
        )
    drawn, on_screen = np.concatenate(deck).T
    line_drawn = np.concatenate(with_line).T[0]
    button_drawn, button_on_screen = np.concatenate(buttons).T
    p50, p95 = (float(value) for value in np.percentile(drawn, [50, 95]))
    line_p50, line_p95 = (float(value) for value in np.percentile(line_drawn, [50, 95]))
    button_p50 = float(np.median(button_drawn))
    keys = {
        "p50_ms": round(p50, 1),
        "p95_ms": round(p95, 1),
        "with_line_p50_ms": round(line_p50, 1),
        "with_line_p95_ms": round(line_p95, 1),
        "line_after_s": round(line_seconds, 2),
        "button_p50_ms": round(button_p50, 1),
        "ratio": round(button_p50 / p50, 2),
        "sent": len(ours.pressed) + len(live.pressed),
        "saved": len(held),
        "wrong_image": wrong,
    }
    details = {
        "p50_ms_by_round": common.spread([round(float(np.median(part, axis=0)[0]), 1) for part in deck]),
        "with_line_p50_ms_by_round": common.spread([round(float(np.median(part, axis=0)[0]), 1) for part in with_line]),
        "button_p50_ms_by_round": common.spread([round(float(np.median(part, axis=0)[0]), 1) for part in buttons]),
        "button_p95_ms": round(float(np.percentile(button_drawn, 95)), 1),
        "until_the_frame_after": {
            "p50_ms": round(float(np.median(on_screen)), 1),
            "p95_ms": round(float(np.percentile(on_screen, 95)), 1),
            "button_p50_ms": round(float(np.median(button_on_screen)), 1),
        },
        "button_clicks": n_buttons,
        "chromium": chromium,
    }
    print(f"Key to next picture: median {p50:.1f} ms, p95 {p95:.1f} ms {details['p50_ms_by_round']}")
    print(f"With the line: median {line_p50:.1f} ms, p95 {line_p95:.1f} ms {details['with_line_p50_ms_by_round']}")
    print(f"From the twentieth label to the line: {line_seconds:.2f} s")
    print(f"Plain st.button page: median {button_p50:.1f} ms {details['button_p50_ms_by_round']}")
    common.finish(args, "labeling", keys, details)


if __name__ == "__main__":
    main()
