"""The paper's comparison at a size that two cores can finish, on images that nothing was tuned on.

    .venv/bin/python benchmarks/paper.py --dataset fashion|cifar10|photos|signs [--data DIR] [--images FIRST-LAST]
        [--variant standard|corrupt|longtail-0.1|longtail-0.01] [--n N] [--n-test N] [--seeds 5] [--first-seed S]
        [--start frozen|scratch|auto] [--test probe|finetune|scratch] [--methods A,B] [--ratios R,R] [--preset P]
        [--epochs E] [--encoder E] [--ssl JSON] [--evidence JSON] [--knobs JSON] [--no-search] [--search-test T]
        [--search-seeds S]
        [--home DIR] [--small] [--keep]

Which images may tune and which only confirm is written in ``paper_pools.py``: Fashion-MNIST's images 1 to 30,000 and
the first 6,000 of the CIFAR-10 file may tune; Fashion-MNIST's images 30,001 to 60,000 with the 10,000 test images,
CIFAR-10's other 6,000, the clothing photos and the traffic signs only confirm, and are what is taken without
``--images``. A range that mixes the two is refused, and so are knobs set by hand on images that confirm.

The product's own line is walked once for every seed: a random tenth labeled from the reference labels, pseudo-labels
and scores by ``--start``, every method's own evidence, a search for every method that has something to search for (on
pseudo-labels of images that are not tested on), and the evaluation by ``--test``. So an interval over seeds is over
draws of labels, pseudo-labels, scores, clusterings, searches and trainings; only the images are the same. ``chosen`` is
Semi-AUM or Semi-DUAL, whichever the searches speak for at a ratio (``chosen_method``), without a look at a test image.

Images are imported and embedded once into ``--home``, which the seeds share. Results are written after every seed, and
a repeated call goes on where the last one ended; other starts, tests, methods or seeds of the same pool join the same
file: with ``--keep`` ``results/paper_<dataset>_<variant>.csv`` (tuning images: ``results/tuning_...``), one row per
trial, and beside it ``.json`` with machine, versions, settings and minutes. DIR of --data holds cifar10_12k.npz,
clothing_photos.zip and traffic_signs_6k.npz. The last line is JSON: the mean gain over Random in points.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import benchmark_parser, label_a_tenth, output_folder, write_result
from paper_pools import FILES, NO_FLIPS, PARTS, VARIANTS, Part, check_role, cut, has_folders, images_asked
from paper_stages import Said, Stage, minutes_of

from semiprune_core import files, jobs
from semiprune_core.baselines import EvidenceRequest, stored_evidence
from semiprune_core.copies import copy_project
from semiprune_core.coresets.starting_values import searches_of
from semiprune_core.dynamics import submit_dynamics
from semiprune_core.errors import JobError
from semiprune_core.evaluation import EvaluationSettings, submit_evaluation
from semiprune_core.features import EmbedSettings
from semiprune_core.features.embed import embed
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.learning.presets import ssl_preset
from semiprune_core.methods import METHODS
from semiprune_core.paths import ROOTS_VARIABLE
from semiprune_core.progress import Collected
from semiprune_core.project.artifacts import Artifact
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.results import latest_scores
from semiprune_core.results.evidence import EvidenceRun
from semiprune_core.results.score_source import ScoreSource, has_own_evidence
from semiprune_core.results.search import BestValue, SearchRun, searchable_methods
from semiprune_core.search import search_settings, submit_search
from semiprune_core.training import FROZEN, SCRATCH, TrainSettings, start_training
from semiprune_core.trials import BOOK, FULL, PROBE, TESTS, Trial, TrialBook

RATIOS = "0.3,0.5,0.7,0.8,0.9"
OURS = ("semi_aum_cutoff", "semi_dual_beta")
USUAL = OURS[0]
"""What the app takes where nobody chooses a method."""
CHOSEN = "chosen"
COLUMNS = (
    "dataset",
    "variant",
    "start",
    "test",
    "method",
    "pruning_ratio",
    "seed",
    "test_accuracy",
    "balanced_accuracy",
    "worst_class_accuracy",
    "minutes",
)
KEY = ["start", "test", "method", "pruning_ratio", "seed"]


# --- pools ---------------------------------------------------------------------------------------------------------


def base_project(args: argparse.Namespace, part: Part) -> Project:
    """The project with the images and their features, without a label: made once, copied for every seed."""
    workspace = Workspace.open(args.home)
    name = f"{args.dataset}-{args.variant}-{part.role}-{part.first}-{part.last}-{args.n or 'all'}".replace(".", "-")
    project = workspace.project(name) if name in workspace else workspace.create(name, name=name)
    if not project.has_pool():
        with tempfile.TemporaryDirectory() as folder:
            import_pool(args, part, project, Path(folder))
        project = workspace.project(name)
    blocks = args.home / f"blocks-{name}"
    with Stage(project, "embedding"):
        embed(project, EmbedSettings(encoder=args.encoder), Said(), folder=blocks)
    return project


def import_pool(args: argparse.Namespace, part: Part, project: Project, folder: Path) -> None:
    if has_folders(args.dataset):
        path = args.data / FILES[args.dataset]
        spec = SourceSpec("zip", str(path), variants=VARIANTS[args.variant])
    else:
        path = folder / "source.npz"
        data = cut(args.dataset, part, args.n, args.n_test, args.data)
        np.savez(
            path,
            images=np.concatenate([data.images, data.test_images]),
            labels=np.concatenate([data.labels, data.test_labels]),
            class_names=np.array(data.class_names),
            split=np.repeat(["pool", "test"], [len(data.labels), len(data.test_labels)]),
        )
        spec = SourceSpec("npz", str(path), variants=VARIANTS[args.variant])
    os.environ[ROOTS_VARIABLE] = str(path.parent.resolve())
    import_source(project, ImportSettings(source=spec.to_json()), Collected())


# --- one seed ------------------------------------------------------------------------------------------------------


def finish_job(project: Project, kind: str, wanted: Mapping[str, Any], submit: Callable[[], jobs.Job]) -> jobs.Job:
    """Run a job here and now, or go on with the very same one that an earlier call left unfinished."""
    same = [job for job in jobs.list_jobs(project, kind) if {key: job.settings.get(key) for key in wanted} == wanted]
    left = next((job for job in same if job.status().is_resumable and job.status().state != jobs.FAILED), None)
    if left is not None:
        left.resume()
        jobs.wait(left)
    job = left or when_free(submit)
    status = job.status()
    if status.state != jobs.DONE:
        raise SystemExit(f"{project.name}, {job.title}: {status.state}. {status.message or job.log_tail()}")
    return job


def when_free(submit: Callable[[], jobs.Job], *, seconds: float = 60.0) -> jobs.Job:
    """Submit a job once the process of the one before, which may still be unloading torch, has let go of the device."""
    until = time.monotonic() + seconds
    while True:
        try:
            return submit()
        except JobError as error:
            if error.code != "DEVICE_BUSY" or time.monotonic() > until:
                raise
        time.sleep(1)


def train_settings(args: argparse.Namespace, seed: int) -> TrainSettings:
    short = {"epochs": 2, "steps_per_epoch": 5} if args.small else {}
    ssl = ssl_preset("quick", "fixmatch", flip=args.dataset not in NO_FLIPS, **args.ssl, **short)
    return TrainSettings(start=args.start, ssl=ssl.to_json(), preset="quick", seed=seed, encoder=args.encoder)


def prepared(args: argparse.Namespace, base: Project, seed: int) -> Project:
    """The project of a seed up to its scores: labels, pseudo-labels and scores are drawn with it."""
    name = f"{base.name}-{args.start}-seed-{seed}"
    workspace = base.workspace
    project = workspace.project(name) if name in workspace else copy_project(workspace, base.name, name)
    label_a_tenth(project, seed, annotator="paper")
    settings = train_settings(args, seed)
    if project.latest("pseudo") is None:
        with Stage(project, "pseudo-labels"):
            wanted = {"seed": seed, "start": args.start}
            finish_job(project, "ssl", wanted, lambda: start_training(project, settings, immediate=True))
    elif project.latest("pseudo").settings.get("ssl", settings.ssl) != settings.ssl:  # type: ignore[union-attr]
        raise SystemExit(f"{project.name} was pseudo-labeled with other settings before. Give another --home.")
    if project.latest("scores") is None:
        training = {"epochs": 2} if args.small else {"flip": False} if _mirrors_lie(args, project) else {}
        with Stage(project, "dynamics"):
            submitted = {"seeds": [seed]}
            finish_job(
                project,
                "dynamics",
                submitted,
                lambda: submit_dynamics(project, seeds=(seed,), immediate=True, **training),
            )
    return project


def _mirrors_lie(args: argparse.Namespace, project: Project) -> bool:
    return args.dataset in NO_FLIPS and args.start != FROZEN


def evaluation_settings(args: argparse.Namespace, seed: int) -> EvaluationSettings:
    return EvaluationSettings(
        methods=tuple(args.methods.split(",")),
        ratios=tuple(map(float, args.ratios.split(","))),
        seeds=(seed,),
        evidence_seed=seed,
        evidence={"encoder": "originals", "start": FROZEN if args.start == FROZEN else SCRATCH, **args.evidence},
        preset=args.preset,
        epochs=2 if args.small and args.test != PROBE else args.epochs,
        knobs=args.knobs,
        test=args.test,
    )


def searched(args: argparse.Namespace, project: Project, seed: int, settings: EvaluationSettings) -> None:
    """A search for every method that has something to search for, on its own evidence, which is made first."""
    for method in (method for method in searchable_methods() if method in settings.methods):
        source: ScoreSource = latest_scores(project)
        if has_own_evidence(method):
            with Stage(project, f"evidence of {METHODS[method].evidence}"):
                source = own_evidence(project, method, seed, settings)
        if searches_of(project, source, method):
            continue
        values = {"ratios": settings.ratios, "split_seed": seed, "test": args.search_test}
        values |= {"seeds": tuple(range(args.search_seeds))} if args.search_seeds else {}
        with Stage(project, "search"):
            wanted = {"method": method, "split_seed": seed, "scores": source.artifact.id}
            asked = search_settings(project, method=method, source=source, **values)
            finish_job(project, "search", wanted, functools.partial(submit_search, project, asked, immediate=True))


def own_evidence(project: Project, method: str, seed: int, settings: EvaluationSettings) -> EvidenceRun:
    """What a method looks at beside the project's scores, as its evaluation will ask for it."""
    asked, folder = settings.evidence_for(method), project.folder / "work"
    stored = stored_evidence(method, EvidenceRequest(project, Collected(), seed=seed, settings=asked, folder=folder))
    assert stored is not None
    return stored


def best_of_searches(args: argparse.Namespace, project: Project) -> dict[str, dict[str, Any]]:
    """The knobs of the methods that ours are compared with: the best value of each search, as their papers take it,
    however little it is ahead of Random. Ours take what the app takes, which is a search's value only where that is
    clear of chance."""
    knobs: dict[str, dict[str, Any]] = {}
    for artifact in project.artifacts("search"):
        method = artifact.settings["method"]
        if method not in OURS and method in args.methods.split(","):
            for value in SearchRun(artifact).best:
                knobs.setdefault(method, {})[f"{value.pruning_ratio:g}"] = value.knobs
    return knobs


def evaluated(args: argparse.Namespace, project: Project, seed: int) -> jobs.Job:
    settings = evaluation_settings(args, seed)
    if not args.no_search:
        searched(args, project, seed, settings)
        settings = settings.replace(knobs={**best_of_searches(args, project), **settings.knobs})
    asked = settings.to_json()
    names = ("methods", "ratios", "seeds", "preset", "epochs", "test", "evidence")
    for job in jobs.list_jobs(project, "evaluate"):
        given = job.settings.get("knobs", {})
        same_knobs = all(given.get(method) == knobs for method, knobs in asked["knobs"].items())
        if job.status().state == jobs.DONE and same_knobs and all(job.settings.get(n) == asked[n] for n in names):
            return job
    with Stage(project, f"evaluation by {args.test}"):
        wanted = {name: asked[name] for name in names}
        return finish_job(project, "evaluate", wanted, lambda: submit_evaluation(project, settings, immediate=True))


# --- what is written -----------------------------------------------------------------------------------------------


def accuracies(result: Mapping[str, Any]) -> tuple[float, float, float]:
    """Accuracy, its mean over the classes that are tested, and that of the worst class.

    >>> accuracies({"right_by_class": [9, 1, 0], "n_by_class": [10, 2, 0]})
    (0.8333, 0.7, 0.5)
    """
    right, n = np.array(result["right_by_class"]), np.array(result["n_by_class"])
    by_class = right[n > 0] / n[n > 0]
    return round(float(right.sum() / n.sum()), 4), round(float(by_class.mean()), 4), round(float(by_class.min()), 4)


def chosen_method(searches: Iterable[tuple[str, BestValue]], usual: str = USUAL) -> str:
    """Which of our two methods to take at a ratio: of those that a search found ahead of Random beyond its interval the
    one with the larger lead, else what the app takes where nobody chooses."""
    ahead = [(value.difference, method) for method, value in searches if value.verdict == "better"]
    return max(ahead)[1] if ahead else usual


def choices(project: Project) -> dict[float, str]:
    """The chosen method by ratio."""
    by_ratio: dict[float, list[tuple[str, BestValue]]] = {}
    for artifact in project.artifacts("search"):
        if artifact.settings["method"] in OURS:
            for value in SearchRun(artifact).best:
                by_ratio.setdefault(value.pruning_ratio, []).append((artifact.settings["method"], value))
    return {ratio: chosen_method(values) for ratio, values in by_ratio.items()}


def rows_of(
    args: argparse.Namespace, trials: Iterable[tuple[Trial, Mapping[str, Any]]], chosen: Mapping[float, str]
) -> Iterator[tuple[Any, ...]]:
    """One row for each trial, and one more for the chosen method of each ratio."""
    for trial, result in trials:
        found = (*accuracies(result), round(result["seconds"] / 60, 4))
        names = [trial.method, *([CHOSEN] if chosen.get(trial.pruning_ratio) == trial.method else [])]
        for name in names:
            yield (
                args.dataset,
                args.variant,
                args.start,
                args.test,
                name,
                trial.pruning_ratio,
                trial.seed,
                *found,
            )


def joined(path: Path, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a result file with these, which replace what was measured before of the same cells."""
    earlier = [pd.read_csv(path)] if path.is_file() else []
    return pd.concat([*earlier, rows], ignore_index=True).drop_duplicates(KEY, keep="last").sort_values(KEY)


def write(args: argparse.Namespace, part: Part, base: Project, project: Project, job: jobs.Job) -> None:
    """Add the trials of a seed to the result file, and to its record what they were made with."""
    folder = output_folder(args, args.home)
    kind = "paper" if part.role == "confirm" else "tuning"
    path = folder / f"{kind}_{args.dataset}_{args.variant.replace('-', '_')}.csv"
    rows = pd.DataFrame(rows_of(args, list(TrialBook(job.work_folder / BOOK)), choices(project)), columns=list(COLUMNS))
    joined(path, rows).to_csv(path, index=False)
    record = files.read_json(path.with_suffix(".json")) if path.with_suffix(".json").is_file() else {}
    run = dict(record.get("runs", {}).get(f"{args.start} {args.test}", {}))
    seed = str(job.settings["seeds"][0])
    run["seeds"] = {**run.get("seeds", {}), seed: facts_of_seed(project, job)}
    asked = ("preset", "epochs", "encoder", "search_test", "search_seeds", "no_search", "ssl", "evidence")
    run["asked"] = {name: getattr(args, name) for name in asked}
    facts = {
        "dataset": args.dataset,
        "variant": args.variant,
        "images": [part.first, part.last],
        "role": part.role,
        "n_pool": len(base.pool()),
        "n_test": len(base.test_set()),
        "embedding_minutes": minutes_of(base).get("embedding"),
        "runs": {**record.get("runs", {}), f"{args.start} {args.test}": run},
    }
    write_result(folder, path.stem, facts, {})


def facts_of_seed(project: Project, job: jobs.Job) -> dict[str, Any]:
    labels, pool = np.load(_pseudo(project).path("labels.npy")), project.pool()
    trials = TrialBook(job.work_folder / BOOK)
    return {
        "start": _pseudo(project).facts.get("start") or _pseudo(project).settings.get("start"),
        "pseudo_label_accuracy": round(float((labels == pool.reference_labels).mean()), 4),
        "n_labeled": _pseudo(project).facts["n_human"],
        "chosen": {f"{ratio:g}": method for ratio, method in sorted(choices(project).items())},
        "knobs": {f"{trial.method} {trial.pruning_ratio:g}": dict(trial.knobs) for trial, _ in trials if trial.knobs},
        "searched": sorted({**job.settings.get("searches", {}), **_own_searches(job)}),
        "minutes": minutes_of(project),
    }


def _own_searches(job: jobs.Job) -> dict[str, str]:
    path = job.work_folder / "own_searches.json"
    return dict(files.read_json(path)) if path.is_file() else {}


def _pseudo(project: Project) -> Artifact:
    pseudo = project.latest("pseudo")
    assert pseudo is not None
    return pseudo


def gains(table: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Mean over the seeds of the difference to Random of the same seed, in points, by method and ratio."""
    pruned = table[table["method"] != FULL]
    wide = pruned.pivot_table(index=["pruning_ratio", "seed"], columns="method", values="test_accuracy")
    if "random" not in wide:
        return {}
    means = 100 * wide.sub(wide["random"], axis=0).groupby("pruning_ratio").mean()
    return {str(method): {f"{r:g}": round(float(v), 2) for r, v in means[method].dropna().items()} for method in means}


def main(words: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__, small="300 images, one seed, short trainings")
    parser.add_argument("--dataset", choices=tuple(PARTS), default="fashion")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--images", metavar="FIRST-LAST", help="which of the data set's images; by default the claims'")
    parser.add_argument("--variant", choices=tuple(VARIANTS), default="standard")
    parser.add_argument("--n", type=int, help="size of the pool, before a variant")
    parser.add_argument("--n-test", type=int, help="so many test images instead of all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--start", choices=("frozen", "scratch", "auto"), default=FROZEN)
    parser.add_argument("--test", choices=tuple(TESTS), default=PROBE)
    parser.add_argument("--search-test", choices=tuple(TESTS), default=PROBE)
    parser.add_argument("--search-seeds", type=int, default=0, help="of a search; by default what the app takes")
    parser.add_argument("--no-search", action="store_true", help="starting values alone")
    parser.add_argument("--methods", default=",".join([FULL, *METHODS]))
    parser.add_argument("--ratios", default=RATIOS)
    parser.add_argument("--preset", default="brief", help="of trainings on coresets")
    parser.add_argument("--epochs", type=int, help="of a training on the whole pool, instead of the preset's")
    parser.add_argument("--encoder", default=EmbedSettings.encoder)
    parser.add_argument("--ssl", type=json.loads, default={}, help="changes to the SSL preset, as JSON")
    parser.add_argument("--evidence", type=json.loads, default={}, help="settings of what other methods look at")
    parser.add_argument("--knobs", type=json.loads, default={}, help='such as {"elfs": {"0.7": {"cutoff": 0.2}}}')
    parser.add_argument("--home", type=Path, default=Path("paper-runs"))
    args = parser.parse_args(words)
    part = images_asked(args.images, args.dataset)
    check_role(part, args)
    if args.dataset in FILES and not (args.data / FILES[args.dataset]).is_file():
        raise SystemExit(f"{FILES[args.dataset]} is wanted in the folder of --data; it is not in {args.data}.")
    if args.small:
        args.n, args.n_test, args.seeds, args.first_seed = 300, 100, 1, 0
    base, tables = base_project(args, part), []
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        project = prepared(args, base, seed)
        job = evaluated(args, project, seed)
        write(args, part, base, project, job)
        tables.append(pd.DataFrame(rows_of(args, TrialBook(job.work_folder / BOOK), {}), columns=list(COLUMNS)))
        print(json.dumps({"seed": seed, "gains": gains(tables[-1])}), flush=True)
    print(json.dumps(gains(pd.concat(tables)) if tables else {}))


if __name__ == "__main__":
    main()
