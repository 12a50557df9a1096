"""What Auto takes and how right it is: a tenth of the labels, everything else at its default.

    .venv/bin/python benchmarks/auto.py --data DIR --work DIR [--pools demo,signs,photos,cifar] [--draws 3]
        [--budget SECONDS] [--small] [--keep]

DIR of --data holds clothing_photos.zip, cifar10_12k.npz and traffic_signs_6k.npz; signs are trained without left-right
flips. Images are imported and embedded once in --work, and a draw that is finished there is not made again. None of
these pools tuned anything but CIFAR-10's first 6,000 images; the demo pool's first half tuned heads. A busy machine
makes from scratch look too slow for the budget: give a larger one where the comparison itself is wanted. The last line
is JSON: for each pool the starts taken, mean accuracy and balanced accuracy on the images without a label; ``--keep``
keeps every draw with its candidates and comparison.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from common import benchmark_parser, finish, label_a_tenth

from semiprune_core import jobs, training
from semiprune_core.copies import copy_project, delete_project
from semiprune_core.features import submit_features
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.allowing import allow_named, place_of
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.learning.presets import ssl_preset
from semiprune_core.progress import Collected
from semiprune_core.project.workspace import Project, Workspace, slug_of
from semiprune_core.results import PseudoRun
from semiprune_core.training import AUTO, TrainSettings

SOURCES = {
    "demo": ("demo", ""),
    "signs": ("npz", "traffic_signs_6k.npz"),
    "photos": ("zip", "clothing_photos.zip"),
    "cifar": ("npz", "cifar10_12k.npz"),
}
NO_FLIPS = ("signs",)
SHORT = {"epochs": 2, "steps_per_epoch": 10}


def imported(workspace: Workspace, pool: str, data: Path) -> Project:
    """The project of a pool with its features, made once."""
    if pool in workspace.names():
        return workspace.project(pool)
    kind, name = SOURCES[pool]
    project = workspace.create(pool)
    spec = SourceSpec(kind, str(data / name) if name else "")
    allow_named(workspace, place_of(spec))
    import_source(project, ImportSettings(source=spec.to_json()), Collected())
    job = submit_features(project, immediate=True)
    assert job.status().state == "done", job.log_tail()
    return project


def drawn(base: Project, pool: str, seed: int, args: Any) -> Project:
    """A copy of the pool with labels of its own and a finished run: that of an earlier call, or made now."""
    workspace, title = base.workspace, f"{pool} draw {seed}"
    if slug_of(title) in workspace:
        if workspace.project(slug_of(title)).artifacts("pseudo"):
            return workspace.project(slug_of(title))
        delete_project(workspace, slug_of(title))
    project = copy_project(workspace, base.name, title)
    label_a_tenth(project, seed)
    ssl = ssl_preset("quick", flip=pool not in NO_FLIPS, **(SHORT if args.small else {}))
    settings = TrainSettings(start=AUTO, ssl=ssl.to_json(), preset="quick", budget=args.budget)
    job = training.start_training(project, settings, device="cpu", immediate=True)
    assert job.status().state == "done", job.log_tail()
    return project


def one_draw(base: Project, pool: str, seed: int, args: Any) -> dict[str, Any]:
    project = drawn(base, pool, seed, args)
    data = training.training_data(project)
    run = PseudoRun(project.artifacts("pseudo")[-1])
    job = jobs.list_jobs(project, "ssl")[-1]
    accuracy, balanced = right_on_the_rest(project, run)
    facts = run.artifact.facts
    row = {
        "seed": seed,
        "start": run.start,
        "accuracy": round(accuracy, 4),
        "balanced": round(balanced, 4),
        "seconds": round(job.status().seconds or 0, 1),
        "n_labels": data.n_labels,
        "missing_classes": list(data.missing_classes),
        "decision": facts["decision"],
        "candidates": facts["candidates"],
        "comparison": facts["comparison"],
    }
    print(
        pool, {name: row[name] for name in ("seed", "start", "accuracy", "balanced", "seconds", "decision")}, flush=True
    )
    return row


def right_on_the_rest(project: Project, run: PseudoRun) -> tuple[float, float]:
    """Accuracy and its mean over classes on the images that nobody labeled."""
    rest = ~run.labels().human_mask
    truth = training.reference_on(run, project.pool())[rest]
    right = np.asarray(run.predicted())[rest] == truth
    return float(right.mean()), float(np.mean([right[truth == label].mean() for label in np.unique(truth)]))


def main() -> None:
    parser = benchmark_parser(__doc__, small="the demo pool, one draw, a net of twenty steps")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--pools", default="demo,signs,photos")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=training.BUDGET)
    args = parser.parse_args()
    workspace = Workspace.open(args.work)
    pools = ["demo"] if args.small else args.pools.split(",")
    seeds = range(args.first_seed, args.first_seed + (1 if args.small else args.draws))
    details = {}
    for pool in pools:
        base = imported(workspace, pool, args.data)
        details[pool] = [one_draw(base, pool, seed, args) for seed in seeds]
    keys = {
        pool: {
            "starts": [row["start"] for row in rows],
            "accuracy": round(float(np.mean([row["accuracy"] for row in rows])), 4),
            "balanced": round(float(np.mean([row["balanced"] for row in rows])), 4),
        }
        for pool, rows in details.items()
    }
    finish(args, f"auto_{'_'.join(pools)}", keys, details)


if __name__ == "__main__":
    main()
