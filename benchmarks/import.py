"""Import against a bare loop: 20,000 generated JPEGs of 256 x 256; and a pool table of 1,300,000 rows.

    .venv/bin/python benchmarks/import.py [--small] [--keep]

The bare loop decodes with Pillow, resizes to 32 and to a thumbnail, in as many processes as the import uses. The import
also hashes, encodes the thumbnails, writes cache, table and thumbnails, and checks the result into an artifact.
Memory is the peak resident size of the importing process itself (its decoders are separate), at two counts.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import ROOT, benchmark_parser, finish, rounds, spread
from PIL import Image

from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.importing.workers import THUMBNAIL_SIDE
from semiprune_core.progress import Collected
from semiprune_core.project.pool import PoolSettings
from semiprune_core.project.workspace import Workspace

PROCESSES = os.cpu_count() or 1
SIDE = 256


def generate(folder: Path, n: int) -> None:
    """JPEGs with structure, about as large as photographs of this size: smooth noise at three scales."""
    rng = np.random.default_rng(0)
    for start in range(0, n, 1000):
        part = folder / f"{start // 1000:03d}"
        part.mkdir(parents=True)
        for number in range(start, min(n, start + 1000)):
            picture = Image.new("RGB", (SIDE, SIDE))
            for side, share in ((4, 1.0), (24, 0.5), (96, 0.25)):
                noise = Image.fromarray(rng.integers(0, 256, (side, side, 3), dtype=np.uint8))
                picture = Image.blend(picture, noise.resize((SIDE, SIDE), Image.Resampling.BICUBIC), share)
            picture.save(part / f"{number:06d}.jpg", quality=85)


def bare(path: str) -> int:
    with Image.open(path) as opened:
        picture = opened.convert("RGB")
    small = np.asarray(picture.resize((32, 32)))
    thumb = np.asarray(picture.resize((THUMBNAIL_SIDE, THUMBNAIL_SIDE)))
    return int(small[0, 0, 0]) + int(thumb[0, 0, 0])


def bare_loop(paths: list[str]) -> float:
    begun = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        for _ in pool.imap(bare, paths, chunksize=64):
            pass
    return len(paths) / (time.perf_counter() - begun)


def our_import(folder: Path) -> float:
    with tempfile.TemporaryDirectory() as home:
        os.environ["SEMIPRUNE_ROOTS"] = str(folder)
        project = Workspace.open(home).create("Bench")
        settings = ImportSettings(
            source=SourceSpec("folder", str(folder)).to_json(),
            pool=PoolSettings(size=32, channels=3).to_json(),
            n_workers=PROCESSES,
        )
        begun = time.perf_counter()
        artifact = import_source(project, settings, Collected())
        return artifact.facts["n_images"] / (time.perf_counter() - begun)


def peak_mb(*words: str) -> tuple[float, str]:
    """Run this file in a fresh process and return its peak memory and what it printed."""
    code = f"import sys; sys.path.insert(0, 'benchmarks'); sys.argv = ['x']; m = __import__('import'); m.{words[0]}"
    code += "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    *said, peak = done.stdout.split()
    return float(peak), " ".join(said)


def make_table(home: Path, n: int) -> None:
    """A pool artifact with ``n`` rows and the real writer's table; its pictures are empty."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from semiprune_core.project.pool import PROBLEM_SCHEMA, SCHEMA

    project = Workspace.open(home).create("Large")
    rng = np.random.default_rng(0)
    with project.draft("pool", settings={}, inputs={}) as draft:
        with pq.ParquetWriter(draft.path("table.parquet"), SCHEMA, compression="zstd") as writer:
            for start in range(0, n, 20_000):
                count = min(20_000, n - start)
                labels = [f"n{c:08d}" for c in rng.integers(0, 1000, count)]
                hashes = rng.bytes(48 * count)
                writer.write_table(
                    pa.table(
                        {
                            "image_id": rng.integers(0, 2**64, count, dtype=np.uint64),
                            "path": [f"{c}/{c}_{start + i}.JPEG" for i, c in enumerate(labels)],
                            "file": [None] * count,
                            "width": rng.integers(200, 600, count, dtype=np.int32),
                            "height": rng.integers(200, 600, count, dtype=np.int32),
                            "mode": ["RGB"] * count,
                            "format": ["JPEG"] * count,
                            "file_bytes": rng.integers(10_000, 200_000, count),
                            "file_sha256": [hashes[48 * i : 48 * i + 32] for i in range(count)],
                            "content_hash": [hashes[48 * i + 32 : 48 * i + 48] for i in range(count)],
                            "label": labels,
                            "split": ["pool" if i % 20 else "test" for i in range(count)],
                            "corruption": [None] * count,
                            "converted": [None] * count,
                        },
                        schema=SCHEMA,
                    )
                )
        pq.write_table(
            pa.table({name: [] for name in PROBLEM_SCHEMA.names}, schema=PROBLEM_SCHEMA), draft.path("problems.parquet")
        )
        draft.facts.update(
            n_images=n, n_problems=0, origin="file", root=str(home), class_names=[f"n{c:08d}" for c in range(1000)]
        )


def open_table(home: str) -> None:
    """What the app does on opening the project: the pool, its ids, labels, splits, one page of rows."""
    begun = time.perf_counter()
    pool = Workspace.open(home).project("large").pool()
    pool.positions(pool.ids[:60])
    assert pool.reference_labels.max() == 999
    pool.facts(range(60))
    print(time.perf_counter() - begun)


def main() -> None:
    args = benchmark_parser(__doc__, small="2,000 images, 100,000 rows, one round").parse_args()
    n, n_rows, n_rounds = (2000, 100_000, 1) if args.small else (20_000, 1_300_000, 3)
    with tempfile.TemporaryDirectory() as folder_name, tempfile.TemporaryDirectory() as home:
        folder = Path(folder_name)
        generate(folder, n)
        paths = sorted(str(path) for path in folder.rglob("*.jpg"))
        for path in paths:
            Path(path).read_bytes()  # warm the page cache for both sides
        ours, base = rounds(n_rounds, lambda: our_import(folder), lambda: bare_loop(paths))
        peak, _ = peak_mb(f"our_import(m.Path({folder_name!r}))")
        part, _ = peak_mb(f"our_import(m.Path({str(folder / '000')!r}))")
        make_table(Path(home), n_rows)
        opened = [peak_mb(f"open_table({home!r})") for _ in range(n_rounds)]
    seconds = [float(said) for _, said in opened]
    ratios = [a / b for a, b in zip(ours, base, strict=True)]
    finish(
        args,
        "import",
        {
            "images_per_s": round(spread(ours)["median"], 1),
            "baseline_images_per_s": round(spread(base)["median"], 1),
            "ratio": round(spread(ratios)["median"], 3),
            "peak_mb": round(peak, 1),
            "table_1300k_open_s": round(spread(seconds)["median"], 3),
            "table_1300k_mb": round(max(mb for mb, _ in opened), 1),
        },
        {
            "n_images": n,
            "n_rows": n_rows,
            "processes": PROCESSES,
            "ours": spread(ours),
            "baseline": spread(base),
            "ratios": spread(ratios),
            "peak_mb_at_1000_images": round(part, 1),
            "table_open_s": spread(seconds),
        },
    )


if __name__ == "__main__":
    main()
