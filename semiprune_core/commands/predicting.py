"""``predict`` and ``model``: label new images with a finished run, or take its net away."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.errors import InvalidDataError
from semiprune_core.importing.allowing import allow_named
from semiprune_core.paths import real_path
from semiprune_core.prediction.write import check_out, write_predictions
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.results import PseudoRun, latest_pseudo

FAR = 95.0
FIRST_PROBLEMS = 20


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument("--from", dest="source", required=True, metavar="FOLDER", help="the folder of the new images")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="a table, .csv or .parquet")
    parser.add_argument("--run", metavar="ID", help="a run, such as pseudo-0002 (default: the newest)")
    parser.add_argument("--device", default="auto", help="auto (default), cpu, cuda:0, ...")
    parser.add_argument("--exact", action="store_true", help="leave texts as they are, also where they look like code")


def _predict(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    from semiprune_core.prediction.run import predict_folder

    project = workspace.project(args.name)
    check_out(args.out)
    folder = real_path(args.source)
    if not folder.is_dir():
        raise InvalidDataError(f"There is no folder {args.source}. Give the folder of the new images.")
    allow_named(workspace, folder)
    run = _run_of(project, args.run)
    found = predict_folder(project, run, folder, device=args.device, progress=console)
    write_predictions(found, args.out, exact=args.exact)
    n_far = int((found.distance >= FAR).sum())
    counts = np.bincount(found.labels, minlength=len(found.class_names)).tolist()
    value = {
        "project": project.name,
        "run": run.artifact.id,
        "out": str(args.out),
        "n_images": len(found.paths),
        "class_counts": dict(zip(found.class_names, counts)),
        "confidence": float(found.confidence.mean()),
        "n_far": n_far,
        "problems": [{"path": one.path, "message": one.message} for one in found.problems[:FIRST_PROBLEMS]],
        "n_problems": len(found.problems),
    }
    lines = [f"{len(found.paths):,} images labeled with {run.artifact.id}. Written to {args.out}."]
    if n_far:
        lines.append(
            f"{n_far:,} of them are farther from the pool than {FAR:.0f}% of its own images are from each other: "
            "do not rely on their labels."
        )
    if found.problems:
        lines.append(f"{len(found.problems):,} files could not be used. {found.problems[0].message}")
    return Outcome(value, "\n".join(lines))


def _run_of(project: Project, name: str | None) -> PseudoRun:
    run = latest_pseudo(project) if name is None else PseudoRun(project.artifact(name))
    if run.artifact.kind != "pseudo":
        raise InvalidDataError(f"{run.artifact.id} holds no pseudo-labels. Name a run such as pseudo-0001.")
    return run


def _configure_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="a new folder")
    parser.add_argument("--run", metavar="ID", help="a run from scratch, such as pseudo-0002 (default: the newest)")


def _model(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    from semiprune_core.prediction.package import write_model

    project = workspace.project(args.name)
    about = write_model(project, _run_of(project, args.run), args.out.expanduser().absolute())
    worst = max(about["largest_difference"].values())
    text = f"Written to {args.out}. Opened again, its files answer as the net does on {about['tried_on']} images"
    told = f"{text} (largest difference {worst:.1g})."
    return Outcome({"out": str(args.out), **about}, " ".join(filter(None, [told, about["left_out"]])))


COMMANDS.register("model")(Command("write a trained net to files of its own", _configure_model, _model))
COMMANDS.register("predict")(Command("label new images with a finished run", _configure, _predict))
