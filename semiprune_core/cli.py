"""The command line: the same pipeline without a browser. Thin; the work is in ``semiprune_core.commands``."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence

from semiprune_core import __version__

INSTALL = "Install what is missing: pip install the wheel with its dependencies, or `make install` in the repository."


def build_parser() -> argparse.ArgumentParser:
    """The whole command line. Loads every command."""
    from semiprune_core.commands import COMMANDS

    parser = _bare_parser()
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in sorted(COMMANDS):
        command = COMMANDS[name]
        sentence = command.help[0].upper() + command.help[1:] + "."
        subparser = subparsers.add_parser(name, help=command.help, description=sentence)
        subparser.add_argument("--json", action="store_true", help="print the result as JSON")
        subparser.add_argument("--home", help="the workspace (default: SEMIPRUNE_HOME or ./workspace)")
        subparser.add_argument("--quiet", action="store_true", help="show no progress")
        command.configure(subparser)
    return parser


def _bare_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="semiprune", description="From a pool of unlabeled images to a coreset.")
    parser.add_argument("--version", action="version", version=f"semiprune {__version__}")
    return parser


def _answer_at_once(words: Sequence[str]) -> None:
    """Answer ``semiprune`` and ``semiprune --version`` without loading any command, then exit."""
    parser = _bare_parser()
    if not words:
        parser.usage = "semiprune COMMAND ..."
        parser.error("name a command. To list them: semiprune --help")
    if words[0] == "--version":
        parser.parse_args(words[:1])


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return 0 on success, 1 on a user error, 2 on wrong usage, 130 when interrupted."""
    _answer_at_once(sys.argv[1:] if argv is None else argv)
    try:
        return _run(argv)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "semiprune_core"):
            raise
        sys.stderr.write(f"semiprune: the package '{package}' is not installed. {INSTALL}\n")
        return 1


def _run(argv: Sequence[str] | None) -> int:
    from semiprune_core.accounts import CommandLine, accounts_of
    from semiprune_core.commands import COMMANDS, Console
    from semiprune_core.errors import SemiPruneError
    from semiprune_core.progress import Stopped
    from semiprune_core.project.private import close_to_others, keep_to_owner
    from semiprune_core.project.rights import acted_by
    from semiprune_core.project.workspace import Workspace
    from semiprune_core.registry import broken

    parser = build_parser()
    for left_out in broken():
        sys.stderr.write(f"semiprune: warning: {left_out.sentence}\n")
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    console = Console(quiet=args.quiet)
    console.catch_interrupts()
    command = COMMANDS[args.command]
    keep_to_owner()
    try:
        workspace = Workspace.open(args.home, make=command.makes_home)
        if workspace.root.is_dir() and (sentence := close_to_others(workspace)):
            sys.stderr.write(f"semiprune: {sentence}\n")
        accounts = accounts_of(workspace)
        with acted_by(CommandLine(accounts) if accounts.are_on else None):
            outcome = command.run(args, workspace, console)
    except SemiPruneError as error:
        if args.json:
            sys.stdout.write(json.dumps({"error": str(error), "code": error.code}) + "\n")
        sys.stderr.write(f"semiprune: {error}\n")
        return 1
    except (Stopped, KeyboardInterrupt):
        sys.stderr.write("semiprune: stopped.\n")
        return 130
    sys.stdout.write((json.dumps(outcome.value, ensure_ascii=False, default=str) if args.json else outcome.text) + "\n")
    return 1 if outcome.failed else 0
