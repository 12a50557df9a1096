"""The Select page in Chromium: from a move of the ratio slider to the updated picture.

    .venv/bin/python benchmarks/select_page.py [--small] [--keep]

Pools of 50,000 and 1,281,167 images with made-up scores. A key press moves the slider by one step; the clock runs in
the page, from the key press to the frame in which the number of kept images is the new one and the bars have moved.
That includes the time Streamlit's slider waits for a further move before it sends anything.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import ROOT, benchmark_parser, finish
from PIL import Image

from semiprune_core.labeling import open_store
from semiprune_core.labeling.import_labels import take_reference
from semiprune_core.project.pool import PROBLEM_SCHEMA, SCHEMA
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.records import coreset_size
from semiprune_core.results import write_pseudo, write_scores
from semiprune_core.scores import ScoreSettings, ScoreTable

START = 0.7
MOVE = """
(wanted) => new Promise((done, fail) => {
  const bars = () => [...(document.querySelector('.js-plotly-plot')?.querySelectorAll('.bars path') ?? [])]
    .map((bar) => bar.getAttribute('d')).join();
  const kept = () => document.querySelector('[data-testid="stMetricValue"]')?.innerText.trim();
  const before = bars();
  let begun = 0;
  const look = () => {
    const now = bars();
    if (!now) window.blanks = (window.blanks ?? 0) + 1;
    if (kept() === wanted && now && now !== before) done(performance.now() - begun);
    else if (performance.now() - begun > 30000) fail(`still ${kept()}, not ${wanted}`);
    else requestAnimationFrame(look);
  };
  setTimeout(() => { if (!begun) fail('the key never came'); }, 30000);
  document.addEventListener('keydown', () => { begun = performance.now(); look(); }, { once: true, capture: true });
})
"""


def make_project(workspace: Workspace, name: str, n: int, n_classes: int) -> Project:
    """A project that stands at the Select page: pool, a few labels, pseudo-labels and scores, all made up."""
    project = workspace.create(name)
    rng = np.random.default_rng(0)
    classes = [f"class {number:04d}" for number in range(n_classes)]
    truth = rng.integers(0, n_classes, n)
    with project.draft("pool", settings={}, inputs={}) as draft:
        write_table(draft.path("table.parquet"), n, classes, truth, rng)
        empty = pa.table({column: [] for column in PROBLEM_SCHEMA.names}, schema=PROBLEM_SCHEMA)
        pq.write_table(empty, draft.path("problems.parquet"))
        picture = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (8, 8), dtype=np.uint8)).save(picture, "PNG")
        size = len(picture.getvalue())
        draft.path("thumbs.bin").write_bytes(picture.getvalue() * n)
        np.save(draft.path("thumbs.npy"), np.arange(n + 1, dtype=np.int64) * size)
        draft.facts.update(n_images=n, n_problems=0, origin="file", root=str(draft.folder), class_names=classes)
    pool = project.pool()
    store = open_store(project)
    store.drawings.draw(
        pool_hash=pool.hash, ids=pool.ids, duplicate_of=pool.duplicate_of, count=20, annotator="benchmark"
    )
    take_reference(store, pool)
    predicted = np.where(rng.random(n) < 0.1, rng.integers(0, n_classes, n), truth)
    human = rng.random(n) < 0.1
    inputs = {"pool": pool.hash, "labels": store.snapshot().hash}
    with project.draft("pseudo", settings={}, inputs=inputs, seed=0) as draft:
        write_pseudo(
            draft,
            labels=np.where(human, truth, predicted),
            predicted=predicted,
            confidence=rng.random(n),
            human_mask=human,
            held_out_mask=human & (rng.random(n) < 0.1),
            features=np.zeros((n, 2)),
            class_names=tuple(classes),
            quality=None,
            history=[],
        )
    prob = rng.beta(5, 2, n)
    columns = {
        "aum": 2 * prob - 1,
        "dual": (1 - prob) * rng.random(n) * 0.3,
        "el2n": 1 - prob,
        "entropy": rng.random(n),
        "forgetting": rng.integers(0, 9, n).astype(np.float64),
        "mean_prob": prob,
        "variability": rng.random(n) * 0.4,
    }
    settings = ScoreSettings(dual_epochs=30)
    inputs = {"pool": pool.hash, "pseudo": project.latest("pseudo").hash}
    with project.draft("scores", settings=settings.to_json(), inputs=inputs) as draft:
        write_scores(draft, pool.ids, ScoreTable(columns, settings, n))
        draft.facts.update(n_epochs=30, trajectories=[], seeds=[], stability=None)
    return project


def write_table(path: Path, n: int, classes: list[str], truth: np.ndarray, rng: np.random.Generator) -> None:
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for start in range(0, n, 20_000):
            count = min(20_000, n - start)
            hashes = rng.bytes(48 * count)
            columns = {
                "image_id": rng.integers(0, 2**64, count, dtype=np.uint64),
                "path": [f"{start + i}.png" for i in range(count)],
                "file": [None] * count,
                "width": np.full(count, 8, dtype=np.int32),
                "height": np.full(count, 8, dtype=np.int32),
                "mode": ["L"] * count,
                "format": ["PNG"] * count,
                "file_bytes": np.full(count, 100),
                "file_sha256": [hashes[48 * i : 48 * i + 32] for i in range(count)],
                "content_hash": [hashes[48 * i + 32 : 48 * i + 48] for i in range(count)],
                "label": [classes[code] for code in truth[start : start + count]],
                "split": ["pool"] * count,
                "corruption": [None] * count,
                "converted": [None] * count,
            }
            writer.write_table(pa.table(columns, schema=SCHEMA))


def serve(home: Path, port: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "SEMIPRUNE_HOME": str(home), "SEMIPRUNE_ROOTS": str(home), "SEMIPRUNE_LOGIN": "off"}
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    app = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://localhost:{port}/_stcore/health", timeout=2):
                return app
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    app.kill()
    raise RuntimeError("The app did not start.")


def moves(browser, address: str, n: int, n_moves: int) -> list[float]:
    """Milliseconds from key press to updated picture, for moves of the ratio slider to and fro."""
    tab = browser.new_page(viewport={"width": 1400, "height": 1000})
    tab.set_default_timeout(180_000)
    tab.goto(address)
    slider = tab.get_by_role("slider", name="Pruning ratio")
    slider.wait_for()
    tab.locator(".js-plotly-plot .bars path").first.wait_for(state="attached")
    slider.focus()
    times, ratio = [], START
    for number in range(n_moves + 2):
        step = 1 if number < n_moves / 2 else -1  # every ratio but those of the way back is a new one
        ratio = round(ratio + step * 0.01, 2)
        wanted = f"{coreset_size(n, ratio):,}"
        tab.evaluate(f"() => {{ window.measured = ({MOVE})({wanted!r}); }}")
        slider.press("ArrowRight" if step > 0 else "ArrowLeft")  # takes the focus back where the page has taken it
        times.append(float(tab.evaluate("() => window.measured")))
        tab.wait_for_timeout(150)
    blanks = tab.evaluate("() => window.blanks ?? 0")
    print(f"{n:,} images: {blanks} frames without a picture", flush=True)
    tab.close()
    return times[2:]  # the first two warm up


def main() -> None:
    from playwright.sync_api import sync_playwright

    args = benchmark_parser(__doc__, small="5,000 and 20,000 images, few moves").parse_args()
    sizes = {"50k": (5_000 if args.small else 50_000, 10), "1281k": (20_000 if args.small else 1_281_167, 1000)}
    n_moves = 6 if args.small else 24
    path = os.environ.get("SEMIPRUNE_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        home = Path(folder) / "home"
        workspace = Workspace.open(home)
        for name, (n, n_classes) in sizes.items():
            make_project(workspace, f"n{name}", n, n_classes)
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
        probe.close()
        app = serve(home, port)
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
                measured = {
                    name: moves(browser, f"http://localhost:{port}/select?project=n{name}", n, n_moves)
                    for name, (n, _) in sizes.items()
                }
                browser.close()
        finally:
            app.kill()
            app.wait()
    keys = {
        "p50_ms_50k": round(float(np.percentile(measured["50k"], 50)), 1),
        "p95_ms_50k": round(float(np.percentile(measured["50k"], 95)), 1),
        "p50_ms_1281k": round(float(np.percentile(measured["1281k"], 50)), 1),
    }
    details = {
        name: {"n_images": sizes[name][0], "ms": [round(ms, 1) for ms in values]} for name, values in measured.items()
    }
    finish(args, "select_page", keys, details)


if __name__ == "__main__":
    main()
