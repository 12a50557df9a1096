"""All scores from the stored trajectory, against the usual way from stored logits.

    .venv/bin/python benchmarks/scores.py [--small] [--keep]

Three measurements, each in a process of its own so that the peak memory is that of the work alone:

1. N = 50,000, T = 200: all seven scores from a trajectory on disk; seconds and peak memory.
2. The same pool with C = 100 classes, both ways by turns in one process: ours (all seven scores, from 13 bytes per
   image and epoch) and the usual way (AUM, DUAL, EL2N and forgetting, from float32 logits (T, N, C), epoch by epoch and
   window by window, whole arrays at a time). Both must give the same scores. Ratios of time and of bytes on disk.
3. N = 1,281,167, T = 90 (ImageNet): seconds and peak memory in one pass, nothing loaded whole.

Files were written just before, so all of them are read from the page cache where it holds them: this favours the usual
way, which reads 31 times as much. ``--small`` runs the same in seconds on small pools; its numbers mean nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import benchmark_parser, finish, spread

from semiprune_core import files
from semiprune_core.results.trajectory_store import TrajectoryWriter, open_trajectory
from semiprune_core.scores import SCORES, compute_scores

WINDOW, EARLY = 10, 10
SIZES = {
    False: {"pool": (50_000, 200), "imagenet": (1_281_167, 90), "classes": 100, "rounds": 5, "slow_rounds": 3},
    True: {"pool": (2_000, 40), "imagenet": (20_000, 20), "classes": 100, "rounds": 3, "slow_rounds": 2},
}


def softmax(logits: np.ndarray) -> np.ndarray:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def facts_of(probs: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Target probability, margin, correctness and EL2N of one epoch, from (N, C) probabilities."""
    rows = np.arange(len(labels))
    target = probs[rows, labels]
    others = probs.copy()
    others[rows, labels] = -1
    error = probs.copy()
    error[rows, labels] -= 1
    return {
        "target_prob": target,
        "margin": target - others.max(axis=1),
        "correct": probs.argmax(axis=1) == labels,
        "el2n": np.linalg.norm(error, axis=1),
    }


def usual_scores(folder: Path) -> dict[str, np.ndarray]:
    """The four scores from stored logits, with a loop over epochs and a loop over windows."""
    logits = np.load(folder / "logits.npy", mmap_mode="r")
    labels = np.load(folder / "labels.npy")
    n_epochs, n_images, _ = logits.shape
    margin, error = np.zeros(n_images), np.zeros(n_images)
    forgotten, learned, before = np.zeros(n_images), np.zeros(n_images, dtype=bool), np.zeros(n_images, dtype=bool)
    targets = []
    for epoch in range(n_epochs):
        row = facts_of(softmax(logits[epoch]), labels)
        margin += row["margin"]
        if epoch < EARLY:
            error += row["el2n"]
        forgotten += before & ~row["correct"]
        learned |= row["correct"]
        before = row["correct"]
        targets.append(row["target_prob"])
    dual = np.zeros(n_images)
    for start in range(n_epochs - WINDOW + 1):
        window = np.stack(targets[start : start + WINDOW]).astype(np.float64)
        dual += (1 - window.mean(axis=0)) * window.std(axis=0, ddof=1)
    return {
        "aum": margin / n_epochs,
        "dual": dual / (n_epochs - WINDOW + 1),
        "el2n": error / min(EARLY, n_epochs),
        "forgetting": np.where(learned, forgotten, n_epochs),
    }


def write_columns(folder: Path, n_images: int, n_epochs: int) -> None:
    """A trajectory of plausible shape without logits behind it: rising, noisy, image by image."""
    rng = np.random.default_rng(0)
    pace = rng.random(n_images, dtype=np.float32)
    writer = TrajectoryWriter(folder, n_epochs, n_images)
    for epoch in range(1, n_epochs + 1):
        prob = pace ** np.float32(3 / epoch) * (1 - 0.3 * rng.random(n_images, dtype=np.float32))
        writer.append(
            target_prob=prob, margin=2 * prob - 1, correct=prob > 0.5, el2n=1.2 * (1 - prob), entropy=1 - prob
        )


def write_logits(folder: Path, n_images: int, n_epochs: int, n_classes: int) -> None:
    """Stored logits, and the trajectory of the same run beside them."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_classes, n_images)
    pace = 8 * rng.random(n_images, dtype=np.float32)
    np.save(folder / "labels.npy", labels)
    logits = np.lib.format.open_memmap(
        folder / "logits.npy", mode="w+", dtype=np.float32, shape=(n_epochs, n_images, n_classes)
    )
    writer = TrajectoryWriter(folder / "trajectory", n_epochs, n_images)
    for epoch in range(n_epochs):
        row = rng.standard_normal((n_images, n_classes), dtype=np.float32)
        row[np.arange(n_images), labels] += pace * (epoch + 1) / n_epochs
        logits[epoch] = row
        probs = softmax(row)
        writer.append(**facts_of(probs, labels), entropy=-(probs * np.log(probs)).sum(axis=1))
    logits.flush()


def timed(function: Any, *arguments: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - start, result


def our_scores(folder: Path) -> Any:
    return compute_scores(open_trajectory(folder))


def peak_mb() -> float:
    """The most memory this process ever held, mapped pages of the files included."""
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def step_score(folder: Path, rounds: int) -> dict[str, Any]:
    seconds = []
    for _ in range(rounds):
        taken, table = timed(our_scores, folder)
        seconds.append(taken)
    assert list(table.columns) == list(SCORES)
    return {"seconds": seconds, "peak_mb": peak_mb()}


def step_compare(folder: Path, rounds: int) -> dict[str, Any]:
    ours, usual, worst = [], [], 0.0
    for _ in range(rounds):
        taken, table = timed(our_scores, folder / "trajectory")
        ours.append(taken)
        taken, expected = timed(usual_scores, folder)
        usual.append(taken)
        worst = max(worst, *(float(np.abs(table[name] - values).max()) for name, values in expected.items()))
        if worst > 1e-6:
            raise SystemExit(f"The two ways differ by {worst:g}.")
    return {
        "ours": ours,
        "usual": usual,
        "largest_difference": worst,
        "bytes_ours": files.tree_bytes(folder / "trajectory"),
        "bytes_usual": (folder / "logits.npy").stat().st_size,
    }


def run_step(name: str, folder: Path, *numbers: int) -> dict[str, Any]:
    """Run one step of this file in a fresh process; its last line is its answer."""
    command = [sys.executable, __file__, "--step", name, str(folder), *map(str, numbers)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    return json.loads(done.stdout.splitlines()[-1])


STEPS: dict[str, Callable[..., dict[str, Any] | None]] = {
    "write_columns": write_columns,
    "write_logits": write_logits,
    "score": step_score,
    "compare": step_compare,
}


def main() -> None:
    parser = benchmark_parser(__doc__, small="small pools, in seconds")
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        name, folder, *numbers = args.step
        print(json.dumps(STEPS[name](Path(folder), *map(int, numbers)) or {}))
        return
    size = SIZES[args.small]
    (n, t), (n_large, t_large) = size["pool"], size["imagenet"]

    with tempfile.TemporaryDirectory(prefix="semiprune-scores-") as scratch:
        print(f"1. N = {n}, T = {t}, all scores", flush=True)
        run_step("write_columns", Path(scratch, "pool"), n, t)
        pool = run_step("score", Path(scratch, "pool"), size["rounds"])
    with tempfile.TemporaryDirectory(prefix="semiprune-scores-") as scratch:
        print(f"2. N = {n}, T = {t}, C = {size['classes']}, both ways by turns", flush=True)
        run_step("write_logits", Path(scratch), n, t, size["classes"])
        both = run_step("compare", Path(scratch), size["slow_rounds"])
    with tempfile.TemporaryDirectory(prefix="semiprune-scores-") as scratch:
        print(f"3. N = {n_large}, T = {t_large}, all scores", flush=True)
        run_step("write_columns", Path(scratch, "imagenet"), n_large, t_large)
        imagenet = run_step("score", Path(scratch, "imagenet"), size["slow_rounds"])

    result = {
        "seconds_50k": spread(pool["seconds"])["median"],
        "peak_mb_50k": round(pool["peak_mb"]),
        "time_ratio": round(statistics.median(both["usual"]) / statistics.median(both["ours"]), 1),
        "disk_ratio": round(both["bytes_usual"] / both["bytes_ours"], 1),
        "seconds_1281k": spread(imagenet["seconds"])["median"],
        "peak_mb_1281k": round(imagenet["peak_mb"]),
        "small": args.small,
    }
    details = {
        "sizes": size,
        "spread": {
            "seconds_50k": spread(pool["seconds"]),
            "ours": spread(both["ours"]),
            "usual": spread(both["usual"]),
            "seconds_1281k": spread(imagenet["seconds"]),
        },
        "largest_difference": both["largest_difference"],
    }
    for name, numbers in details["spread"].items():
        print(f"   {name}: median {numbers['median']} s ({numbers['min']} to {numbers['max']}, n = {numbers['n']})")
    finish(args, "scores", result, details)


if __name__ == "__main__":
    main()
