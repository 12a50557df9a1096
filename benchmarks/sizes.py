"""Does a larger pool help? The gain over Random with starting values, on pools of growing size of one data set.

    .venv/bin/python benchmarks/sizes.py [--dataset fashion|FILE.npz] [--sizes 3000,12000,24000,60000] [--seeds 3]
        [--ratios 0.7,0.8,0.9] [--views 300000] [--work DIR] [--small] [--keep]

Each pool holds the smaller ones. A random tenth of it is labeled, FixMatch (``quick``) gives pseudo-labels, a run of 30
epochs the scores; then a net is trained from scratch with true labels (``brief``) on the coresets of Random, Semi-AUM
and Semi-DUAL, each with what a project starts with, and tested. ``--views`` bounds how many images a training sees, all
epochs together. Each row is written as soon as it is there, to ``sizes_<dataset>.csv`` in ``--work``, with ``--keep``
in ``results/``, so several runs with other sizes or seeds can share the work; ``results/sizes_<dataset>.json`` then
holds machine and versions. The last line is JSON: the gain in points by size, method and ratio.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import time
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from common import benchmark_parser, finish, output_folder
from image_data import open_data
from scored_pools import WORK, ScoredPool, coreset_training, scored, starting, tested

from semiprune_core.evaluation import COLUMNS
from semiprune_core.evaluation.view import view_of
from semiprune_core.learning.presets import ssl_preset, supervised_preset
from semiprune_core.methods import select_coreset

PRESET = "brief"
FIELDS = ("dataset", "n", "n_labeled", "wrong", "views", "epochs", *COLUMNS)
"""``wrong``: the share of wrong labels behind the scores; ``views``: the most images that a training may see;
``epochs``: of this training; then as in every evaluation."""


def read(path: Path) -> pd.DataFrame:
    """The trials so far."""
    return pd.read_csv(path, keep_default_na=False) if path.exists() else pd.DataFrame(columns=list(FIELDS))


def append(path: Path, row: dict[str, Any]) -> None:
    """Add a trial; two processes can add to one file."""
    with contextlib.suppress(FileExistsError), path.open("x", newline="") as file:
        csv.DictWriter(file, FIELDS).writeheader()
    with path.open("a", newline="") as file:
        csv.DictWriter(file, FIELDS).writerow(row)


def trials(pool: ScoredPool, ratios: list[float], seed: int, *, views: int, out: Path, short: bool) -> None:
    """Train what is missing of one seed: Random, Semi-AUM and Semi-DUAL at every ratio."""
    data, n = pool.data, len(pool.pseudo)
    rows = read(out)
    there = rows[(rows["n"] == n) & (rows["seed"] == seed) & (rows["views"] == views)]
    done = set(zip(there["method"], there["pruning_ratio"].astype(float), strict=True))
    for ratio in ratios:
        for method, _, knobs in starting(pool, ratio):
            if (method, ratio) in done:
                continue
            started = time.perf_counter()
            kept = select_coreset(pool.evidence(), method, pruning_ratio=ratio, seed=seed, **knobs).indices
            training = coreset_training(PRESET, ratio, len(kept), views=views, epochs=2 if short else None)
            accuracy = tested(data, kept, data.labels, training, seed)
            facts = (data.name, n, int(pool.human_mask.sum()), round(float(pool.wrong_mask.mean()), 4))
            outcome = (method, ratio, seed, len(kept), len(data.test_labels), round(accuracy * len(data.test_labels)))
            minutes = round((time.perf_counter() - started) / 60, 2)
            row = (*facts, views, training.epochs, *outcome, round(accuracy, 4), minutes, json.dumps(knobs), "")
            append(out, dict(zip(FIELDS, row, strict=True)))
            print(*row, f"load {os.getloadavg()[0]:.1f}", flush=True)


def gains(rows: pd.DataFrame) -> dict[str, Any]:
    """By size, method and ratio: the paired gain over Random in points, half its interval, and the seeds."""
    by_size: dict[str, Any] = {}
    for n, some in rows.groupby("n"):
        view = view_of(some)
        by_size[str(n)] = {
            method: {
                f"{cell.pruning_ratio:g}": [
                    round(100 * cell.difference.mean, 2),
                    None if cell.difference.half is None else round(100 * cell.difference.half, 2),
                    cell.difference.n,
                ]
                for cell in view.row(method)
                if cell.difference is not None
            }
            for method in view.methods
            if method != "random"
        }
    return by_size


def main() -> None:
    parser = benchmark_parser(__doc__, small="300 and 600 images, 2 epochs")
    parser.add_argument("--dataset", default="fashion")
    parser.add_argument("--sizes", default="3000,12000,24000,60000")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ratios", default="0.7,0.8,0.9")
    parser.add_argument("--views", type=int, default=300_000, help="a training sees at most so many images")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=WORK)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    sizes = [300, 600] if args.small else list(map(int, args.sizes.split(",")))
    short = {"epochs": 2} if args.small else {}
    name = f"sizes_{Path(args.dataset).stem}"
    out = output_folder(args, args.work) / f"{name}.csv"
    if args.small:
        out.unlink(missing_ok=True)
    settings, ssl = supervised_preset("quick", **({"epochs": 30} | short)), ssl_preset("quick", **short)
    for n in sizes:
        data = open_data(args.dataset, n, n_test=200 if args.small else None)
        pool = scored(data, settings, ssl, args.work)
        print(f"{n:,} images, {pool.wrong_mask.mean():.1%} of the labels are wrong", flush=True)
        for seed in range(1 if args.small else args.seeds):
            ratios = list(map(float, args.ratios.split(",")))
            trials(pool, ratios, seed, views=args.views, out=out, short=args.small)
    rows = read(out)
    keys = {"views": args.views, "gain_over_random_points": gains(rows[rows["views"] == args.views])}
    finish(args, name, keys, {"ssl": ssl.to_json(), "preset": PRESET})


if __name__ == "__main__":
    main()
