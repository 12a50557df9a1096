"""The paper's comparison at a size that two cores can finish: all methods, five ratios, several seeds.

    .venv/bin/python benchmarks/paper.py --dataset fashion|cifar10|FILE.npz [--variant standard|corrupt|longtail]
        [--scale small|medium|full] [--seeds 3] [--closer 6] [--methods A,B] [--ratios R,R] [--preset P] [--epochs E]
        [--knobs JSON] [--name longer] [--home DIR] [--small] [--keep]

It walks the product's own line once for every seed: import (with the variant), a random tenth labeled from the
reference labels, FixMatch, the dynamics run, every method's own evidence, and the evaluation job. So an interval over
seeds is over draws of labels, pseudo-labels, scores, clusterings and trainings, not over trainings alone; only the
images are the same. Each seed has its project in ``--home``: a repeated call resumes where the last one ended, and a
call with more methods, ratios or seeds reuses what is there.
``--closer`` asks for more seeds of the methods that the comparison is about (Random, Semi-AUM, Semi-DUAL) at the ratios
from ``--closer-from`` on: an interval over three differences is more than twice as wide as one over six, for the same
spread.
The last line printed is JSON with the mean gain over Random in points. With ``--keep``,
``results/paper_<dataset>_<variant>.csv`` holds one row per training, and ``results/paper_<dataset>_<variant>.json`` the
machine, the versions, the settings and the minutes of each stage. ``cifar10`` needs ``--data FILE.npz``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from common import benchmark_parser, label_a_tenth, results_folder, write_result
from image_data import open_data

from semiprune_core import jobs
from semiprune_core.dynamics import submit_dynamics
from semiprune_core.evaluation import EvaluationRun, EvaluationSettings, submit_evaluation
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.learning.presets import ssl_preset
from semiprune_core.learning.settings import SSLSettings
from semiprune_core.methods import METHODS
from semiprune_core.progress import Collected
from semiprune_core.project.artifacts import Artifact
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.training import SCRATCH, TrainSettings, start_training
from semiprune_core.trials import FULL

SCALES = {"small": 6_000, "medium": 20_000, "full": None}
VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "standard": (),
    "corrupt": ({"name": "corrupt", "share": 0.3},),
    "longtail": ({"name": "longtail", "factor": 0.1},),
}
RATIOS = "0.3,0.5,0.7,0.8,0.9"
CLOSER = ("random", "semi_aum_cutoff", "semi_dual_beta")
"""The methods that ``--closer`` asks for more seeds of."""


@dataclass
class Stages:
    """How long each stage took, over all calls for one project."""

    project: Project

    @property
    def path(self) -> Path:
        return self.project.folder / "paper_minutes.json"

    def minutes(self) -> dict[str, float]:
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    def run(self, name: str, done: bool, work: Callable[[], object]) -> None:
        if done:
            return
        started = time.perf_counter()
        work()
        taken = (time.perf_counter() - started) / 60
        minutes = self.minutes()
        minutes[name] = round(minutes.get(name, 0) + taken, 2)
        self.path.write_text(json.dumps(minutes))
        print(f"{name}: {taken:.1f} min, load {os.getloadavg()[0]:.1f}", flush=True)


def open_project(args: argparse.Namespace, n_images: int | None, seed: int) -> Project:
    """The project of this comparison and seed, with its pool imported."""
    workspace = Workspace.open(args.home)
    title = f"{Path(args.dataset).stem}-{args.variant}-{n_images or 'all'}-seed-{seed}"
    name = re.sub("[^a-z0-9]+", "-", title.lower())
    project = workspace.project(name) if name in workspace else workspace.create(name, name=name)
    if not project.has_pool():
        with tempfile.TemporaryDirectory() as folder:
            os.environ["SEMIPRUNE_ROOTS"] = folder
            import_data(args, project, Path(folder), n_images)
    return workspace.project(name)


def import_data(args: argparse.Namespace, project: Project, folder: Path, n_images: int | None) -> None:
    data = open_data(args.data or args.dataset, n_images, n_test=300 if args.small else None)
    path = folder / "source.npz"
    split = np.repeat(["pool", "test"], [len(data.labels), len(data.test_labels)])
    np.savez(
        path,
        images=np.concatenate([data.images, data.test_images]),
        labels=np.concatenate([data.labels, data.test_labels]),
        class_names=np.array(data.class_names),
        split=split,
    )
    spec = SourceSpec("npz", str(path), variants=VARIANTS[args.variant])
    import_source(project, ImportSettings(source=spec.to_json()), Collected())


def finish_job(project: Project, kind: str, wanted: dict[str, Any], submit: Callable[[], jobs.Job]) -> None:
    """Run a job in this process, or go on with the very same one that an earlier call left unfinished."""
    same = [job for job in jobs.list_jobs(project, kind) if {key: job.settings.get(key) for key in wanted} == wanted]
    unfinished = [job for job in same if job.status().state not in (jobs.DONE, jobs.FAILED)]
    job = unfinished[0] if unfinished else submit()
    if unfinished and job.status().state not in (jobs.QUEUED, jobs.RUNNING):
        job.resume()
    status = jobs.wait(job)
    if status.state != jobs.DONE:
        raise SystemExit(f"{job.title}: {status.state}. {status.message or ''}")


def check_same_ssl(project: Project, wanted: TrainSettings) -> None:
    """Refuse to call pseudo-labels of an earlier call those of other settings."""
    pseudo = project.latest("pseudo")
    if pseudo is not None and {key: pseudo.settings.get(key) for key in wanted.ssl} != wanted.ssl:
        raise SystemExit(
            f"{project.name} was pseudo-labeled with other SSL settings before. Give another --home, or the same "
            "--algorithm and --ssl."
        )


def main() -> None:
    parser = benchmark_parser(__doc__, small="400 images and 2 epochs")
    parser.add_argument("--dataset", default="fashion")
    parser.add_argument("--data", help="the file of a data set that is not 'fashion'")
    parser.add_argument("--variant", choices=tuple(VARIANTS), default="standard")
    parser.add_argument("--scale", choices=tuple(SCALES), default="small")
    parser.add_argument("--n", type=int, help="so many images instead of the scale's")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--closer", type=int, default=0, help="so many seeds of Random, Semi-AUM, Semi-DUAL")
    parser.add_argument("--closer-from", type=float, default=0.7, metavar="R", help="at ratios from this one on")
    parser.add_argument("--methods", default=",".join([FULL, *METHODS]))
    parser.add_argument("--ratios", default=RATIOS)
    parser.add_argument("--epochs", type=int, help="of a training on the whole pool, instead of the preset's")
    parser.add_argument("--preset", default="quick", help="of the trainings on coresets")
    parser.add_argument("--knobs", type=json.loads, default={}, help='such as {"elfs": {"0.7": {"cutoff": 0.2}}}')
    parser.add_argument("--algorithm", default="fixmatch")
    parser.add_argument("--ssl", default="{}", help="changes to the SSL preset, as JSON")
    parser.add_argument("--name", default="", help="of a further run on the same pool: goes behind the result's name")
    parser.add_argument("--home", type=Path, default=Path("paper-runs"))
    args = parser.parse_args()
    if args.dataset != "fashion" and not Path(args.data or args.dataset).is_file():
        raise SystemExit(f"The images of '{args.dataset}' are wanted: --data FILE.npz (images, labels, split).")
    report(args, compare(args))


def compare(args: argparse.Namespace) -> list[tuple[Project, EvaluationRun]]:
    """One evaluation for each seed, of everything that was drawn with it; those of further seeds are of ``CLOSER``."""
    ratios, methods = tuple(map(float, args.ratios.split(","))), tuple(args.methods.split(","))
    n_seeds = 1 if args.small else args.seeds
    high = tuple(ratio for ratio in ratios if ratio >= args.closer_from)
    asked = [(seed, methods, ratios) for seed in range(n_seeds)]
    asked += [(seed, CLOSER, high) for seed in range(n_seeds, args.closer)]
    projects = {seed: prepared(args, seed) for seed, _, _ in asked}
    return [(projects[seed], evaluated(args, projects[seed], *rest, seed)) for seed, *rest in asked]


def prepared(args: argparse.Namespace, seed: int) -> Project:
    """The project of a seed up to its scores: labels, pseudo-labels and scores are drawn with it."""
    n_images = 400 if args.small else args.n or SCALES[args.scale]
    short = {"epochs": 2} if args.small else {}
    project = open_project(args, n_images, seed)
    stages = Stages(project)
    label_a_tenth(project, seed, annotator="paper")
    settings = TrainSettings(start=SCRATCH, ssl=ssl_of(args).to_json(), preset="quick", seed=seed)
    check_same_ssl(project, settings)
    stages.run(
        "pseudo-labels",
        project.latest("pseudo") is not None,
        lambda: finish_job(project, "ssl", settings.to_json(), lambda: start_training(project, settings)),
    )
    stages.run(
        "dynamics",
        project.latest("scores") is not None,
        lambda: finish_job(
            project,
            "dynamics",
            {"preset": "quick"},
            lambda: submit_dynamics(project, preset="quick", seeds=(seed,), **short),
        ),
    )
    return project


def ssl_of(args: argparse.Namespace) -> SSLSettings:
    return ssl_preset("quick", args.algorithm, **json.loads(args.ssl), **({"epochs": 2} if args.small else {}))


def evaluated(
    args: argparse.Namespace, project: Project, methods: tuple[str, ...], ratios: tuple[float, ...], seed: int
) -> EvaluationRun:
    """An evaluation, which takes over what earlier ones have trained."""
    wanted = EvaluationSettings(
        methods=methods,
        ratios=ratios,
        seeds=(seed,),
        evidence_seed=seed,
        preset=args.preset,
        epochs=2 if args.small else args.epochs,
        knobs={method: by_ratio for method, by_ratio in args.knobs.items() if method in methods},
    )
    asked = {name: wanted.to_json()[name] for name in ("methods", "ratios", "seeds", "preset", "epochs", "knobs")}
    finish_job(project, "evaluate", asked, lambda: submit_evaluation(project, wanted))
    artifact = project.latest("evaluation")
    assert artifact is not None
    return EvaluationRun(artifact)


def report(args: argparse.Namespace, runs: list[tuple[Project, EvaluationRun]]) -> None:
    """Print the gains over Random; with ``--keep`` write every trial of every seed, and what they were made with."""
    table = pd.concat([run.trials() for _, run in runs], ignore_index=True)
    name = "_".join(filter(None, ("paper", Path(args.dataset).stem, args.variant, args.name)))
    frame = pd.DataFrame({"dataset": args.dataset, "variant": args.variant}, index=table.index).join(table)
    project, run = runs[0]
    right = [_right(own) for own, _ in runs]
    facts = {
        "dataset": args.dataset,
        "variant": args.variant,
        "name": args.name,
        "n_pool": len(project.pool()),
        "n_test": len(project.test_set()),
        "n_labeled": _pseudo(project).facts["n_human"],
        "n_draws": len(runs),
        "ssl": ssl_of(args).to_json(),
        "pseudo_label_accuracy": round(float(np.mean(right)), 4),
        "pseudo_label_accuracy_by_seed": right,
        "stage_minutes": _minutes(runs, table),
        "threads": torch.get_num_threads(),
        "gain_over_random_points": _gains(table),
    }
    if folder := results_folder(args):
        frame.to_csv(folder / f"{name}.csv", index=False)
        write_result(
            folder, name, facts, {"evaluation": dict(run.artifact.settings), "facts": dict(run.artifact.facts)}
        )
    print(json.dumps(facts["gain_over_random_points"]))


def _minutes(runs: list[tuple[Project, EvaluationRun]], table: pd.DataFrame) -> dict[str, float]:
    """How long each stage took, all seeds together."""
    minutes: dict[str, float] = {}
    for project, _ in runs:
        for stage, taken in Stages(project).minutes().items():
            minutes[stage] = round(minutes.get(stage, 0) + taken, 2)
    evidence = sum(sum(run.artifact.facts.get("evidence_minutes", {}).values()) for _, run in runs)
    return {**minutes, "evaluation": round(float(table["minutes"].sum()) + evidence, 2)}


def _pseudo(project: Project) -> Artifact:
    pseudo = project.latest("pseudo")
    assert pseudo is not None
    return pseudo


def _right(project: Project) -> float:
    labels = np.load(_pseudo(project).path("labels.npy"))
    return round(float((labels == project.pool().reference_labels).mean()), 4)


def _gains(table: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Mean over the seeds of the difference to Random of the same seed, in points, by method and ratio."""
    pruned = table[table["method"] != FULL]
    wide = pruned.pivot(index=["pruning_ratio", "seed"], columns="method", values="test_accuracy")
    if "random" not in wide:
        return {}
    means = 100 * wide.sub(wide["random"], axis=0).groupby("pruning_ratio").mean()
    return {str(method): {f"{r:g}": round(float(v), 2) for r, v in means[method].dropna().items()} for method in means}


if __name__ == "__main__":
    main()
