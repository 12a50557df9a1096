"""``finish``: from the labels to coresets, a map and a report, as the pages' button does."""

from __future__ import annotations

import argparse
from typing import Any

from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.finish import STAGES, FinishSettings, submit_finish
from semiprune_core.jobs import JobStatus, commands, follow, supervise
from semiprune_core.methods import METHODS
from semiprune_core.project.workspace import Project, Workspace


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument("--seed", type=int, default=0, help="of learning, scoring and selecting (default: 0)")
    parser.add_argument("--device", default="auto", help="cpu, cuda:0, mps ... (default: the fastest there is)")
    parser.add_argument("--background", action="store_true", help="queue it and return at once")


def _run(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    job = submit_finish(project, FinishSettings(seed=args.seed, device=args.device))
    if args.background:
        supervise(workspace)
        return Outcome(commands.summary(job), f"{job.title}: {job.id} ({job.status().state})")
    stage = ""

    def tell(status: JobStatus) -> None:
        nonlocal stage
        now = str(status.facts.get("step", ""))
        if now and now != stage:
            stage = now
            console.begin(STAGES[stage])
        share = status.fraction * len(STAGES) - list(STAGES).index(stage) if stage else 0.0
        console.report(round(100 * max(0.0, min(1.0, share))), 100, unit="%")

    follow(job, console, tell=tell)
    result = job.result() or {}
    return Outcome({"job": job.id, **result}, _text(project, result))


def _text(project: Project, result: dict[str, Any]) -> str:
    lines = []
    for name in result["artifacts"]["select"]:
        artifact = project.artifact(name)
        lines.append(
            f"{name}: {METHODS.title(artifact.settings['method'])}, ratio {artifact.settings['pruning_ratio']:g}, "
            f"{artifact.facts['n_kept']:,} images"
        )
    lines += result["notes"]
    seconds = result["seconds"]
    parts = ", ".join(f"{STAGES[stage].lower()} {seconds[stage]:.0f}" for stage in STAGES)
    lines.append(f"Finished in {sum(seconds.values()):.0f} s ({parts}).")
    lines.append(f"CSV files and {result['report']} are in {project.exports_folder}.")
    return "\n".join(lines)


COMMANDS.register("finish")(
    Command("learn, score, search, select, draw the map and write the report", _configure, _run)
)
