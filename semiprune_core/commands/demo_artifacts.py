"""``make demo-artifacts``: run the demo for real and pack it as the finished demo in ``assets/``.

    python -m semiprune_core.commands.demo_artifacts [--out DIR] [--no-evaluation]

The run stays in DIR (default ./build/demo); run it again to resume an interrupted one.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

from semiprune_core.commands.base import Console
from semiprune_core.demo import DemoSettings, Stage, claim_folder, run_demo
from semiprune_core.demo.finished import ARCHIVE, write_archive
from semiprune_core.errors import SemiPruneError
from semiprune_core.progress import Progress, Stopped

EVALUATION: dict[str, Any] = {
    "methods": ["full", "random", "semi_aum_cutoff", "semi_dual_beta"],
    "ratios": [0.3, 0.5, 0.7, 0.8, 0.9],
    "seeds": [0, 1, 2],
    "preset": "quick",
}
"""What the shipped evaluation compares."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Make the finished demo in assets/.")
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="the folder of the run")
    parser.add_argument("--to", type=Path, default=ARCHIVE, help="the archive to write")
    parser.add_argument("--evaluation", action=argparse.BooleanOptionalAction, default=True)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    settings = DemoSettings(evaluation=EVALUATION if args.evaluation else None)
    console = Console()
    console.catch_interrupts()

    def begin(stage: Stage, number: int, total: int) -> Progress:
        console.begin(f"[{number}/{total}] {stage.title}")
        return console

    try:
        result = run_demo(claim_folder(args.out.absolute(), settings), settings, begin)
        size = write_archive(result.project, args.to, settings=settings.to_json())
    except SemiPruneError as error:
        console.say(str(error))
        return 1
    except (Stopped, KeyboardInterrupt):
        console.say("Stopped. Run the same command to resume.")
        return 130
    console.say(f"{args.to}: {size / 1e6:.1f} MB.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
