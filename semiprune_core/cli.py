"""The command line: the same pipeline without a browser. Thin; the work is in ``semiprune_core.commands``."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence

from semiprune_core import __version__


def build_parser() -> argparse.ArgumentParser:
    from semiprune_core.commands import COMMANDS

    parser = argparse.ArgumentParser(prog="semiprune", description="From a pool of unlabeled images to a coreset.")
    parser.add_argument("--version", action="version", version=f"semiprune {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in sorted(COMMANDS):
        command = COMMANDS[name]
        one = commands.add_parser(name, help=command.help, description=command.help[0].upper() + command.help[1:] + ".")
        one.add_argument("--json", action="store_true", help="print the result as JSON")
        one.add_argument("--home", help="the workspace (default: SEMIPRUNE_HOME or ./workspace)")
        one.add_argument("--quiet", action="store_true", help="show no progress")
        command.configure(one)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it went well, 1 on an error of the input, 2 on wrong usage, 130 when interrupted."""
    from semiprune_core.commands import COMMANDS, Console
    from semiprune_core.errors import SemiPruneError
    from semiprune_core.progress import Stopped
    from semiprune_core.project.workspace import Workspace

    args = build_parser().parse_args(argv)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    console = Console(quiet=args.quiet)
    console.catch_interrupts()
    command = COMMANDS[args.command]
    try:
        workspace = Workspace.open(args.home, make=command.makes_home)
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
