"""``evaluate``: train on the coresets of several methods, test them, compare with Random."""

from __future__ import annotations

import argparse
from typing import Any

import pandas as pd

from semiprune_core import jobs
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.commands.selecting import follow, numbers, words
from semiprune_core.coresets import RATIOS
from semiprune_core.errors import InvalidSettingError
from semiprune_core.evaluation import ORDERS, TRUTHS, EvaluationSettings, submit_evaluation
from semiprune_core.evaluation_files import TEXT_NOTE, text_table
from semiprune_core.evaluation_runs import Evaluation
from semiprune_core.evaluation_view import EvaluationView, summary
from semiprune_core.learning.presets import SUPERVISED_PRESETS
from semiprune_core.methods import METHODS
from semiprune_core.trials import FULL
from semiprune_core.workspace import Workspace


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument(
        "--methods",
        type=words,
        default=EvaluationSettings.methods,
        metavar="M,M,...",
        help=f"some of {', '.join(METHODS)} (default: {','.join(EvaluationSettings.methods)})",
    )
    parser.add_argument(
        "--ratios", type=numbers, default=RATIOS, metavar="R,R,...", help="default: 0.3,0.5,0.7,0.8,0.9"
    )
    parser.add_argument("--seeds", type=int, default=3, metavar="K", help="trainings per cell (default: 3)")
    parser.add_argument("--preset", default="quick", help=f"{', '.join(SUPERVISED_PRESETS)} (default: quick)")
    parser.add_argument("--epochs", type=int, help="instead of the preset's")
    parser.add_argument(
        "--truth", choices=TRUTHS, help="labels to train on (default: reference, else people's; pseudo only if asked)"
    )
    parser.add_argument("--same-annotation-budget", action="store_true", help="human labels are in first and count")
    parser.add_argument(
        "--full-data", action=argparse.BooleanOptionalAction, default=True, help="train on the whole pool too"
    )
    parser.add_argument(
        "--order",
        choices=ORDERS,
        default=EvaluationSettings.order,
        help="cheap_first (default): small coresets, and a first seed of all; as_given: one method after the other",
    )
    parser.add_argument("--device", default="auto", help="auto (default), cpu, cuda:0, ...")
    parser.add_argument("--background", action="store_true", help="queue it and return at once")


def _evaluate(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    if args.seeds < 1:
        raise InvalidSettingError(f"--seeds must be at least 1, got {args.seeds}.")
    methods = tuple(method for method in args.methods if method != FULL)
    settings = EvaluationSettings(
        methods=(*((FULL,) if args.full_data or FULL in args.methods else ()), *methods),
        ratios=args.ratios,
        seeds=tuple(range(args.seeds)),
        preset=args.preset,
        epochs=args.epochs,
        truth=args.truth,
        order=args.order,
        same_annotation_budget=args.same_annotation_budget,
    )
    job = submit_evaluation(project, settings, device=args.device)
    if args.background:
        jobs.supervise(workspace)
        return Outcome({"job": job.id, "state": job.status().state}, f"Queued as {job.id}.")
    follow(job, console)
    result = job.result() or {}
    artifact = project.artifact(result["artifact"])
    view, facts = Evaluation(artifact.settings, artifact=artifact).view(), artifact.facts
    told = [view.sentence(), "", text_table(view), TEXT_NOTE, *(f"Note: {note}" for note in view.notes), ""]
    told.append(f"{artifact.id}: trained on {facts['truth']} labels. {facts['test_words']}")
    return Outcome({"job": job.id, **result, **_seen(view)}, "\n".join(told))


def _seen(view: EvaluationView) -> dict[str, Any]:
    """The sentence and the table for ``--json``: the columns of the page's Means CSV, null where there is none."""
    rows = summary(view).to_dict("records")
    known = [{name: None if pd.isna(value) else value for name, value in row.items()} for row in rows]
    return {"sentence": view.sentence(), "table": known}


COMMANDS.register("evaluate")(Command("train on coresets and test them, over methods and seeds", _configure, _evaluate))
