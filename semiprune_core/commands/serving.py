"""``serve`` and ``open``: the app from wherever it was installed, and the finished demo as a project."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from semiprune_core import jobs
from semiprune_core.checks import check_range
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.demo import finished
from semiprune_core.errors import MissingStepError
from semiprune_core.jobs.launch import own_modules
from semiprune_core.paths import studio_folder
from semiprune_core.project.workspace import HOME_VARIABLE, Workspace

DEMO = "demo"
OPENABLE = (DEMO,)


def _configure_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, metavar="P", help="default: 8501")
    parser.add_argument("--address", metavar="HOST", help="default: 127.0.0.1, this machine alone")
    parser.add_argument(
        "streamlit", nargs="*", metavar="-- OPTION", help="options of Streamlit, such as -- --server.baseUrlPath=studio"
    )


def _serve(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    """Run the app until it is stopped; on POSIX in the place of this process, so that signals reach it."""
    words, variables = serving(args.port, args.address, args.streamlit), {**os.environ, **own_modules()}
    variables[HOME_VARIABLE] = os.fspath(workspace.root)
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.execve(words[0], words, variables)
    return Outcome({}, "", failed=subprocess.call(words, env=variables) != 0)


def serving(port: int | None, address: str | None, more: list[str]) -> list[str]:
    """The words that start the app."""
    app = studio_folder() / "app.py"
    if not app.is_file():
        raise MissingStepError(
            f"The app is missing: there is no {app}. Install SemiPrune Studio again, or run this in the repository."
        )
    words = [sys.executable, "-m", "streamlit", "run", os.fspath(app)]
    if port is not None:
        check_range("--port", port, low=1, high=65535)
        words.append(f"--server.port={port}")
    if address is not None:
        words.append(f"--server.address={address}")
    return [*words, *more]


def _configure_open(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=OPENABLE, help="demo: the finished demo, every page filled by a real run")


def _open(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    job = finished.open_finished_demo(workspace)
    if job is not None:
        jobs.follow(job, console)
    value = {"project": finished.NAME, "folder": os.fspath(workspace.project(finished.NAME).folder), "new": bool(job)}
    was = "is a project now" if job else "was opened before"
    return Outcome(value, f"The finished demo {was}: {finished.NAME}. To look at it: semiprune serve")


COMMANDS.register("serve")(Command("serve the app and print the link to open", _configure_serve, _serve))
COMMANDS.register("open")(Command("open the finished demo as a project", _configure_open, _open))
