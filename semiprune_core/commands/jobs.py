"""``jobs``: background jobs from the command line."""

from __future__ import annotations

import argparse
from typing import Any

from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.errors import JobError
from semiprune_core.jobs import commands
from semiprune_core.project.workspace import Workspace


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "log", "stop", "resume"), help="what to do")
    parser.add_argument("id", nargs="?", help="a job's id; for log, stop and resume")
    parser.add_argument("--project", help="list the jobs of this project only")
    parser.add_argument("--lines", type=int, default=50, help="lines of the log (default: 50)")


def _run(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    if args.action == "list":
        found = commands.jobs_list(workspace, args.project)
        return Outcome(found, "\n".join(_line(job) for job in found) or "No jobs yet.")
    if not args.id:
        raise JobError(
            f"Which job? `semiprune jobs {args.action} ID`; `semiprune jobs list` shows their ids.", code="NO_JOB"
        )
    if args.action == "log":
        answer = commands.jobs_log(workspace, args.id, args.lines)
        return Outcome(answer, answer["log"] or "Nothing was logged yet.")
    act = commands.jobs_stop if args.action == "stop" else commands.jobs_resume
    job = act(workspace, args.id)
    asked = " It stops after its current step." if args.action == "stop" and job["state"] == "running" else ""
    return Outcome(job, _line(job) + asked)


def _line(job: dict[str, Any]) -> str:
    words = [job["id"], job["project"], job["title"], job["state"]]
    if job["total"]:
        words.append(f"{job['done']:,} of {job['total']:,}")
    if job["seconds_left"] is not None:
        words.append(f"{job['seconds_left']:.0f} s left")
    if job["message"] and job["state"] in ("failed", "lost"):
        words.append(job["message"])
    return "  ".join(words)


COMMANDS.register("jobs")(Command("list, read, stop and resume background jobs", _configure, _run))
