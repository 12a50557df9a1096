"""``demo``: the whole line on the bundled pool in one command."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.demo import DemoResult, DemoSettings, Stage, claim_folder, run_demo
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.methods import METHODS
from semiprune_core.progress import Progress, Stopped
from semiprune_core.project.workspace import Workspace

FOLDER = "semiprune-demo"


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, default=Path(FOLDER), metavar="DIR", help=f"a folder of its own (default: {FOLDER})"
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same CSV files (default: 0)")
    parser.add_argument("--algorithm", default=DemoSettings.algorithm, help=f"one of {', '.join(ALGORITHMS)}")
    parser.add_argument("--no-evaluation", action="store_true", help="leave out the trainings on coresets")


def _demo(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    settings = DemoSettings(seed=args.seed, algorithm=args.algorithm)
    if args.no_evaluation:
        settings = settings.replace(evaluation=None)
    out = args.out.expanduser().absolute()
    own = claim_folder(out, settings)

    def begin(stage: Stage, number: int, total: int) -> Progress:
        if console.should_stop():
            raise Stopped
        console.begin(f"[{number}/{total}] {stage.title}")
        return console

    try:
        result = run_demo(own, settings, begin)
    except Stopped:
        console.say(f"Stopped. What is done is kept in {out}; the same command goes on from there.")
        raise
    return Outcome(_value(result), _text(result))


def _value(result: DemoResult) -> dict[str, Any]:
    return {
        "folder": str(result.project.workspace.root),
        "project": result.project.name,
        "report": str(result.report),
        "coresets": [
            {
                "coreset": export.manifest["coreset"],
                "method": export.manifest["method"],
                "pruning_ratio": export.manifest["pruning_ratio"],
                **export.manifest["counts"],
                "files": export.to_json(),
            }
            for export in result.exports
        ],
        "stages": [
            {"stage": one.stage.key, "said": one.words, "seconds": round(one.seconds, 1)} for one in result.stages
        ],
    }


def _text(result: DemoResult) -> str:
    lines = [f"{one.stage.title}: {one.words} ({one.seconds:,.0f} s)." for one in result.stages]
    lines += ["", f"In {result.project.exports_folder}:"]
    for export in result.exports:
        said = export.manifest
        title = f"{METHODS.title(said['method'])} at {said['pruning_ratio']:g}"
        lines.append(f"  {title:<22} {said['counts']['n_kept']:>6,} images  {export.files['kept'].name}")
    lines += [
        f"The report: {result.report}",
        f"The same in the browser: SEMIPRUNE_HOME={result.project.workspace.root} make run",
    ]
    return "\n".join(lines)


COMMANDS.register("demo")(
    Command("run the whole line on the bundled pool, from images to coresets", _configure, _demo, makes_home=False)
)
