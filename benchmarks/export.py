"""Exports of large pools: CSV and Parquet of 1,281,167 rows, every format that copies no images at 50,000 rows.

    .venv/bin/python benchmarks/export.py [--small] [--keep]

The synthetic projects have the real tables (pool, pseudo-labels, scores, a coreset at ratio 0.5) and no pictures. Each
measure runs in a fresh process, opening the project included; the other way, for the CSV, is pandas' ``to_csv``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import ROOT, benchmark_parser, finish, rounds, spread

from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.exporting import FORMATS, export_coreset, open_content
from semiprune_core.exporting.content import FIRST_SCORES
from semiprune_core.project.artifacts import open_artifact
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.results import open_coreset, write_pseudo, write_scores
from semiprune_core.scores import ScoreSettings, ScoreTable

N_CLASSES = 1000


def make_project(home: Path, n: int) -> Project:
    """A project at the step Export with ``n`` images, without pictures."""
    project = Workspace.open(home).create("Large")
    rng = np.random.default_rng(0)
    add_pool(project, n, rng)
    project = project.workspace.project(project.name)
    pool = project.pool()
    predicted = rng.integers(0, N_CLASSES, n)
    human = np.zeros(n, dtype=bool)
    human[rng.permutation(n)[: n // 10]] = True
    with project.draft("pseudo", settings={}, inputs={"pool": pool.hash, "labels": "0" * 64}, seed=0) as draft:
        write_pseudo(
            draft,
            labels=predicted,
            predicted=predicted,
            confidence=rng.random(n),
            human_mask=human,
            held_out_mask=np.zeros(n, dtype=bool),
            features=np.zeros((n, 1)),
            class_names=tuple(f"n{number:08d}" for number in range(N_CLASSES)),
            quality=None,
            history=[],
        )
    inputs = {"pool": pool.hash, "pseudo": open_artifact(draft.folder).hash}
    settings = ScoreSettings()
    table = ScoreTable({name: rng.random(n) for name in FIRST_SCORES}, settings, n)
    with project.draft("scores", settings=settings.to_json(), inputs=inputs) as draft:
        write_scores(draft, pool.ids, table)
        draft.facts.update(n_epochs=90, trajectories=[], seeds=[0], stability=None)
    build_coreset(project, CoresetRequest(pruning_ratio=0.5))
    return project


def add_pool(project: Project, n: int, rng: np.random.Generator) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from semiprune_core.project.pool import PROBLEM_SCHEMA, SCHEMA

    root = project.workspace.root / "pictures"
    with project.draft("pool", settings={}, inputs={}) as draft:
        with pq.ParquetWriter(draft.path("table.parquet"), SCHEMA, compression="zstd") as writer:
            for start in range(0, n, 20_000):
                count = min(20_000, n - start)
                hashes = rng.bytes(48 * count)
                constant = {"file": None, "mode": "RGB", "format": "JPEG", "label": None, "split": "pool"}
                columns = {
                    "image_id": rng.integers(0, 2**64, count, dtype=np.uint64),
                    "path": [f"n{row % N_CLASSES:08d}/{row}.JPEG" for row in range(start, start + count)],
                    "width": np.full(count, 500, np.int32),
                    "height": np.full(count, 375, np.int32),
                    "file_bytes": rng.integers(20_000, 200_000, count),
                    "file_sha256": [hashes[row * 48 : row * 48 + 32] for row in range(count)],
                    "content_hash": [hashes[row * 48 + 32 : row * 48 + 48] for row in range(count)],
                    "corruption": [None] * count,
                    "converted": [None] * count,
                    **{name: [value] * count for name, value in constant.items()},
                }
                writer.write_table(pa.table({name: columns[name] for name in SCHEMA.names}, schema=SCHEMA))
        pq.write_table(PROBLEM_SCHEMA.empty_table(), draft.path("problems.parquet"))
        draft.facts.update(
            n_images=n, n_problems=0, origin="files", root=str(root), class_names=[], labels={}, splits={"pool": n}
        )


def measure(home: str, name: str) -> None:
    """One export, in this process: seconds."""
    begun = time.perf_counter()
    project = Workspace.open(home).project("large")
    export_coreset(project, open_coreset(project), name)
    print(time.perf_counter() - begun)


def by_pandas(home: str, _: str) -> None:
    """The same two tables by pandas."""
    begun = time.perf_counter()
    project = Workspace.open(home).project("large")
    content = open_content(project, open_coreset(project))
    frame = content.rows(content.all_idx, exact=False).to_pandas()
    with tempfile.TemporaryDirectory() as folder:
        frame[frame["kept"] == 1].to_csv(Path(folder) / "kept.csv", index=False)
        frame.to_csv(Path(folder) / "all.csv", index=False)
    print(time.perf_counter() - begun)


def run(home: Path, what: str, name: str) -> tuple[float, float]:
    """(seconds, peak MB) of one measure in a fresh process."""
    code = f"import sys; sys.path.insert(0, 'benchmarks'); import export; export.{what}({str(home)!r}, {name!r})"
    code += "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    seconds, peak = done.stdout.split()
    return float(seconds), float(peak)


def main() -> None:
    args = benchmark_parser(__doc__, small="5,000 and 50,000 rows, one round").parse_args()
    n_small, n_large, n_rounds = (5_000, 50_000, 1) if args.small else (50_000, 1_281_167, 3)
    details: dict[str, object] = {"n_small": n_small, "n_large": n_large}
    with tempfile.TemporaryDirectory() as folder:
        little, large = Path(folder) / "little", Path(folder) / "large"
        make_project(little, n_small)
        pictures = little / "pictures"
        for number in range(N_CLASSES):
            (pictures / f"n{number:08d}").mkdir(parents=True)
        for row in range(n_small):  # formats with absolute paths look whether the originals are there
            (pictures / f"n{row % N_CLASSES:08d}" / f"{row}.JPEG").touch()
        # images are not measured here, and this project's model gave one answer, no probabilities
        formats = [name for name in FORMATS if not FORMATS.facts(name).get("ways") and name != "probabilities"]
        tries = {name: [run(little, "measure", name) for _ in range(n_rounds)] for name in formats}
        every = {name: (spread([s for s, _ in found]), max(mb for _, mb in found)) for name, found in tries.items()}
        details["every_format_small"] = {name: {"s": s, "peak_mb": mb} for name, (s, mb) in every.items()}
        make_project(large, n_large)
        peaks: list[float] = []

        def side(home: Path, what: str, name: str) -> float:
            seconds, peak = run(home, what, name)
            if home == large and what == "measure":
                peaks.append(peak)
            return seconds

        measured = rounds(
            n_rounds,
            lambda: side(little, "measure", "csv"),
            lambda: side(large, "measure", "csv"),
            lambda: side(large, "measure", "parquet"),
            lambda: side(large, "by_pandas", ""),
        )
    names = ("csv_50k", "csv_1281k", "parquet_1281k", "pandas_csv_1281k")
    details |= {name: spread(values) for name, values in zip(names, measured, strict=True)}
    medians = [spread(values)["median"] for values in measured]
    keys = {
        "csv_50k_s": round(medians[0], 3),
        "csv_1281k_s": round(medians[1], 3),
        "parquet_1281k_s": round(medians[2], 3),
        "peak_mb_1281k": round(max(peaks)),
        "pandas_csv_1281k_s": round(medians[3], 3),
        "slowest_50k_s": round(max(seconds["median"] for seconds, _ in every.values()), 3),
        "peak_mb_50k": round(max(peak for _, peak in every.values())),
    }
    finish(args, "export", keys, json.loads(json.dumps(details)))


if __name__ == "__main__":
    main()
