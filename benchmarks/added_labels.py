"""Labels of two classes on top of a random tenth: do they lower the accuracy?

    .venv/bin/python benchmarks/added_labels.py [--images demo|fashion] [--work DIR] [--seeds 3] [--first-seed S]
        [--starts scratch,frozen,...] [--small] [--keep]

A tenth of the pool is labeled at random (600 of the demo pool); then half as many again of each of two classes (300),
those that most runs get wrong most often (Shirt and Coat), as a person does who follows "Label more of it". ``fashion``
are the images of the demo pool that may tune. Accuracy and balanced accuracy are taken on the images that are without a
label both times. Starts: ``scratch`` (FixMatch, preset quick), ``frozen`` (the default
head on features of the packaged encoder), ``logistic`` and ``ssl`` (other heads on them). Features are kept in --work.
The last line is JSON: by start the means over seeds, and the change in points with half its 95% interval (Student,
paired by seed).
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from common import benchmark_parser, finish
from frozen import features, open_images
from scipy import stats

from semiprune_core.learning.frozen import FrozenSettings, fit_pool, prepare_pool
from semiprune_core.learning.presets import ssl_preset
from semiprune_core.learning.ssl_run import train_ssl
from semiprune_core.progress import Collected
from semiprune_core.records import UNLABELED, IntArray

ADDED = (4, 6)
"""Classes: Coat and Shirt."""
HEADS: dict[str, dict[str, Any]] = {
    "frozen": {},
    "logistic": {"head": "logistic"},
    "ssl": {"head": "ssl", "n_folds": 3},
}


def draws(truth: IntArray, seed: int) -> tuple[IntArray, IntArray]:
    """Positions drawn at random, and those added: so many of each of two classes."""
    order = np.random.default_rng([seed, 0xADD]).permutation(len(truth))
    n = len(truth) // 10
    drawn, rest = order[:n], order[n:]
    return drawn, np.concatenate([rest[truth[rest] == label][: n // 2] for label in ADDED])


def labels_at(truth: IntArray, *positions: IntArray) -> IntArray:
    labels = np.full(len(truth), UNLABELED)
    for some in positions:
        labels[some] = truth[some]
    return labels


class Starts:
    """The ways to learn, each from labels (N,) and which of them were drawn at random (N,) to answers (N,)."""

    def __init__(self, images: np.ndarray, n_classes: int, rows: np.ndarray | None, *, small: bool) -> None:
        self.images, self.n_classes, self.small = images, n_classes, small
        self.prepared = None if rows is None else prepare_pool(rows, FrozenSettings())

    def answers(self, start: str, labels: IntArray, uniform: np.ndarray, seed: int) -> IntArray:
        if start == "scratch":
            result = train_ssl(
                self.images,
                labels,
                class_names=[str(number) for number in range(self.n_classes)],
                settings=ssl_preset("quick", **({"epochs": 1} if self.small else {})),
                seed=seed,
                progress=Collected(),
                measurable_mask=uniform,
            )
            return result.predicted
        assert self.prepared is not None
        settings = FrozenSettings(**HEADS[start])
        fitted = fit_pool(
            self.prepared, labels, n_classes=self.n_classes, settings=settings, measurable_mask=uniform, seed=seed
        )
        return fitted.probs.argmax(1)


def judged(answers: IntArray, truth: IntArray) -> dict[str, float]:
    right = answers == truth
    balanced = np.mean([right[truth == label].mean() for label in np.unique(truth)])
    return {"accuracy": round(float(right.mean()), 4), "balanced": round(float(balanced), 4)}


def change(pairs: list[tuple[float, float]]) -> dict[str, float]:
    """Mean difference in points, and half its 95% interval."""
    apart = 100 * np.array([after - before for before, after in pairs])
    half = stats.t.ppf(0.975, len(apart) - 1) * apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else np.nan
    return {"points": round(float(apart.mean()), 2), "half": round(float(half), 2)}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    result = {}
    for start in dict.fromkeys(run["start"] for run in runs):
        mine = [run for run in runs if run["start"] == start]
        result[start] = {
            kind: {
                "random": round(float(np.mean([run["random"][kind] for run in mine])), 4),
                "added": round(float(np.mean([run["added"][kind] for run in mine])), 4),
                "change": change([(run["random"][kind], run["added"][kind]) for run in mine]),
            }
            for kind in ("accuracy", "balanced")
        }
    return result


def main() -> None:
    parser = benchmark_parser(__doc__, small="one seed, one epoch from scratch")
    parser.add_argument("--images", choices=("demo", "fashion"), default="demo")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--starts", default="scratch,frozen,logistic,ssl")
    args = parser.parse_args()
    images, truth = open_images(args.images, Path())
    names = args.starts.split(",")
    work = args.work or Path(tempfile.mkdtemp(prefix="semiprune-"))
    work.mkdir(parents=True, exist_ok=True)
    rows = features(args.images, "plain", images, work) if any(name in HEADS for name in names) else None
    starts = Starts(images, int(truth.max()) + 1, rows, small=args.small)
    runs: list[dict[str, Any]] = []
    for seed in range(args.first_seed, args.first_seed + (1 if args.small else args.seeds)):
        drawn, added = draws(truth, seed)
        uniform = labels_at(truth, drawn) != UNLABELED
        rest = labels_at(truth, drawn, added) == UNLABELED
        for name in names:
            run: dict[str, Any] = {"start": name, "seed": seed}
            for kind, positions in (("random", (drawn,)), ("added", (drawn, added))):
                answers = starts.answers(name, labels_at(truth, *positions), uniform, seed)
                run[kind] = judged(answers[rest], truth[rest])
            print(run, flush=True)
            runs.append(run)
    finish(args, f"added_labels_{args.images}", summary(runs), {"runs": runs})


if __name__ == "__main__":
    main()
