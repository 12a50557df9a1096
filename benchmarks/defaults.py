"""Which knobs help without a search: test accuracy of many knobs on several pools, sizes and ratios.

    .venv/bin/python benchmarks/defaults.py --dataset fashion|FILE.npz --n 6000 [--labeled 0.1] [--truth true|pseudo]
        [--seeds 3] [--ratios 0.7,0.9] [--preset quick] [--views 150000] [--small] [--keep]

For one pool: a random tenth is labeled (``--labeled`` less, and more of the pseudo-labels are wrong), FixMatch
(``quick``) gives pseudo-labels, a dynamics run gives scores; then a net is trained from scratch on the coreset of every
knob and seed, and tested. It is trained with true labels, as if people had labeled the coreset, or with ``--truth
pseudo`` on the pseudo-labels as they are. ``--views`` bounds how many images a training sees, all epochs together, so
that large pools can be tried on a small machine. Each row is written as soon as it is there, to
``defaults_<dataset>_<n>[_<labeled percent>pc][_pseudo].csv`` in ``--work``, with ``--keep`` in ``results/``; a repeated
run with the same flags continues where the last one ended. The last line is JSON: per method and ratio the mean gain
over Random of every knob (points). ``sizes.py`` shows how starting values do on pools of growing size.

Of the kept results, Random's rows with seed 1 on 6,000 Fashion-MNIST images have no share of wrong labels: older
versions drew that coreset and the labeled tenth alike, so that it held more labels of people than chance would give.
"""

from __future__ import annotations

import csv
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import benchmark_parser, output_folder
from image_data import open_data
from scored_pools import WORK, Candidate, ScoredPool, coreset_training, scored, share_suffix, tested

from semiprune_core.learning.presets import ssl_preset, supervised_preset
from semiprune_core.methods import select_coreset

CUTOFFS = {0.3: (0.0, 0.1), 0.5: (0.0, 0.1), 0.7: (0.0, 0.1), 0.8: (0.1, 0.2), 0.9: (0.2, 0.3)}
"""By ratio; wider grids on 6,000 images had shown where to look."""
NOISY_FROM = 0.2
"""From this share of wrong pseudo-labels on, larger cutoffs are tried too."""
C_DS = (2.0, 3.0)
AS_LABELED = {0.7: (0.1, 0.3, 0.5), 0.9: (0.3, 0.5, 0.7)}
"""By ratio, for trainings on pseudo-labels as they are; the larger ones also with balanced classes."""
FIELDS = ("dataset", "n", "epochs", "method", "knob", "pruning_ratio", "seed", "test_accuracy", "wrong", "minutes")
FIELDS += ("views", "labeled", "pool_wrong", "aum_from")  # wrong: of the coreset; aum_from: AUM at the cutoff


def cutoffs(ratio: float, wrong: float) -> tuple[float, ...]:
    """Those for few wrong labels; with more, the largest of them and some that grow with the share of ``wrong``."""
    few = CUTOFFS[ratio]
    if wrong < NOISY_FROM:
        return few
    middle = few[-1] + 1.2 * (wrong - 0.15)
    more = (middle - 0.1, middle, middle + 0.1, ratio - 0.1)
    return tuple(sorted({few[-1], *(round(min(value, ratio), 1) for value in more)}))


def candidates(pool: ScoredPool, ratio: float, truth: str) -> list[Candidate]:
    """Every coreset to be tried at a ratio."""
    few = cutoffs(ratio, float(pool.wrong_mask.mean())) if truth == "true" else AS_LABELED[ratio]
    tried: list[Candidate] = [("random", "", {})]
    tried += [("semi_aum_cutoff", f"{c:g}", {"cutoff": c}) for c in few]
    if truth == "pseudo":
        balanced = {"class_balanced": True}
        tried += [("semi_aum_cutoff", f"{c:g} balanced", {"cutoff": c, **balanced}) for c in few[1:]]
    return tried + [("semi_dual_beta", f"T={pool.epochs} c_D={c:g}", {"c_d": c}) for c in C_DS]


def main() -> None:
    parser = benchmark_parser(__doc__, small="600 images, 2 epochs, 1 seed")
    parser.add_argument("--dataset", default="fashion")
    parser.add_argument("--n", type=int, default=6000)
    parser.add_argument("--labeled", type=float, default=0.1, help="share of the pool that is labeled")
    parser.add_argument("--truth", choices=("true", "pseudo"), default="true", help="the labels of the trainings")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ratios", default="0.9,0.8,0.7,0.5,0.3")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--preset", default="quick", help="of the trainings on coresets")
    parser.add_argument("--views", type=int, help="a training sees at most so many images, all epochs together")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=WORK)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    n, epochs, seeds = (600, 2, 1) if args.small else (args.n, args.epochs, args.seeds)
    data = open_data(args.dataset, n, n_test=200 if args.small else None)
    pool = scored(
        data,
        supervised_preset("quick", epochs=epochs),
        ssl_preset("quick", **({"epochs": 1} if args.small else {})),
        args.work,
        args.labeled,
    )
    suffix = f"{share_suffix(args.labeled)}{'_pseudo' * (args.truth == 'pseudo')}"
    out = output_folder(args, args.work) / f"defaults_{data.name}_{len(data.labels)}{suffix}.csv"
    done = {(row["method"], row["knob"], row["pruning_ratio"], row["seed"]) for row in _read(out)}
    labels = data.labels if args.truth == "true" else pool.pseudo
    wrong = float(pool.wrong_mask.mean())
    print(f"{wrong:.1%} of the labels are wrong", flush=True)
    for seed in range(seeds):
        for ratio in map(float, args.ratios.split(",")):
            for method, name, knobs in candidates(pool, ratio, args.truth):
                if (method, name, str(ratio), str(seed)) in done:
                    continue
                started = time.perf_counter()
                kept = select_coreset(pool.evidence(), method, pruning_ratio=ratio, seed=seed, **knobs).indices
                training = coreset_training(args.preset, ratio, len(kept), views=args.views, epochs=epochs)
                accuracy = tested(data, kept, labels, training, seed)
                minutes = (time.perf_counter() - started) / 60
                row = (data.name, len(data.labels), epochs, method, name, ratio, seed, round(accuracy, 4))
                in_coreset = round(float(pool.wrong_mask[kept].mean()), 4)
                row = (*row, in_coreset, round(minutes, 2), training.epochs * len(kept))
                aum = pool.scores["aum"]
                aum_from = round(float(np.quantile(aum, knobs["cutoff"])), 3) if "cutoff" in knobs else ""
                row = (*row, args.labeled, round(wrong, 4), aum_from)
                _append(out, row)
                print(*row, f"load {os.getloadavg()[0]:.1f}", flush=True)
    print(json.dumps(_gains(_read(out))))


def _read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _append(path: Path, row: tuple[Any, ...]) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(FIELDS)
        writer.writerow(row)


def _gains(rows: list[dict[str, str]]) -> dict[str, Any]:
    """Mean over the seeds of the difference to Random of the same seed, in points, and its standard deviation."""
    by_cell: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        key = f"{row['method']} {row['knob']}".strip()
        by_cell.setdefault((row["pruning_ratio"], key), {})[row["seed"]] = float(row["test_accuracy"])
    by_ratio: dict[str, Any] = {}
    for (ratio, key), by_seed in by_cell.items():
        base = by_cell[ratio, "random"]
        gains = [100 * (value - base[seed]) for seed, value in by_seed.items() if seed in base]
        shown = [round(float(np.mean(gains)), 2), round(float(np.std(gains, ddof=1)), 2) if len(gains) > 1 else None]
        mean = round(100 * float(np.mean(list(base.values()))), 2)
        by_ratio.setdefault(ratio, {})[key] = mean if key == "random" else shown
    return by_ratio


if __name__ == "__main__":
    main()
