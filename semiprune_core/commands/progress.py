"""``progress``: how far labeling is, how good the labels so far are, and what more of them would bring."""

from __future__ import annotations

import argparse
from typing import Any

from semiprune_core import live
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.labeling import open_store
from semiprune_core.labeling.progress_report import progress
from semiprune_core.project.workspace import Workspace

PRIVATE = ("seq", "seconds", "behind", "detail")
"""Fields of a report that mean something to the page alone."""


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")


def _run(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    store = open_store(project)
    standing = progress(store)
    report = {name: value for name, value in live.report_now(project, store).items() if name not in PRIVATE}
    value: dict[str, Any] = {
        "project": project.name,
        "drawn": standing.n_drawn,
        "labeled": standing.labeled,
        "skipped": standing.skipped,
        "disputed": standing.disputed,
        "left": standing.left,
        "complete": standing.complete,
        "per_class": standing.per_class,
        "estimate": report,
    }
    lines = [standing.note, " ".join(filter(None, (_sentence(report["line"]), report.get("outlook", ""))))]
    return Outcome(value, "\n".join(lines))


def _sentence(line: str) -> str:
    return line if line.endswith(".") else f"{line}."


COMMANDS.register("progress")(
    Command("show how far labeling is, how good the labels so far are, and what more would bring", _configure, _run)
)
