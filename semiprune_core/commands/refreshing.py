"""``refresh``: rebuild whatever is out of date, as the pages' button does."""

from __future__ import annotations

import argparse

from semiprune_core import jobs, refresh
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.project.workspace import Workspace
from semiprune_core.refresh import freshness


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument("--plan", action="store_true", help="only show what is out of date, and why")
    parser.add_argument("--background", action="store_true", help="queue it and return at once")


def _refresh(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    stale = freshness.out_of_date(project)
    rows = [{"artifact": part.artifact.id, "kind": part.artifact.kind, "reason": part.reason} for part in stale]
    lines = [f"{part.artifact.id} ({part.title.lower()}): {part.reason}." for part in stale]
    if not stale:
        return Outcome({"out_of_date": [], "artifacts": {}}, "Everything is up to date.")
    if args.plan:
        return Outcome({"out_of_date": rows}, "\n".join(lines))
    job = refresh.bring_up_to_date(project)
    if args.background:
        jobs.supervise(workspace)
        return Outcome({"out_of_date": rows, "job": job.id}, f"Queued as {job.id}.")
    console.say("\n".join(lines))
    jobs.follow(job, console)
    rebuilt = (job.result() or {})["artifacts"]
    return Outcome(
        {"out_of_date": rows, "job": job.id, "artifacts": rebuilt}, f"Rebuilt: {', '.join(rebuilt.values())}."
    )


COMMANDS.register("refresh")(Command("rebuild whatever is out of date", _configure, _refresh))
