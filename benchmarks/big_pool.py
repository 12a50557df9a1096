"""Every page with a pool of 100,000 images in Chromium: first content, and the next page of the gallery.

    .venv/bin/python benchmarks/big_pool.py --data CIFAR_NPZ --work DIR [--small] [--keep]

The pool is made of real pictures (shifted, mirrored and tinted CIFAR images, written by the import's own writer), a
tenth labeled, with pseudo-labels, scores, a map, features of 2,560 dimensions and a scan as artifacts. "First content"
is a fresh tab's whole load up to what its page is about, each page once to warm the app and then in rounds; "gallery
page" is a click on the next page up to its first new picture. Beside the wall clock stands the processor time that the
app took, which says what a quiet machine would need. "find" is one search through the features.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from common import benchmark_parser, finish, label_a_tenth, spread
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from select_page import serve

from semiprune_core.dynamics.scoring import score_runs
from semiprune_core.find import like_image, most_alike
from semiprune_core.importing import images
from semiprune_core.importing.workers import THUMBNAIL_SIDE, Chunk, Row
from semiprune_core.importing.writer import SegmentWriter
from semiprune_core.labeling import open_store
from semiprune_core.maps.embedding_map import MapSettings
from semiprune_core.paths import ROOTS_VARIABLE
from semiprune_core.project.pool import PoolSettings
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.results import write_pseudo
from semiprune_core.results.features import KIND as FEATURES
from semiprune_core.results.features import POOL_FILE, segments_of
from semiprune_core.results.pseudo import FROZEN
from semiprune_core.scan.run import KIND as SCAN
from semiprune_core.scan.run import PAIRS, RULE
from semiprune_core.training.settings import TrainSettings
from tests.support.scored_projects import add_trajectory

NAME, SEED, CHUNK = "big", 0, 500
DIMENSIONS = 2_560
POOL = PoolSettings(size=32, channels=3)
READY = {
    "": "[data-testid='stHeading']",
    "pool": ".cell img",
    "label": ".stage",
    "train": "[data-testid='stHeading']",
    "pseudo": "[data-testid='stMetric']",
    "map": ".map[data-state=ready]",
    "scores": ".js-plotly-plot .bars path",
    "select": ".js-plotly-plot .bars path",
    "evaluate": "[data-testid='stHeading']",
    "export": "[data-testid='stHeading']",
}
"""What a page is about, by its address."""
LOADED = """() => { for (const host of document.querySelectorAll('*')) {
  const image = (host.shadowRoot ?? document).querySelector('.cell img');
  if (image) return image.complete && image.naturalWidth > 0 ? image.src : null; } return null; }"""
"""The address of the gallery's first picture, once it is there."""


def pictures(data: Path, n: int) -> Iterator[tuple[np.ndarray, str]]:
    """``n`` different pictures (32, 32, 3) with their classes."""
    with np.load(data, allow_pickle=False) as file:
        originals, labels, names = file["images"], file["labels"], file["class_names"]
    rng = np.random.default_rng(SEED)
    for _ in range(n):
        row = int(rng.integers(len(originals)))
        picture = np.roll(originals[row], rng.integers(-4, 5, 2), axis=(0, 1))[:, :: rng.choice([-1, 1])]
        tint = rng.uniform(0.8, 1.2, 3)
        yield np.clip(picture * tint, 0, 255).astype(np.uint8), str(names[labels[row]])


def chunks(data: Path, n: int) -> Iterator[Chunk]:
    """The pictures as the import's workers hand them over."""
    chunk, cached = Chunk(), []
    for number, (picture, label) in enumerate(pictures(data, n), start=1):
        image = Image.fromarray(picture)
        content = images.content_hash(picture)
        chunk.rows.append(
            Row(
                path=f"{label}/{number:06d}.png", file=None, width=32, height=32, mode="RGB", format="PNG",
                file_bytes=picture.nbytes, file_sha256=2 * content, content_hash=content, label=label, split="pool",
                corruption=None, converted=None,
            )
        )  # fmt: skip
        chunk.thumbs.append(images.thumbnail(image, THUMBNAIL_SIDE))
        cached.append(picture)
        if len(cached) == CHUNK or number == n:
            chunk.images = np.stack(cached)
            yield chunk
            chunk, cached = Chunk(), []


def make_project(workspace: Workspace, data: Path, n: int) -> Project:
    project = workspace.create("Big", name=NAME)
    settings = {"source": {"kind": "folder", "location": "", "options": {}, "variants": []}, "pool": POOL.to_json()}
    with project.draft("pool", settings=settings, inputs={}) as draft:
        with SegmentWriter(draft.folder, POOL, packed=False, known_ids=np.empty(0, np.uint64)) as writer:
            for chunk in chunks(data, n):
                writer.add(chunk)
            draft.facts.update(writer.finish())
        draft.facts.update(origin="file", root=str(workspace.root), class_names=sorted(draft.facts["labels"]))
    project.update(pool=POOL.to_json())
    project = workspace.project(NAME)
    label_a_tenth(project)
    add_results(project)
    return project


def add_results(project: Project) -> None:
    """Everything after the labels, made up."""
    rng, pool, store = np.random.default_rng(SEED), project.pool(), open_store(project)
    n, snapshot = len(pool), store.snapshot()
    given, _ = snapshot.on_pool(pool.ids, pool.duplicate_of)
    order = [snapshot.class_names.index(name) for name in pool.class_names]
    truth, human = np.array(order)[pool.reference_labels], given >= 0
    predicted = np.where(rng.random(n) < 0.15, rng.integers(0, len(order), n), truth)
    learned = TrainSettings(start=FROZEN).flat()
    with project.draft(
        "pseudo", settings=learned, inputs={"pool": pool.hash, "labels": snapshot.hash}, seed=0
    ) as draft:
        write_pseudo(
            draft,
            labels=np.where(human, given, predicted), predicted=predicted, confidence=rng.random(n), human_mask=human,
            held_out_mask=human & (rng.random(n) < 0.1), features=rng.normal(size=(n, 64)),
            class_names=snapshot.class_names, quality=None, history=[],
        )  # fmt: skip
        draft.facts.update(n_labels=int(human.sum()), seconds=60.0)
    pseudo = project.latest("pseudo").hash
    with tempfile.TemporaryDirectory() as folder:
        score_runs(project, [add_trajectory(project, Path(folder))])
    points = (6 * rng.normal(size=(len(order), 2))[truth] + rng.normal(size=(n, 2))).astype(np.float32)
    with project.draft(
        "map", settings=MapSettings(method="umap").to_json(), inputs={"pseudo": pseudo}, seed=0
    ) as draft:
        np.save(draft.path("points.npy"), points)
        edges = {"low": points.min(0).tolist(), "high": points.max(0).tolist()}
        draft.facts.update(n_images=n, n_placed=n, n_dimensions=2, **edges)
    add_features(project, rng, n)
    add_scan(project, rng, n)


def add_features(project: Project, rng: np.random.Generator, n: int) -> None:
    looks = {"encoder": "efficientnet_lite0+efficientnet_lite2", "weights_hash": "0" * 64, "size": 260, "fit": "crop"}
    with project.draft(FEATURES, settings=looks, inputs={"pool": project.everything().hash}) as draft:
        rows = np.lib.format.open_memmap(draft.path(POOL_FILE), "w+", np.float32, (n, DIMENSIONS))
        for start in range(0, n, 4_096):
            rows[start : start + 4_096] = rng.standard_normal((min(4_096, n - start), DIMENSIONS), np.float32)
        rows.flush()
        draft.facts.update(
            n_images=n, n_test=0, n_dimensions=DIMENSIONS, segments=list(segments_of(project)), n_problems=0,
            problems=[], engine="none", widths=[DIMENSIONS],
        )  # fmt: skip


def add_scan(project: Project, rng: np.random.Generator, n: int) -> None:
    """Pairs between neighbours of one image in twenty, and measures."""
    left = np.sort(rng.permutation(n - 1)[: n // 20])
    pairs = (left, left + 1, rng.uniform(0.85, 1, len(left)).astype(np.float32))
    names = ("sharpness", "brightness", "contrast", "shape", "scale", "nearness")
    inputs = {"pool": project.everything().hash, "features": project.latest(FEATURES).hash}
    with project.draft(SCAN, settings={"rule": RULE}, inputs=inputs) as draft:
        for name, values in zip(PAIRS, pairs, strict=True):
            np.save(draft.path(f"{name}.npy"), values)
        for name in names:
            low = 1 if name in ("shape", "scale") else 0.2
            np.save(draft.path(f"{name}.npy"), rng.uniform(low, low + 0.6, n).astype(np.float32))
        draft.facts.update(n_images=n, n_pairs=len(left), measures=list(names))


class Tab:
    """A fresh browser profile, and the processor time of the app meanwhile."""

    def __init__(self, browser: Browser, address: str, app: psutil.Process) -> None:
        self.context = browser.new_context(viewport={"width": 1400, "height": 1000})
        self.context.add_init_script("localStorage.setItem('semiprune:annotator', 'benchmark')")
        self.context.set_default_timeout(120_000)
        self.page: Page = self.context.new_page()
        self.address, self.app = address, app

    def timed(self, act: Callable[[], Any]) -> tuple[float, float]:
        """Milliseconds on the wall, and of the app's processor time."""
        used, began = sum(self.app.cpu_times()[:2]), time.perf_counter()
        act()
        return 1000 * (time.perf_counter() - began), 1000 * (sum(self.app.cpu_times()[:2]) - used)

    def open(self, name: str) -> tuple[float, float]:
        self.page.goto("about:blank")

        def load() -> None:
            self.page.goto(f"{self.address}/{name}?project={NAME}")
            self.page.locator(READY[name]).first.wait_for(state="attached")

        return self.timed(load)

    def turn(self, number: int) -> tuple[float, float]:
        """The gallery's page ``number``, up to its first picture."""
        before = self.page.locator(".cell img").first.get_attribute("src")

        def press() -> None:
            self.page.get_by_role("button", name=str(number), exact=True).first.click()
            self.page.wait_for_function(
                f"(before) => {{ const now = ({LOADED})(); return now && !now.endsWith(before); }}", arg=before
            )

        return self.timed(press)


def measured(browser: Browser, address: str, pid: int, n_rounds: int) -> tuple[dict[str, Any], list[Any]]:
    """Every page's loads, and the gallery's pages."""
    app, loads = psutil.Process(pid), {}
    for name in READY:
        times = []
        for _ in range(n_rounds + 1):  # the first one warms the app
            tab = Tab(browser, address, app)
            times.append(tab.open(name))
            tab.context.close()
        loads[name or "projects"] = times
        print(name or "projects", [f"{wall:.0f} ({cpu:.0f})" for wall, cpu in times], flush=True)
    tab = Tab(browser, address, app)
    tab.open("pool")
    turns = [tab.turn(number) for number in (2, 3, 4, 3, 2)][: n_rounds + 2]
    print("gallery", [f"{wall:.0f} ({cpu:.0f})" for wall, cpu in turns], flush=True)
    return loads, turns


def found(project: Project, n_rounds: int) -> list[float]:
    """Seconds of searches through all features."""
    everything, times = project.everything(), []
    for number in range(n_rounds + 1):
        began = time.perf_counter()
        most_alike(like_image(project, everything, int(everything.ids[7 * number])), most=1_000)
        times.append(time.perf_counter() - began)
    return times


def main() -> None:
    parser = benchmark_parser(__doc__, small="2,000 images, one round")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    args = parser.parse_args()
    n, n_rounds = (2_000, 1) if args.small else (100_000, 2)
    home = args.work / f"home-{n}"
    os.environ[ROOTS_VARIABLE] = str(args.work.resolve())
    workspace = Workspace.open(home)
    began = time.perf_counter()
    project = workspace.project(NAME) if NAME in workspace else make_project(workspace, args.data, n)
    print(f"made in {time.perf_counter() - began:.0f} s", flush=True)
    searches = found(project, n_rounds)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    app = serve(home, port)
    path = os.environ.get("SEMIPRUNE_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
            loads, turns = measured(browser, f"http://localhost:{port}", app.pid, n_rounds)
            browser.close()
    finally:
        app.kill()
        app.wait()
    warm = [wall for times in loads.values() for wall, _ in times[1:]]
    keys = {
        "n_images": n,
        "first_content_ms_p95": round(float(np.percentile(warm, 95))),
        "gallery_page_ms_p95": round(float(np.percentile([wall for wall, _ in turns], 95))),
    }
    details = {
        "first_load_ms": {name: round(times[0][0]) for name, times in loads.items()},
        "first_content_ms": {name: spread([wall for wall, _ in times[1:]]) for name, times in loads.items()},
        "app_cpu_ms": {name: spread([cpu for _, cpu in times[1:]]) for name, times in loads.items()},
        "gallery_page_ms": spread([wall for wall, _ in turns]),
        "gallery_page_cpu_ms": spread([cpu for _, cpu in turns]),
        "find_first_s": round(searches[0], 3),
        "find_s": spread(searches[1:]),
    }
    finish(args, "big_pool", keys, details)


if __name__ == "__main__":
    main()
