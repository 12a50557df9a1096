"""``evaluate``: train on the coresets of several methods, test them, compare with Random; and the two studies."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import pandas as pd

from semiprune_core import jobs
from semiprune_core.artifacts import Artifact
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome, assignments
from semiprune_core.commands.selecting import follow, numbers, words
from semiprune_core.coresets import RATIOS, SAME_BUDGET_RATIOS
from semiprune_core.errors import InvalidSettingError
from semiprune_core.evaluation import ORDERS, RANDOM, TRUTHS, EvaluationSettings, submit_evaluation
from semiprune_core.evaluation_files import TEXT_NOTE, text_table
from semiprune_core.evaluation_runs import Evaluation
from semiprune_core.evaluation_view import EvaluationView, percent, summary
from semiprune_core.learning.presets import SSL_PRESETS, SUPERVISED_PRESETS
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.methods import METHODS
from semiprune_core.studies import BudgetSettings, StudyRun, budget_view, submit_budget_study
from semiprune_core.trials import FULL
from semiprune_core.workspace import Workspace

LABEL_BUDGET, SAME_BUDGET = "label-budget", "same-annotation-budget"
OF_THE_STUDY = ("budgets", "algorithm", "ssl_preset")
"""Arguments that only a label-budget study has."""


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument(
        "--methods",
        type=words,
        metavar="M,M,...",
        help=f"some of {', '.join(METHODS)} (default: {','.join(EvaluationSettings.methods)})",
    )
    parser.add_argument(
        "--ratios",
        type=numbers,
        metavar="R,R,...",
        help=f"default: {_joined(RATIOS)}; of the studies: {_joined(BudgetSettings.ratios)} ({LABEL_BUDGET}), "
        f"{_joined(SAME_BUDGET_RATIOS)} ({SAME_BUDGET})",
    )
    parser.add_argument("--seeds", type=int, default=3, metavar="K", help="trainings per cell (default: 3)")
    parser.add_argument("--preset", default="quick", help=f"{', '.join(SUPERVISED_PRESETS)} (default: quick)")
    parser.add_argument("--epochs", type=int, help="instead of the preset's")
    parser.add_argument(
        "--evidence",
        action="append",
        default=[],
        metavar="[METHOD.]KEY=VALUE",
        help="a setting of what baselines look at, such as encoder=timm:... or elfs_self.preset=paper; repeatable",
    )
    parser.add_argument(
        "--truth", choices=TRUTHS, help="labels to train on (default: reference, else people's; pseudo only if asked)"
    )
    study = parser.add_mutually_exclusive_group()
    study.add_argument(
        "--study",
        choices=(LABEL_BUDGET, SAME_BUDGET),
        help=f"{LABEL_BUDGET}: everything again with fewer or more labels; {SAME_BUDGET}: human labels are in first "
        "and count",
    )
    study.add_argument(
        "--same-annotation-budget",
        action="store_const",
        const=SAME_BUDGET,
        dest="study",
        help=f"the same as --study {SAME_BUDGET}",
    )
    parser.add_argument(
        "--budgets",
        type=numbers,
        metavar="B,B,...",
        help=f"of --study {LABEL_BUDGET}: shares of the pool that count as labeled (default: "
        f"{_joined(BudgetSettings.budgets)})",
    )
    parser.add_argument(
        "--algorithm", help=f"of --study {LABEL_BUDGET}: {', '.join(ALGORITHMS)} (default: {BudgetSettings.algorithm})"
    )
    parser.add_argument(
        "--ssl-preset",
        help=f"of --study {LABEL_BUDGET}: {', '.join(SSL_PRESETS)} (default: {BudgetSettings.ssl_preset})",
    )
    parser.add_argument(
        "--full-data", action=argparse.BooleanOptionalAction, default=True, help="train on the whole pool too"
    )
    parser.add_argument(
        "--order",
        choices=ORDERS,
        help="cheap_first (default): small coresets, and a first seed of all; as_given: one method after the other",
    )
    parser.add_argument("--device", default="auto", help="auto (default), cpu, cuda:0, ...")
    parser.add_argument("--background", action="store_true", help="queue it and return at once")


def _joined(values: tuple[float, ...]) -> str:
    return ",".join(f"{value:g}" for value in values)


def _evaluate(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    _check(args)
    if args.study == LABEL_BUDGET:
        job = submit_budget_study(project, _study_settings(args), device=args.device)
    else:
        job = submit_evaluation(project, _settings(args), device=args.device)
    if args.background:
        jobs.supervise(workspace)
        return Outcome({"job": job.id, "state": job.status().state}, f"Queued as {job.id}.")
    follow(job, console)
    result = job.result() or {}
    artifact = project.artifact(result["artifact"])
    value, text = (_study_told if args.study == LABEL_BUDGET else _told)(artifact)
    return Outcome({"job": job.id, **result, **value}, text)


def _check(args: argparse.Namespace) -> None:
    """What argparse lets through and the settings do not see."""
    if args.seeds < 1:
        raise InvalidSettingError(f"--seeds must be at least 1, got {args.seeds}.")
    if args.study == LABEL_BUDGET:
        if not args.full_data:
            raise InvalidSettingError("A label-budget study trains on the whole pool too; leave --no-full-data out.")
        if args.order is not None:
            raise InvalidSettingError("A label-budget study goes budget by budget; leave --order out.")
        return
    for name in OF_THE_STUDY:
        if getattr(args, name) is not None:
            raise InvalidSettingError(f"--{name.replace('_', '-')} belongs to --study {LABEL_BUDGET}.")


def _settings(args: argparse.Namespace) -> EvaluationSettings:
    asked = args.methods if args.methods is not None else EvaluationSettings.methods
    same = args.study == SAME_BUDGET
    return EvaluationSettings(
        methods=(
            *((FULL,) if args.full_data or FULL in asked else ()),
            *(method for method in asked if method != FULL),
        ),
        ratios=args.ratios if args.ratios is not None else SAME_BUDGET_RATIOS if same else RATIOS,
        seeds=tuple(range(args.seeds)),
        preset=args.preset,
        epochs=args.epochs,
        truth=args.truth,
        order=args.order or EvaluationSettings.order,
        same_annotation_budget=same,
        evidence=_evidence(args),
    )


def _evidence(args: argparse.Namespace) -> dict[str, Any]:
    """Settings of what baselines look at: for all by name, for one behind its name and a dot."""
    found: dict[str, Any] = {}
    for key, value in assignments("--evidence", args.evidence, "encoder=pixels").items():
        method, dot, name = key.partition(".")
        if dot and method in METHODS:
            found.setdefault(method, {})[name] = value
        else:
            found[key] = value
    return found


def _study_settings(args: argparse.Namespace) -> BudgetSettings:
    """Random and the full data are always part of the study, so they may be named and need not be."""
    asked = {
        "budgets": args.budgets and tuple(sorted(args.budgets)),
        "methods": args.methods and tuple(method for method in args.methods if method not in (RANDOM, FULL)),
        "ratios": args.ratios and tuple(sorted(args.ratios)),
        "algorithm": args.algorithm,
        "ssl_preset": args.ssl_preset,
    }
    return BudgetSettings(
        seeds=tuple(range(args.seeds)),
        preset=args.preset,
        training={} if args.epochs is None else {"epochs": args.epochs},
        truth=args.truth,
        **{name: value for name, value in asked.items() if value is not None},
    )


# --- what is said --------------------------------------------------------------------------------------------------


def _told(artifact: Artifact) -> tuple[dict[str, Any], str]:
    """An evaluation for ``--json`` and for people, as the page has it."""
    view, facts = Evaluation(artifact.settings, artifact=artifact).view(), artifact.facts
    lines = [*_sentences(view), "", text_table(view), TEXT_NOTE, *(f"Note: {note}" for note in view.notes), ""]
    lines.append(f"{artifact.id}: trained on {facts['truth']} labels. {facts['test_words']}")
    return _seen(view, "pruning_ratio"), "\n".join(lines)


def _study_told(artifact: Artifact) -> tuple[dict[str, Any], str]:
    """A label-budget study ratio by ratio, the highest first as on the page, then how right the pseudo-labels were."""
    run, asked, facts = StudyRun(artifact), artifact.settings, artifact.facts
    trials, lines, seen = run.trials(), [], []
    for ratio in sorted(asked["ratios"], reverse=True):
        view = budget_view(trials, ratio, methods=asked["methods"], budgets=asked["budgets"])
        lines += [*_sentences(view), "", text_table(view), ""]
        seen.append({"pruning_ratio": ratio, **_seen(view, "label_budget")})
    lines += [TEXT_NOTE, "", *map(_stage, run.stages()), ""]
    lines.append(f"{artifact.id}: trained on {facts['truth']} labels. Tested on {facts['n_test']:,} images.")
    return {"ratios": seen, "budgets": run.stages()}, "\n".join(lines)


def _sentences(view: EvaluationView) -> list[str]:
    return [line for line in (view.sentence(), view.rivals_sentence()) if line]


def _stage(stage: Mapping[str, Any]) -> str:
    n = stage["n_labels"]
    said = f"{percent(stage['budget'])} ({n:,} label{'s' if n != 1 else ''})"
    if "problem" in stage:
        return f"{said} was left out: {stage['problem']}"
    right = f"{stage['pseudo_accuracy']:.1%} right" if stage["pseudo_accuracy"] is not None else "none needed"
    return f"{said}: pseudo-labels {right}, after {stage['ssl_minutes']:.1f} min of semi-supervised training."


def _seen(view: EvaluationView, column: str) -> dict[str, Any]:
    """The sentence and the table for ``--json``: the columns of the page's Means CSV, null where there is none.

    ``column`` is what the view's columns are.
    """
    rows = summary(view).rename(columns={"pruning_ratio": column}).to_dict("records")
    known = [{name: None if pd.isna(value) else value for name, value in row.items()} for row in rows]
    return {"sentence": view.sentence(), "rivals": view.rivals_sentence(), "table": known}


COMMANDS.register("evaluate")(Command("train on coresets and test them, over methods and seeds", _configure, _evaluate))
