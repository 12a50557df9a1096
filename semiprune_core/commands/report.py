"""``report``: the project as one page to send."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from semiprune_core import files
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.project.workspace import Workspace
from semiprune_core.report import write_report


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also copy it to FILE")


def _report(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    path = write_report(workspace.project(args.name), console)
    if args.out is not None:
        with files.named_disk_errors(args.out):
            args.out.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "rb") as source, files.open_atomic(args.out) as file:
            shutil.copyfileobj(source, file)
        path = args.out
    return Outcome({"report": str(path), "sha256": files.sha256_file(path)}, f"Wrote {path}.")


COMMANDS.register("report")(Command("write a project's report as one HTML file", _configure, _report))
