"""The map page: from a finished artifact to the first picture, from a lasso to its gallery, UMAP in the background.

    .venv/bin/python benchmarks/map_page.py [--no-umap] [--small] [--keep]

Pools of 50,000 and 1,281,167 images are made up on the disk (real tables, one thumbnail for all), the app serves them,
Chromium looks. "First picture" is a fresh tab's whole load; "lasso" ends when the gallery shows its first thumbnail.
UMAP runs on 50,000 x 128 features in a process of its own, as the job does; its CPU time is kept beside the wall clock.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import ROOT, benchmark_parser, finish, rounds, spread
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from semiprune_core.labeling import open_store
from semiprune_core.maps.embedding_map import MapSettings
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.results import write_pseudo

CLASSES = tuple(f"class {number}" for number in range(10))
SLOW_MS = 180_000
UMAP = """
import json, sys, time, numpy as np
from semiprune_core.embeddings.reduce import umap
n = int(sys.argv[1])
rng = np.random.default_rng(0)
values = (2 * rng.normal(size=(10, 128))[rng.integers(0, 10, n)] + rng.normal(size=(n, 128))).astype(np.float16)
wall, cpu = time.perf_counter(), time.process_time()
umap(values, seed=0)
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))
"""


def make_project(home: Path, name: str, n: int) -> Project:
    """A project with a pool, pseudo-labels and a map of ``n`` images that were never decoded."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from semiprune_core.project.pool import PROBLEM_SCHEMA, SCHEMA

    project = Workspace.open(home).create(name, name=name)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, len(CLASSES), n)
    file = io.BytesIO()
    Image.fromarray(rng.integers(0, 255, (28, 28), dtype=np.uint8)).save(file, "PNG")
    thumb = file.getvalue()
    with project.draft("pool", settings={}, inputs={}) as draft:
        with pq.ParquetWriter(draft.path("table.parquet"), SCHEMA, compression="zstd") as writer:
            for start in range(0, n, 20_000):
                count = min(20_000, n - start)
                hashes = rng.bytes(48 * count)
                columns = {
                    "image_id": rng.integers(0, 2**64, count, dtype=np.uint64),
                    "path": [f"{start + i}.png" for i in range(count)],
                    "file": [None] * count,
                    "width": np.full(count, 28, np.int32),
                    "height": np.full(count, 28, np.int32),
                    "mode": ["L"] * count,
                    "format": ["PNG"] * count,
                    "file_bytes": np.full(count, len(thumb)),
                    "file_sha256": [hashes[48 * i : 48 * i + 32] for i in range(count)],
                    "content_hash": [hashes[48 * i + 32 : 48 * i + 48] for i in range(count)],
                    "label": [CLASSES[c] for c in labels[start : start + count]],
                    "split": ["pool"] * count,
                    "corruption": [None] * count,
                    "converted": [None] * count,
                }
                writer.write_table(pa.table(columns, schema=SCHEMA))
        empty = pa.table({name: [] for name in PROBLEM_SCHEMA.names}, schema=PROBLEM_SCHEMA)
        pq.write_table(empty, draft.path("problems.parquet"))
        draft.path("thumbs.bin").write_bytes(thumb * n)
        np.save(draft.path("thumbs.npy"), np.arange(n + 1) * len(thumb))
        draft.facts.update(n_images=n, n_problems=0, origin="file", root=str(home), class_names=list(CLASSES))
    pool, store = project.pool(), open_store(project)
    store.classes.add(CLASSES, annotator="bench")
    predicted = np.where(rng.random(n) < 0.15, rng.integers(0, len(CLASSES), n), labels)
    nobody = np.zeros(n, dtype=bool)
    inputs = {"pool": pool.hash, "labels": store.snapshot().hash}
    with project.draft("pseudo", settings={"algorithm": "none"}, inputs=inputs, seed=0) as draft:
        write_pseudo(
            draft,
            labels=predicted,
            predicted=predicted,
            confidence=rng.random(n),
            human_mask=nobody,
            held_out_mask=nobody,
            features=np.zeros((n, 2)),
            class_names=CLASSES,
            quality=None,
            history=[],
        )
    pseudo = project.latest("pseudo")
    assert pseudo is not None
    points = (6 * rng.normal(size=(10, 2))[labels] + rng.normal(size=(n, 2))).astype(np.float32)
    settings = MapSettings(method="umap")
    with project.draft("map", settings=settings.to_json(), inputs={"pseudo": pseudo.hash}, seed=0) as draft:
        np.save(draft.path("points.npy"), points)
        draft.facts.update(
            n_images=n, n_placed=n, n_dimensions=2, low=points.min(0).tolist(), high=points.max(0).tolist()
        )
    return project


@contextlib.contextmanager
def app(home: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    environment = {**os.environ, "SEMIPRUNE_HOME": str(home), "SEMIPRUNE_LOGIN": "off"}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/_stcore/health", timeout=2):
                break
        yield address
    finally:
        process.kill()
        process.wait()


class Watched:
    """A fresh tab that remembers the largest message it got, by websocket or by HTTP."""

    def __init__(self, browser: Any) -> None:
        self.largest = 0
        self.context = browser.new_context(viewport={"width": 1400, "height": 1000})
        self.page: Page = self.context.new_page()
        self.page.on("websocket", lambda socket: socket.on("framereceived", self._framed))
        self.page.on("response", self._answered)

    def _framed(self, payload: Any) -> None:
        self.largest = max(self.largest, len(payload))

    def _answered(self, response: Any) -> None:
        self.largest = max(self.largest, int(response.headers.get("content-length") or 0))


def first_picture(tab: Watched, address: str, name: str) -> float:
    """Milliseconds from the address to a drawn map."""
    begun = time.perf_counter()
    tab.page.goto(f"{address}/map?project={name}")
    tab.page.wait_for_selector(".map[data-state=ready]", timeout=SLOW_MS)
    return 1000 * (time.perf_counter() - begun)


def lasso(tab: Watched) -> float:
    """Milliseconds from the end of a lasso to the first thumbnail of its gallery."""
    page = tab.page
    canvas = page.locator(".map canvas").first
    box = canvas.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - 180, y - 120)
    page.mouse.down()
    for dx, dy in ((180, -120), (180, 120), (-180, 120), (-180, -120)):
        page.mouse.move(x + dx, y + dy, steps=10)
    begun = time.perf_counter()
    page.mouse.up()
    page.wait_for_function(
        """() => [...document.querySelectorAll('*')].some((one) => {
             const picture = one.shadowRoot?.querySelector('.grid .cell img');
             return picture && picture.complete && picture.naturalWidth > 0;
           })""",
        timeout=SLOW_MS,
        polling=20,
    )
    return 1000 * (time.perf_counter() - begun)


def measure_umap(n: int) -> tuple[float, float]:
    """(wall clock, CPU) seconds."""
    import json

    done = subprocess.run(
        [sys.executable, "-c", UMAP, str(n)], cwd=ROOT, capture_output=True, text=True, check=True, timeout=3600
    )
    wall, cpu = json.loads(done.stdout.strip().splitlines()[-1])
    return wall, cpu


def main() -> None:
    parser = benchmark_parser(__doc__, small="5,000 and 300,000 images, one round")
    parser.add_argument("--no-umap", action="store_true", help="leave UMAP out")
    args = parser.parse_args()
    n, n_large, n_rounds = (5_000, 300_000, 1) if args.small else (50_000, 1_281_167, 3)
    browser_path = os.environ.get("SEMIPRUNE_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        make_project(Path(home), "middle", n)
        make_project(Path(home), "large", n_large)
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        with app(Path(home)) as address:
            largest = 0
            warm = Watched(browser)
            first_picture(warm, address, "middle")  # the server's own first time
            warm.context.close()
            lassos: list[float] = []

            def side(name: str) -> float:
                nonlocal largest
                tab = Watched(browser)
                took = first_picture(tab, address, name)
                if name == "middle":
                    lassos.append(lasso(tab))
                largest = max(largest, tab.largest)
                mode = tab.page.locator(".map canvas").first.get_attribute("data-mode")
                assert mode == ("points" if name == "middle" else "density"), mode
                tab.context.close()
                return took

            middle, large = rounds(n_rounds, lambda: side("middle"), lambda: side("large"))
        browser.close()
    wall, cpu = (0.0, 0.0) if args.no_umap else measure_umap(n)
    finish(
        args,
        "map_page",
        {
            "first_picture_ms_50k": round(spread(middle)["median"]),
            "lasso_ms_50k": round(spread(lassos)["median"]),
            "umap_50k_s": round(wall, 1) if wall else None,
            "largest_message_mb": round(largest / 1e6, 2),
        },
        {
            "n": n,
            "n_large": n_large,
            "first_picture_ms": spread(middle),
            "lasso_ms": spread(lassos),
            "first_picture_ms_large": spread(large),
            "umap_cpu_s": round(cpu, 1),
        },
    )


if __name__ == "__main__":
    main()
