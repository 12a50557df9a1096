"""``evaluate``: train on the coresets of several methods, test, compare with Random; and ready-made studies."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import pandas as pd

from semiprune_core import jobs
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome, assignments
from semiprune_core.commands.selecting import numbers, words
from semiprune_core.coresets import RATIOS, SAME_BUDGET_RATIOS
from semiprune_core.errors import InvalidSettingError
from semiprune_core.evaluation import ORDERS, RANDOM, TRUTHS, EvaluationSettings, matching_test, submit_evaluation
from semiprune_core.evaluation.files import TEXT_NOTE, text_table
from semiprune_core.evaluation.runs import WARNINGS, Evaluation
from semiprune_core.evaluation.studies import (
    AXES,
    LABEL_BUDGET,
    POOL_SIZE,
    SETTINGS,
    Axis,
    BudgetSettings,
    SizeSettings,
    StudySettings,
    submit_study,
)
from semiprune_core.evaluation.study_view import StudyRun, full_by_share, share_view, trend_sentence
from semiprune_core.evaluation.view import EvaluationView, percent, summary
from semiprune_core.jobs import follow
from semiprune_core.learning.presets import SSL_PRESETS, SUPERVISED_PRESETS
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.methods import METHODS
from semiprune_core.project.artifacts import Artifact
from semiprune_core.project.workspace import Workspace
from semiprune_core.results.search import OVER
from semiprune_core.trials import FULL, SCRATCH, TESTS

SAME_BUDGET = "same-annotation-budget"
STUDIES: dict[str, Axis] = {axis.kind.replace("_", "-"): axis for axis in AXES.values()}
"""The studies along an axis, by their names for ``--study``."""
BUDGET, SIZE = STUDIES
OF_STUDIES = {
    "budgets": (LABEL_BUDGET,),
    "sizes": (POOL_SIZE,),
    "labeled": (POOL_SIZE,),
    "algorithm": tuple(AXES.values()),
    "ssl_preset": tuple(AXES.values()),
}
"""Arguments that only some studies take."""


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument(
        "--methods",
        type=words,
        metavar="M,M,...",
        help=f"from {', '.join(METHODS)} (default: {','.join(EvaluationSettings.methods)})",
    )
    parser.add_argument(
        "--ratios",
        type=numbers,
        metavar="R,R,...",
        help=f"default: {_joined(RATIOS)}; for studies: {_joined(StudySettings.ratios)} ({BUDGET}, {SIZE}), "
        f"{_joined(SAME_BUDGET_RATIOS)} ({SAME_BUDGET})",
    )
    parser.add_argument("--seeds", type=int, default=3, metavar="K", help="runs per method and ratio (default: 3)")
    parser.add_argument(
        "--test",
        choices=tuple(TESTS),
        help="the test: a probe on features, a fine-tuned net, or a net from scratch (default: as the scores)",
    )
    parser.add_argument("--preset", default="quick", help=f"{', '.join(SUPERVISED_PRESETS)} (default: quick)")
    parser.add_argument("--epochs", type=int, help="default: the preset's")
    parser.add_argument(
        "--evidence",
        action="append",
        default=[],
        metavar="[METHOD.]KEY=VALUE",
        help="a baseline's setting, such as encoder=timm:... or elfs_self.preset=paper; repeatable",
    )
    parser.add_argument(
        "--truth", choices=TRUTHS, help="labels to train on (default: reference labels, or human labels without them)"
    )
    study = parser.add_mutually_exclusive_group()
    study.add_argument(
        "--study",
        choices=(*STUDIES, SAME_BUDGET),
        help=f"{BUDGET}: repeat everything with fewer or more labels; {SIZE}: repeat everything on parts of the pool; "
        f"{SAME_BUDGET}: keep human-labeled images first and count them",
    )
    study.add_argument(
        "--same-annotation-budget",
        action="store_const",
        const=SAME_BUDGET,
        dest="study",
        help=f"short for --study {SAME_BUDGET}",
    )
    parser.add_argument(
        "--budgets",
        type=numbers,
        metavar="B,B,...",
        help=f"with --study {BUDGET}: labeled shares of the pool (default: {_joined(BudgetSettings.budgets)})",
    )
    parser.add_argument(
        "--sizes",
        type=numbers,
        metavar="S,S,...",
        help=f"with --study {SIZE}: sizes as shares of the pool (default: {_joined(SizeSettings.sizes)})",
    )
    parser.add_argument(
        "--labeled",
        type=float,
        metavar="L",
        help=f"with --study {SIZE}: labeled share of each size (default: {SizeSettings.labeled:g})",
    )
    both = f"with --study {BUDGET} or {SIZE}"
    parser.add_argument("--algorithm", help=f"{both}: {', '.join(ALGORITHMS)} (default: {StudySettings.algorithm})")
    parser.add_argument("--ssl-preset", help=f"{both}: {', '.join(SSL_PRESETS)} (default: {StudySettings.ssl_preset})")
    parser.add_argument(
        "--full-data", action=argparse.BooleanOptionalAction, default=True, help="also train on the whole pool"
    )
    parser.add_argument(
        "--order",
        choices=ORDERS,
        help="cheap_first (default): small coresets and first seeds come first; as_given: one method after another",
    )
    parser.add_argument("--device", default="auto", help="auto (default), cpu, cuda:0, ...")
    parser.add_argument("--background", action="store_true", help="queue it and return at once")


def _joined(values: tuple[float, ...]) -> str:
    return ",".join(f"{value:g}" for value in values)


def _evaluate(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    _check(args)
    if args.study in STUDIES:
        job = submit_study(project, _study_settings(args), device=args.device)
    else:
        job = submit_evaluation(project, _settings(args, args.test or matching_test(project)), device=args.device)
    if args.background:
        jobs.supervise(workspace)
        return Outcome({"job": job.id, "state": job.status().state}, f"Queued as {job.id}.")
    follow(job, console)
    result = job.result() or {}
    artifact = project.artifact(result["artifact"])
    value, text = (_study_answer if args.study in STUDIES else _answer)(artifact)
    return Outcome({"job": job.id, **result, **value}, text)


def _check(args: argparse.Namespace) -> None:
    """Refuse what argparse lets through and the settings do not see."""
    if args.seeds < 1:
        raise InvalidSettingError(f"--seeds must be at least 1, got {args.seeds}.")
    if args.methods == ():
        raise InvalidSettingError(f"--methods is empty. Choose from: {', '.join(METHODS)}.")
    axis = STUDIES.get(args.study)
    if axis is not None and args.evidence:
        raise InvalidSettingError(f"A {axis.title.lower()} takes no settings of baselines. Leave out --evidence.")
    if axis is not None and args.test not in (None, SCRATCH):
        raise InvalidSettingError(f"A {axis.title.lower()} trains nets from scratch. Leave out --test.")
    if axis is not None and not args.full_data:
        raise InvalidSettingError(
            f"A {axis.title.lower()} always trains on the whole pool too. Leave out --no-full-data."
        )
    if axis is not None and args.order is not None:
        raise InvalidSettingError(f"A {axis.title.lower()} runs {axis.column} by {axis.column}. Leave out --order.")
    for name, axes in OF_STUDIES.items():
        if getattr(args, name) is not None and axis not in axes:
            studies = " or ".join(study for study, its_axis in STUDIES.items() if its_axis in axes)
            raise InvalidSettingError(f"--{name.replace('_', '-')} only works with --study {studies}.")


def _settings(args: argparse.Namespace, test: str) -> EvaluationSettings:
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
        test=test,
    )


def _evidence(args: argparse.Namespace) -> dict[str, Any]:
    """Settings of baselines: ``KEY`` for all of them, ``METHOD.KEY`` for one."""
    settings: dict[str, Any] = {}
    for key, value in assignments("--evidence", args.evidence, "encoder=pixels").items():
        method, dot, name = key.partition(".")
        if dot and method in METHODS:
            settings.setdefault(method, {})[name] = value
        else:
            settings[key] = value
    return settings


def _study_settings(args: argparse.Namespace) -> StudySettings:
    """Random and the full data are always part of a study, named or not."""
    axis = STUDIES[args.study]
    shares = getattr(args, axis.field)
    asked = {
        axis.field: shares and tuple(sorted(shares)),
        "labeled": args.labeled,
        "methods": args.methods and tuple(method for method in args.methods if method not in (RANDOM, FULL)),
        "ratios": args.ratios and tuple(sorted(args.ratios)),
        "algorithm": args.algorithm,
        "ssl_preset": args.ssl_preset,
    }
    return SETTINGS[axis.kind](
        seeds=tuple(range(args.seeds)),
        preset=args.preset,
        training={} if args.epochs is None else {"epochs": args.epochs},
        truth=args.truth,
        **{name: value for name, value in asked.items() if value is not None},
    )


# --- answers -----------------------------------------------------------------------------------------------------


def _answer(artifact: Artifact) -> tuple[dict[str, Any], str]:
    """An evaluation for ``--json`` and as the page's words."""
    view, facts = Evaluation(artifact.settings, artifact=artifact).view(), artifact.facts
    lines = [*_sentences(view), "", text_table(view), TEXT_NOTE, *(f"Note: {note}" for note in view.notes), ""]
    lines.append(f"{artifact.id}: trained on {facts['truth']} labels. {facts['test_words']}")
    lines += [f"Warning: {facts[name]}" for name in WARNINGS if facts.get(name)]
    return _table(view, "pruning_ratio"), "\n".join(lines)


def _study_answer(artifact: Artifact) -> tuple[dict[str, Any], str]:
    """A study ratio by ratio, the highest first as on the page, then the accuracy of the pseudo-labels."""
    run, asked, facts = StudyRun(artifact), artifact.settings, artifact.facts
    axis, trials, lines, tables = run.axis, run.trials(), [], []
    for ratio in sorted(asked["ratios"], reverse=True):
        view = share_view(
            axis,
            trials,
            ratio,
            methods=asked["methods"],
            shares=asked[axis.field],
            full_is_upper=run.full_is_upper,
        )
        trend = trend_sentence(view)
        lines += [*_sentences(view), *filter(None, [trend]), "", text_table(view), ""]
        tables.append({"pruning_ratio": ratio, "trend": trend, **_table(view, axis.name.lower().replace(" ", "_"))})
    full = full_by_share(axis, trials)
    stages = [{**stage, **_full(full, stage[axis.column])} for stage in run.stages()]
    lines += [TEXT_NOTE, "", *(_stage(axis, stage) for stage in stages), ""]
    tested = f"Tested on {facts['n_test']:,} images. {facts.get('copies_words', '')}".rstrip()
    lines.append(f"{artifact.id}: trained on {facts['truth']} labels. {tested}")
    return {"ratios": tables, axis.field: stages}, "\n".join(lines)


def _full(by_share: Mapping[float, float], share: float) -> dict[str, float]:
    return {"full_accuracy": by_share[share]} if share in by_share else {}


def _sentences(view: EvaluationView) -> list[str]:
    return [line for line in (view.sentence(), view.rivals_sentence()) if line]


def _stage(axis: Axis, stage: Mapping[str, Any]) -> str:
    n = stage["n_labels"]
    images = f"{stage['n_images']:,} images, " if axis is POOL_SIZE else ""
    title = f"{percent(stage[axis.column])} ({images}{n:,} label{'s' if n != 1 else ''})"
    if "problem" in stage:
        return f"{title} was left out: {stage['problem']}"
    right = f"{stage['pseudo_accuracy']:.1%} right" if stage["pseudo_accuracy"] is not None else "none needed"
    line = f"{title}: pseudo-labels {right}, after {stage['ssl_minutes']:.1f} min of semi-supervised training."
    return f"{line} Training on all images gives {stage['full_accuracy']:.1%}." if "full_accuracy" in stage else line


def _table(view: EvaluationView, column: str) -> dict[str, Any]:
    """The sentence and the table for ``--json``: the columns of the page's Means CSV, null where empty.

    ``column`` names what the view's columns are.
    """
    rows = summary(view).rename(columns={"pruning_ratio": column}).to_dict("records")
    table = [{name: None if pd.isna(value) else value for name, value in row.items()} for row in rows]
    over = OVER if view.has_spread else ""
    return {"sentence": view.sentence(), "rivals": view.rivals_sentence(), "intervals_over": over, "table": table}


COMMANDS.register("evaluate")(Command("train on coresets and compare their test accuracy", _configure, _evaluate))
