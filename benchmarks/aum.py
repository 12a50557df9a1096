"""Does AUM find wrong pseudo-labels? The demo pool with ``quick`` settings, several seeds.

    .venv/bin/python benchmarks/aum.py [--seeds 3] [--first-seed 20] [--threads 1] [--small] [--keep]

For each seed: a random tenth labeled, FixMatch, a dynamics run on its pseudo-labels, AUM of every image. Said are the
mean AUM of rightly and of wrongly labeled images, and for the Semi-AUM coreset at r = 0.7 the share of wrong labels as
a part of their share in the pool: with the starting values for such a pool, for accuracy and for clean labels, and with
other cutoffs.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import torch
from common import benchmark_parser, finish, spread
from ssl_quality import open_pool

from semiprune_core.learning.presets import ssl_preset, supervised_preset
from semiprune_core.learning.ssl_run import train_ssl
from semiprune_core.learning.supervised_run import MemoryRecorder, train_supervised
from semiprune_core.methods import select_coreset
from semiprune_core.progress import Collected
from semiprune_core.records import Evidence
from semiprune_core.scores import ScoreSettings, compute_scores
from semiprune_core.selection import AIMS, Basis, default_knobs

RATIO = 0.7
CUTOFFS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


def one_seed(seed: int, n_images: int | None, short: dict[str, Any]) -> dict[str, Any]:
    images, truth, names = open_pool("demo")
    images, truth = images[:n_images], truth[:n_images]
    labeled = np.random.default_rng(100 + seed).permutation(len(truth))[: len(truth) // 10]
    given = np.full(len(truth), -1)
    given[labeled] = truth[labeled]
    started = time.perf_counter()
    result = train_ssl(
        images, given, class_names=names, settings=ssl_preset("quick", **short), seed=seed, progress=Collected()
    )
    pseudo = np.where(given >= 0, given, result.predicted)
    recorder, training = MemoryRecorder(), supervised_preset("quick", **short)
    train_supervised(
        images, pseudo, n_classes=len(names), settings=training, seed=seed, progress=Collected(), record=recorder
    )
    settings = ScoreSettings(window=min(10, training.epochs), dual_epochs=training.epochs)
    aum = compute_scores(recorder.trajectory(), settings=settings)["aum"]
    wrong = pseudo != truth
    basis = Basis.learned(aum, training.epochs)
    defaults = {
        aim: default_knobs("semi_aum_cutoff", RATIO, dataclasses.replace(basis, aim=aim)).selector["cutoff"]
        for aim in AIMS
    }
    evidence = Evidence(len(truth), {"aum": aum}, labels=pseudo, human_mask=given >= 0)
    part = {}
    for cutoff in sorted({*CUTOFFS, *defaults.values()}):
        kept = select_coreset(evidence, "semi_aum_cutoff", pruning_ratio=RATIO, seed=seed, cutoff=cutoff).indices
        part[f"{cutoff:g}"] = round(float(wrong[kept].mean() / wrong.mean()), 3)
    return {
        "seed": seed,
        "wrong": round(float(wrong.mean()), 4),
        "aum_right": round(float(aum[~wrong].mean()), 4),
        "aum_wrong": round(float(aum[wrong].mean()), 4),
        "default_cutoffs": defaults,
        "wrong_in_coreset_to_pool": part,
        "minutes": round((time.perf_counter() - started) / 60, 2),
    }


def main() -> None:
    parser = benchmark_parser(__doc__, small="600 images, 2 epochs, 1 seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    n, short, seeds = (600, {"epochs": 2}, 1) if args.small else (None, {}, args.seeds)
    runs = []
    for seed in range(args.first_seed, args.first_seed + seeds):
        runs.append(one_seed(seed, n, short))
        print(runs[-1], flush=True)
    gaps = [run["aum_right"] - run["aum_wrong"] for run in runs]
    parts = {
        cutoff: round(float(np.mean([run["wrong_in_coreset_to_pool"][cutoff] for run in runs])), 3)
        for cutoff in map("{:g}".format, CUTOFFS)
    }
    keys = {"aum_gap": round(float(np.mean(gaps)), 3), "ratio": RATIO, "wrong_in_coreset_to_pool": parts}
    finish(args, "aum", keys, {"aum_gap": spread(gaps), "runs": runs})


if __name__ == "__main__":
    main()
