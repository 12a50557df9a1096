"""``demo``: the whole pipeline on the bundled pool in one command."""

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
        "--out", type=Path, default=Path(FOLDER), metavar="DIR", help=f"the output folder (default: {FOLDER})"
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same CSV files (default: 0)")
    parser.add_argument(
        "--algorithm",
        default=DemoSettings.algorithm,
        help=f"{', '.join(ALGORITHMS)} (default: {DemoSettings.algorithm})",
    )
    parser.add_argument("--no-evaluation", action="store_true", help="do not train on the coresets")


def _demo(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    settings = DemoSettings(seed=args.seed, algorithm=args.algorithm)
    if args.no_evaluation:
        settings = settings.replace(evaluation=None)
    out = args.out.expanduser().absolute()
    demo_workspace = claim_folder(out, settings)

    def begin(stage: Stage, number: int, total: int) -> Progress:
        if console.should_stop():
            raise Stopped
        console.begin(f"[{number}/{total}] {stage.title}")
        return console

    try:
        result = run_demo(demo_workspace, settings, begin)
    except Stopped:
        console.say(f"Stopped. Finished stages are in {out}; run the same command to resume.")
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
            {"stage": done.stage.key, "said": done.words, "seconds": round(done.seconds, 1)} for done in result.stages
        ],
    }


def _text(result: DemoResult) -> str:
    lines = [f"{done.stage.title}: {done.words} ({done.seconds:,.0f} s)." for done in result.stages]
    lines += ["", f"Coresets in {result.project.exports_folder}:"]
    for export in result.exports:
        manifest = export.manifest
        title = f"{METHODS.title(manifest['method'])} at {manifest['pruning_ratio']:g}"
        lines.append(f"  {title:<22} {manifest['counts']['n_kept']:>6,} images  {export.files['kept'].name}")
    lines += [
        f"Report: {result.report}",
        f"Open it in the browser: SEMIPRUNE_HOME={result.project.workspace.root} make run",
    ]
    return "\n".join(lines)


COMMANDS.register("demo")(Command("run the whole pipeline on the bundled pool", _configure, _demo, makes_home=False))
