"""``search``: which cutoff, or which T and c_D, suits this pool at each pruning ratio."""

from __future__ import annotations

import argparse

from semiprune_core import jobs
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.commands.selecting import numbers
from semiprune_core.coresets import CoresetRequest, own_evidence
from semiprune_core.errors import InvalidSettingError
from semiprune_core.jobs import follow
from semiprune_core.learning.presets import SUPERVISED_PRESETS
from semiprune_core.methods import METHODS
from semiprune_core.project.workspace import Workspace
from semiprune_core.results.score_source import has_own_evidence
from semiprune_core.results.search import OVER, SearchRun, searchable_methods, searched_knob, starts
from semiprune_core.search import plan_search, search_settings, submit_search
from semiprune_core.selection.defaults import PAPER_RATIOS
from semiprune_core.trials import TESTED_BY, TESTS


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument(
        "--method", default="semi_aum_cutoff", help=f"{', '.join(searchable_methods())} (default: semi_aum_cutoff)"
    )
    parser.add_argument(
        "--ratios", type=numbers, default=PAPER_RATIOS, metavar="R,R,...", help="default: 0.3,0.5,0.7,0.8,0.9"
    )
    parser.add_argument("--seeds", type=int, metavar="K", help="runs per value (default: 5 with probes, else 2)")
    parser.add_argument(
        "--test",
        choices=tuple(TESTS),
        help="what a trial is: a probe on features (default where there are any), a fine-tuned net, a net from scratch",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--full", action="store_true", help="train for the full schedule (default on a GPU)")
    length.add_argument("--cheap", action="store_true", help="train for half the schedule (default on a CPU)")
    parser.add_argument("--preset", help=f"{', '.join(SUPERVISED_PRESETS)} (default: the dynamics run's)")
    parser.add_argument("--epochs", type=int, help="length of the full schedule (default: the preset's)")
    parser.add_argument(
        "--start", metavar="paper:SET", help=f"only try the paper's values and their neighbours: {', '.join(starts())}"
    )
    parser.add_argument("--device", default="auto", help="auto (default), cpu, cuda:0, ...")
    parser.add_argument("--background", action="store_true", help="queue it and return at once")


def _search(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    if args.seeds is not None and args.seeds < 1:
        raise InvalidSettingError(f"--seeds must be at least 1, got {args.seeds}.")
    if searched_knob(args.method) and has_own_evidence(args.method):  # a baseline's: computed now if it is missing
        own_evidence(project, CoresetRequest(method=args.method), console, device=args.device)
    settings = search_settings(
        project,
        method=args.method,
        ratios=args.ratios,
        test=args.test,
        cheap=False if args.full else True if args.cheap else None,
        preset=args.preset,
        start=args.start,
        device=args.device,
        training={} if args.epochs is None else {"epochs": args.epochs},
    )
    if args.seeds is not None:
        settings = settings.replace(seeds=tuple(range(args.seeds)))
    plan = plan_search(project, settings)
    job = submit_search(project, settings, device=args.device)
    summary = f"{plan.n_trials} trials, {settings.in_words}"
    if args.background:
        jobs.supervise(workspace)
        value = {"job": job.id, "state": job.status().state, "n_trials": plan.n_trials, "test": settings.test}
        value["cheap"] = settings.cheap
        return Outcome(value, f"Queued as {job.id}: {summary}.")
    console.say(f"{METHODS.title(settings.method)}: {summary}.")
    follow(job, console)
    run = SearchRun(project.artifact((job.result() or {})["artifact"]))
    value = {"job": job.id, **(job.result() or {}), "n_trials": run.artifact.facts["n_trials"], "test": settings.test}
    value["cheap"] = settings.cheap
    lines = [f"Ratio {best.pruning_ratio:g}: {best.sentence}" for best in run.best]
    lines.append(
        f"{run.artifact.id}, compared on {run.artifact.facts['n_compared']:,} held-out pseudo-labels by "
        f"{TESTED_BY[settings.test]}. "
        "These values are now the defaults of `semiprune select` and the Select page."
    )
    lines += [OVER] if len(settings.seeds) > 1 else []
    return Outcome(value, "\n".join(lines))


COMMANDS.register("search")(Command("find the best cutoff or c_D for each pruning ratio", _configure, _search))
