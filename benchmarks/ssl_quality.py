"""Pseudo-label accuracy on the unlabeled images: the registry's algorithms with the ``quick`` preset, several seeds.

    .venv/bin/python benchmarks/ssl_quality.py --dataset demo|FILE.npz --seeds 3 [--first-seed S] [--algorithms A,B]
        [--workers W] [--threads T] [--small] [--keep]

A file holds images, labels, class_names and split; a tenth of its pool is labeled at random. The last line is JSON:
for each algorithm mean and standard deviation of the accuracy, the accuracies and the minutes; and the gain of each one
over supervised-only on the same labels, in points. With several workers so many runs go on at once, each with its own
threads; how long a run takes by itself is only seen with one worker on a quiet machine.
"""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import benchmark_parser, results_folder, write_result

from semiprune_core.learning.presets import ssl_preset
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.learning.ssl_run import train_ssl
from semiprune_core.progress import Collected

DEMO = Path(__file__).parents[1] / "assets" / "demo_pool.npz"


def open_pool(dataset: str) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    with np.load(DEMO if dataset == "demo" else dataset) as file:
        pool = file["split"] != "test"
        return file["images"][pool], file["labels"][pool].astype(np.int64), tuple(map(str, file["class_names"]))


def one_run(dataset: str, algorithm: str, seed: int, changes: dict[str, Any], threads: int) -> dict[str, float]:
    torch.set_num_threads(threads)
    images, truth, names = open_pool(dataset)
    labeled = np.random.default_rng(100 + seed).permutation(len(truth))[: len(truth) // 10]
    labels = np.full(len(truth), -1)
    labels[labeled] = truth[labeled]
    settings = ssl_preset("quick", algorithm, **changes)
    wall, cpu = time.perf_counter(), time.process_time()
    result = train_ssl(images, labels, class_names=names, settings=settings, seed=seed, progress=Collected())
    rest = labels < 0
    accuracy = float((result.predicted[rest] == truth[rest]).mean())
    assert result.quality is not None
    held = result.quality.accuracy
    return {
        "seed": seed,
        "accuracy": round(accuracy, 4),
        "held_out": round(held.value, 4),
        "held_out_low": round(held.low, 4),
        "held_out_high": round(held.high, 4),
        "ece": round(result.quality.ece, 4),
        "minutes": round((time.perf_counter() - wall) / 60, 2),
        "cpu_minutes": round((time.process_time() - cpu) / 60, 2),
        "load": round(os.getloadavg()[0], 1),
    }


def summarise(result: dict[str, Any]) -> None:
    """Mean, deviation, minutes and gain of every algorithm that has runs."""
    for algorithm, runs in result["runs"].items():
        runs.sort(key=lambda run: run["seed"])
        accuracies = [run["accuracy"] for run in runs]
        result[algorithm] = {
            "mean": round(float(np.mean(accuracies)), 4),
            "std": round(float(np.std(accuracies, ddof=1)), 4) if len(runs) > 1 else None,
            "minutes": round(float(np.mean([run["minutes"] for run in runs])), 2),
        }
        if "supervised" in result["runs"]:
            base = {run["seed"]: run["accuracy"] for run in result["runs"]["supervised"]}
            gains = [100 * (run["accuracy"] - base[run["seed"]]) for run in runs if run["seed"] in base]
            if gains:
                result[algorithm]["gain_points"] = round(float(np.mean(gains)), 2)


def main() -> None:
    parser = benchmark_parser(__doc__, small="one seed and a tenth of the steps")
    parser.add_argument("--dataset", default="demo")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="the settings were tuned on draws 0 to 2, 10 and 11")
    parser.add_argument("--algorithms", default=",".join(ALGORITHMS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2, help="of each worker")
    parser.add_argument("--settings", default="{}", help="changes to the preset, as JSON")
    args = parser.parse_args()
    changes = json.loads(args.settings)
    seeds = 1 if args.small else args.seeds
    if args.small:
        changes = {**changes, "epochs": 1}
    name, folder = "ssl_quality_" + Path(args.dataset).stem, results_folder(args)
    result: dict[str, Any] = {"dataset": Path(args.dataset).stem, "preset": "quick", "settings": changes}
    result |= {"workers": args.workers, "threads": args.threads, "runs": {}}
    wanted = sorted(args.algorithms.split(","), key=lambda algorithm: algorithm != "supervised")
    with ProcessPoolExecutor(args.workers, mp_context=get_context("spawn")) as pool:
        asked = {
            pool.submit(one_run, args.dataset, algorithm, seed, changes, args.threads): algorithm
            for algorithm in wanted
            for seed in range(args.first_seed, args.first_seed + seeds)
        }
        for future in as_completed(asked):
            algorithm, run = asked[future], future.result()
            print(algorithm, run, flush=True)
            result["runs"].setdefault(algorithm, []).append(run)
            summarise(result)
            if folder:
                write_result(folder, name, result, {})
    print(json.dumps(result))


if __name__ == "__main__":
    main()
