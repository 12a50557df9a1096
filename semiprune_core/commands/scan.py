"""``scan`` and ``duplicates``: what is odd in a pool, as counts and as CSV."""

from __future__ import annotations

import argparse
from pathlib import Path

from semiprune_core import files
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.scan import LEAST, ODDITIES, THRESHOLD, ScanRun, found_csv, grouped, groups_csv, scan


def _configure_scan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write the odd images as CSV, one row for each finding"
    )


def _scan(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    run = scan(project, console)
    found = {kind: len(positions) for kind, positions in run.odd().items()}
    if args.out:
        files.write_text(args.out, found_csv(project.everything(), run, list(found)))
    value = {"project": project.name, "artifact": run.artifact.id, "n_images": run.n_images, "found": found}
    words = ", ".join(f"{ODDITIES[kind].title.lower()} {count:,}" for kind, count in found.items())
    return Outcome(value, f"{run.n_images:,} images: {words}. Nothing was dropped.{_without_features(project, run)}")


def _configure_duplicates(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument(
        "--threshold", type=float, default=THRESHOLD, help=f"likeness from {LEAST:g} to 1 (default: {THRESHOLD:g})"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the groups as CSV, one row for each image")


def _duplicates(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    run, everything = scan(project, console), project.everything()
    groups = grouped(everything, run.groups(everything, args.threshold))
    if args.out:
        files.write_text(args.out, groups_csv(everything, groups))
    value = {
        "project": project.name,
        "artifact": run.artifact.id,
        "threshold": args.threshold,
        "n_images": run.n_images,
        "n_groups": len(groups.members),
        "n_near_duplicates": groups.n_spare,
        "n_across_splits": groups.n_across,
        "by_features": run.has_features,
    }
    across = f", {groups.n_across:,} of them across pool and tests" if groups.n_across else ""
    return Outcome(
        value,
        f"{groups.n_images:,} of {run.n_images:,} images are in {len(groups.members):,} groups of near-duplicates"
        f"{across}. "
        f"One of each would leave out {groups.n_spare:,}.{_without_features(project, run)}",
    )


def _without_features(project: Project, run: ScanRun) -> str:
    return "" if run.has_features else f" Features would show more: semiprune embed {project.name}"


COMMANDS.register("scan")(Command("find blurred, dark, blank, odd-sized and off-topic images", _configure_scan, _scan))
COMMANDS.register("duplicates")(Command("find near-duplicates, across splits too", _configure_duplicates, _duplicates))
