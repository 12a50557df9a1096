"""``new``, ``projects``, ``verify``, ``restore``: create projects, list them, check what they hold, restore it."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from semiprune_core import jobs, steps
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.copies import restore
from semiprune_core.errors import InvalidSettingError, SemiPruneError, WorkspaceError
from semiprune_core.exporting.verify import first_difference, verify
from semiprune_core.importing import ImportSettings, import_source, queue_features, usual_fit
from semiprune_core.importing.allowing import allow_named, place_of
from semiprune_core.importing.corruptions import MILD, SEVERITIES
from semiprune_core.importing.sources import SOURCES, parse_source, takes_folder_labels
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.importing.sources.layout import AUTO, FOLDER_LABELS
from semiprune_core.labeling import open_store
from semiprune_core.labeling.events import REFERENCE
from semiprune_core.labeling.import_labels import adopt_reference
from semiprune_core.paths import shown
from semiprune_core.project.pool import SIZES, PoolSettings
from semiprune_core.project.workspace import Project, Workspace, slug_of


def _configure_new(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the new project's name")
    parser.add_argument(
        "--from",
        dest="source",
        required=True,
        metavar="SOURCE",
        help="a folder, a ZIP, a CSV or Parquet table, an .npz, JSON of COCO, FiftyOne or Label Studio, hf:FOLDER, "
        "torchvision:NAME, demo, clipart, "
        f"or SOURCE:LOCATION with one of {SOURCES.listed()}",
    )
    parser.add_argument(
        "--root", help="the folder of a torchvision data set, or below which a table's or annotations' paths lie"
    )
    parser.add_argument(
        "--labels",
        choices=(REFERENCE, "human"),
        default=REFERENCE,
        help="what labels of the source are: a reference to compare with, or human labels to learn from "
        "(default: reference)",
    )
    parser.add_argument("--annotator", default="source", help="with --labels human: who gave them (default: source)")
    parser.add_argument(
        "--size", type=int, choices=SIZES, help="side of the training copies (default: chosen from the images)"
    )
    parser.add_argument(
        "--channels", type=int, choices=(1, 3), help="1 grey, 3 colour (default: chosen from the images)"
    )
    parser.add_argument(
        "--fit", choices=("crop", "pad", "stretch"), help="how to make images square (default: crop; clip art: pad)"
    )
    parser.add_argument(
        "--corrupt", type=float, metavar="SHARE", help="corrupt this share of the pool (0.3 in the paper)"
    )
    parser.add_argument(
        "--severity",
        choices=tuple(SEVERITIES),
        default=MILD,
        help="how badly --corrupt does it: mild, or as in the paper (default: mild)",
    )
    parser.add_argument(
        "--longtail",
        type=float,
        metavar="FACTOR",
        help="shrink classes exponentially, the smallest to this share of the largest (0.1 and 0.01 in the paper)",
    )
    parser.add_argument("--variant-seed", type=int, default=0, help="seed of --corrupt and --longtail (default: 0)")
    parser.add_argument(
        "--folder-labels",
        choices=FOLDER_LABELS,
        default=AUTO,
        help="whether names of folders are reference labels: all but dates and a camera's (auto, default), all, none",
    )
    parser.add_argument(
        "--no-features", action="store_true", help="compute no features in the background, now or after more images"
    )
    parser.add_argument("--workers", type=int, default=0, help="decoding processes (default: one per core)")


def _spec(args: argparse.Namespace) -> SourceSpec:
    spec = parse_source(args.source)
    options = {**spec.options, **({"root": args.root} if args.root else {})}
    if args.folder_labels != AUTO:
        if not takes_folder_labels(spec):
            raise InvalidSettingError(f"--folder-labels is for folders and ZIP archives, not for {spec.kind}.")
        options["folder_labels"] = args.folder_labels
    variants = []
    if args.longtail is not None:
        variants.append({"name": "longtail", "factor": args.longtail, "seed": args.variant_seed})
    if args.corrupt is not None:
        variants.append(
            {"name": "corrupt", "share": args.corrupt, "seed": args.variant_seed, "severity": args.severity}
        )
    return SourceSpec(spec.kind, spec.location, options, tuple(variants))


def _new(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    spec = _spec(args)
    fit, pool = args.fit or usual_fit(spec.kind), None
    if args.size or args.channels:
        pool = PoolSettings(size=args.size or 32, channels=args.channels or 3, fit=fit).to_json()
    allowed = allow_named(workspace, place_of(spec))
    if spec.options.get("root"):  # a table or annotations may lie elsewhere than their images
        allow_named(workspace, place_of(SourceSpec(spec.kind, spec.location)))
    settings = ImportSettings(source=spec.to_json(), pool=pool, fit=fit, n_workers=args.workers)
    project = workspace.create(args.name, name=slug_of(args.name))
    try:
        artifact = import_source(project, settings, console)
        adopted = _adopt(workspace.project(project.name), args.annotator, console) if args.labels != REFERENCE else 0
    except BaseException:
        shutil.rmtree(project.folder)  # a project that never had images leaves nothing behind
        raise
    features = queue_features(workspace.project(project.name), False if args.no_features else None)
    jobs.supervise(workspace)  # starts it; nothing waits for it
    facts = artifact.facts
    n_pool = len(workspace.project(project.name).pool())
    text = f"Project '{project.name}': {n_pool:,} images to prune, {facts['n_images'] - n_pool:,} for testing"
    if facts["n_problems"]:
        text += f", {facts['n_problems']:,} files could not be used (listed on the Pool page and in problems.parquet)"
    value = {"project": project.name, "folder": str(project.folder), "artifact": artifact.id, **facts}
    value["features_job"] = features.id if features else None
    value["human_labels"] = adopted
    if adopted:
        text += f"; {adopted:,} labels taken as given by {args.annotator}"
    value["allowed"] = str(allowed) if allowed else None
    text += "." + (" Features follow in the background." if features else "")
    return Outcome(value, text + (f" {allowed} may be read by the app from now on." if allowed else ""))


def _adopt(project: Project, annotator: str, console: Console) -> int:
    """Take the source's labels as human ones; how many."""
    return adopt_reference(open_store(project), project.pool(), annotator=annotator, progress=console).n_saved


def _projects(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    rows: list[dict[str, object]] = []
    lines = []
    for name in workspace.names():
        try:
            project = workspace.project(name)
            places = steps.standing(project)
        except SemiPruneError as error:
            rows.append({"name": name, "error": str(error)})
            lines.append(f"{name}: {error}")
            continue
        done = [place.step.key for place in places if place.state == "done"]
        following = steps.next_step(project)
        n_images = len(project.pool()) if project.has_pool() else 0
        rows.append({"name": name, "title": project.title, "images": n_images, "done": done, "next": following.key})
        lines.append(f"{name}: {n_images:,} images, done: {', '.join(done) or 'nothing'}, next: {following.key}")
    return Outcome(rows, "\n".join(lines) or "No projects yet. Create one: semiprune new NAME --from demo")


def _configure_verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, help="a project's name or folder, an artifact's folder, or an export")
    parser.add_argument("--skip-images", action="store_true", help="do not read the original images")


def _verify(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    path = workspace.root / str(args.path) if str(args.path) in workspace else args.path
    if not os.path.exists(path):
        raise WorkspaceError(
            f"There is nothing at {shown(str(path))}. Name a project, an artifact's folder or an export."
        )
    checks = verify(path, console, images=not args.skip_images)
    first = first_difference(checks)
    value = {"ok": first is None, "checked": list(checks), "differences": {k: v for k, v in checks.items() if v}}
    if first is None:
        return Outcome(value, f"Verified: {len(checks)} of {len(checks)} are as they were written.")
    return Outcome(value, f"Differs. {first}.", failed=True)


def _configure_restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the damaged project")


def _restore(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    done = restore(workspace, args.name)
    return Outcome({"project": args.name, "restored": done}, "\n".join(done))


COMMANDS.register("new")(Command("create a project from images", _configure_new, _new))
COMMANDS.register("projects")(Command("list the projects and how far each has come", lambda parser: None, _projects))
COMMANDS.register("verify")(Command("check labels, artifacts and exports for damage", _configure_verify, _verify))
COMMANDS.register("restore")(Command("restore a damaged project from its backups", _configure_restore, _restore))
