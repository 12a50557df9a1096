"""How often "Pseudo-label error, estimated" holds the truth, and how wide it is, beside the estimate shown before it.

    .venv/bin/python benchmarks/coreset_error.py [--small] [--keep] [--draws D] [--pools P,P]

Labels are held out at random again and again: on the finished demo's own scores and pseudo-labels, whose reference
labels say where the model is wrong, and on made-up pools with other errors (``error_coverage.made_up_pool``). The prior
of the model was chosen on such pools with a tenth of the draws; "apart" is a stress test and not counted in the keys.

The last line has the worst and the mean coverage of the counted cells, and the mean widths.
"""

from __future__ import annotations

import io
import itertools
import os
import time
import zipfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pyarrow.parquet as pq
from common import ROOT, benchmark_parser, finish

from semiprune_core.coresets.error_coverage import Coverage, KnownPool, made_up_pool, simulate_error
from semiprune_core.learning.threads import one_thread
from semiprune_core.records import Evidence

METHODS = ("random", "semi_aum_cutoff", "semi_dual_beta")
RATIOS = (0.5, 0.6, 0.7, 0.8, 0.9)
LABELS = (60, 150, 600)
STRESS = "apart"


def demo_pool() -> KnownPool:
    """The finished demo's arrays, from the bundled archive."""
    with zipfile.ZipFile(ROOT / "assets/demo_project.zip") as packed:
        read = {
            name: np.load(io.BytesIO(packed.read(f"artifacts/pseudo-0001/{name}.npy")), allow_pickle=False)
            for name in ("labels", "predicted", "confidence", "human_mask")
        }
        table = pq.read_table(io.BytesIO(packed.read("artifacts/scores-0001/scores.parquet")))
    reference = np.load(ROOT / "assets/demo_pool.npz", allow_pickle=False)["labels"][: len(read["labels"])]
    scores = {name: table[name].to_numpy() for name in ("aum", "dual")}
    evidence = Evidence(
        len(reference),
        scores,
        table["mean_prob"].to_numpy(),
        labels=read["labels"].astype(np.int64),
        human_mask=read["human_mask"],
    )
    return KnownPool("demo", evidence, read["confidence"], read["predicted"] != reference)


@one_thread()
def simulate(name: str, *, draws: int, ratios: Sequence[float]) -> list[Coverage]:
    """Every cell of one pool."""
    pool = demo_pool() if name == "demo" else made_up_pool(name)
    cells = []
    for method, ratio, n_labels in itertools.product(METHODS, ratios, LABELS):
        cells.append(cell := simulate_error(pool, method, ratio, n_labels, draws))
        print(
            f"{name:9} {method:15} {ratio} n={n_labels:3}: error {cell.error:.1%} (pool {cell.pool_error:.1%}), "
            f"estimate {cell.estimate:.1%}, covered {cell.covered:.1%}, width {cell.width:.1%}; "
            f"before: {cell.earlier_covered:.1%}, {cell.earlier_width:.1%}",
            flush=True,
        )
    return cells


def main() -> None:
    parser = benchmark_parser(__doc__, small="40 draws, two ratios")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--pools", default="demo,confident")
    args = parser.parse_args()
    draws, ratios = (40, (0.5, 0.9)) if args.small else (args.draws, RATIOS)
    began = time.perf_counter()
    pools = args.pools.split(",")
    with ProcessPoolExecutor(min(len(pools), os.cpu_count() or 1)) as workers:
        cells = [cell for part in workers.map(partial(simulate, draws=draws, ratios=ratios), pools) for cell in part]
    counted = [cell for cell in cells if cell.pool != STRESS] or cells
    keys = {
        "n_draws": draws,
        "n_cells": len(counted),
        "covered_min": round(min(cell.covered for cell in counted), 4),
        "covered_mean": round(float(np.mean([cell.covered for cell in counted])), 4),
        "width_mean": round(float(np.mean([cell.width for cell in counted])), 4),
        "earlier_width_mean": round(float(np.mean([cell.earlier_width for cell in counted])), 4),
    }
    details = {"seconds": round(time.perf_counter() - began, 1), "cells": [cell.to_json() for cell in cells]}
    finish(args, "coreset_error", keys, details)


if __name__ == "__main__":
    main()
