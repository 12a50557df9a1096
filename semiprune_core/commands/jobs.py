"""``jobs``: background jobs from the command line."""

from __future__ import annotations

import argparse
from typing import Any

from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.errors import JobError
from semiprune_core.jobs import commands
from semiprune_core.project.workspace import Workspace


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "log", "stop", "resume"), help="the action")
    parser.add_argument("id", nargs="?", help="the job's id, for log, stop and resume")
    parser.add_argument("--project", help="only list this project's jobs")
    parser.add_argument("--lines", type=int, default=50, help="how many lines of the log to show (default: 50)")


def _run(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    if args.action == "list":
        rows = commands.jobs_list(workspace, args.project)
        return Outcome(rows, "\n".join(_line(job) for job in rows) or "No jobs yet.")
    if not args.id:
        raise JobError(
            f"Which job? Run `semiprune jobs {args.action} ID`; `semiprune jobs list` shows the ids.", code="NO_JOB"
        )
    if args.action == "log":
        answer = commands.jobs_log(workspace, args.id, args.lines)
        return Outcome(answer, answer["log"] or "The log is empty.")
    act = commands.jobs_stop if args.action == "stop" else commands.jobs_resume
    job = act(workspace, args.id)
    note = " It stops after its current step." if args.action == "stop" and job["state"] == "running" else ""
    return Outcome(job, _line(job) + note)


def _line(job: dict[str, Any]) -> str:
    words = [job["id"], job["project"], job["title"], job["state"]]
    if job["total"]:
        words.append(f"{job['done']:,} of {job['total']:,}")
    if job["seconds_left"] is not None:
        words.append(f"{job['seconds_left']:.0f} s left")
    if job["message"] and job["state"] in ("failed", "lost"):
        words.append(job["message"])
    return "  ".join(words)


COMMANDS.register("jobs")(Command("list, stop and resume background jobs, or show their logs", _configure, _run))
