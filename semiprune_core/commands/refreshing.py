"""``refresh``: make everything again that is out of date, as the pages' button does."""

from __future__ import annotations

import argparse

from semiprune_core import jobs, refresh
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.project.workspace import Workspace
from semiprune_core.refresh import freshness


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument("--plan", action="store_true", help="only say what is out of date, and why")
    parser.add_argument("--background", action="store_true", help="queue it and return at once")


def _refresh(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    stale = freshness.out_of_date(project)
    found = [{"artifact": one.artifact.id, "kind": one.artifact.kind, "reason": one.reason} for one in stale]
    said = [f"{one.artifact.id} ({one.title.lower()}): {one.reason}." for one in stale]
    if not stale:
        return Outcome({"out_of_date": [], "artifacts": {}}, "Everything is up to date.")
    if args.plan:
        return Outcome({"out_of_date": found}, "\n".join(said))
    job = refresh.bring_up_to_date(project)
    if args.background:
        jobs.supervise(workspace)
        return Outcome({"out_of_date": found, "job": job.id}, f"Queued as {job.id}.")
    console.say("\n".join(said))
    jobs.follow(job, console)
    made = (job.result() or {})["artifacts"]
    return Outcome({"out_of_date": found, "job": job.id, "artifacts": made}, f"Made again: {', '.join(made.values())}.")


COMMANDS.register("refresh")(Command("make everything again that is out of date", _configure, _refresh))
