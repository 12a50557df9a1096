"""The studies on the page, along labels or along the pool's size: their form, and what they found so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from pages.parts import errors, evaluation_result
from pages.parts.text import count, duration, literal
from semiprune_core import jobs
from semiprune_core.coresets import RATIOS
from semiprune_core.errors import SemiPruneError
from semiprune_core.evaluation import EvaluationData
from semiprune_core.evaluation.runs import data_sentence, seconds_per_image
from semiprune_core.evaluation.studies import (
    ARTIFACT,
    BUDGETS,
    LABEL_BUDGET,
    POOL_SIZE,
    SETTINGS,
    SIZES,
    Axis,
    StudySettings,
    axis_of,
    cost_of,
    n_trainings,
    studied_methods,
    submit_study,
)
from semiprune_core.evaluation.study_view import (
    StudyRun,
    full_by_share,
    job_full_is_upper,
    partial_study,
    share_view,
    trend_sentence,
)
from semiprune_core.evaluation.view import percent
from semiprune_core.jobs import Job
from semiprune_core.learning.presets import SSL_PRESETS, SUPERVISED_PRESETS
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.methods import METHODS
from semiprune_core.project.workspace import Project
from semiprune_core.refresh.freshness import studied_before


@dataclass(frozen=True)
class Words:
    """What the form of a study says, and which shares it offers."""

    label: str
    help: str
    offered: tuple[float, ...]
    usual: tuple[float, ...]
    why_labels: str
    nothing: str


FORMS = {
    LABEL_BUDGET.kind: Words(
        label="Label budgets",
        help="Shares of the pool that count as labeled, drawn at random; each contains the smaller ones.",
        offered=(0.005, *BUDGETS, 0.3, 0.5),
        usual=BUDGETS,
        why_labels="This study draws new labels",
        nothing="Choose at least one budget, one method and one pruning ratio.",
    ),
    POOL_SIZE.kind: Words(
        label="Sizes, as shares of the pool",
        help="Random parts of the pool that stand for smaller pools; each contains the smaller ones.",
        offered=(0.05, *SIZES[:-1], 0.75, 1.0),
        usual=SIZES,
        why_labels="This study draws new labels for every part of the pool",
        nothing="Choose at least one size, one method and one pruning ratio.",
    ),
}


def form(project: Project, axis: Axis, data_by_truth: Mapping[str, EvaluationData], *, idle: bool) -> None:
    """What to study and for how long; refused in words where not every image has a true label."""
    true = {truth: data for truth, data in data_by_truth.items() if truth != "pseudo"}
    if not true:
        st.warning(
            f"{FORMS[axis.kind].why_labels}, so it needs a true label for every image: reference labels that "
            f"came with the images, or a human label for each.",
            icon=":material/label_off:",
        )
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        settings = choices(axis, tuple(true))
    with right:
        if settings is not None:
            start_panel(project, settings, true[str(settings.truth)], idle=idle)


def choices(axis: Axis, truths: tuple[str, ...]) -> StudySettings | None:
    words, key = FORMS[axis.kind], axis.column
    shares = st.pills(
        words.label,
        words.offered,
        selection_mode="multi",
        default=list(words.usual),
        format_func=percent,
        key=f"{key}_{axis.field}",
        help=words.help,
        wrap=True,
    )
    methods = st.pills(
        "Methods",
        studied_methods(),
        selection_mode="multi",
        default=["semi_aum_cutoff", "semi_dual_beta"],
        format_func=METHODS.title,
        key=f"{key}_methods",
        help="Methods that select by scores on pseudo-labels. Random and the full data are trained once for "
        "comparison.",
        wrap=True,
    )
    ratios = st.pills(
        "Pruning ratios",
        RATIOS,
        selection_mode="multi",
        default=[0.7, 0.9],
        format_func=percent,
        key=f"{key}_ratios",
        wrap=True,
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n_seeds = st.number_input("Seeds", 1, 20, 3, key=f"{key}_seeds", width=110)
        algorithm = st.selectbox(
            "Algorithm", list(ALGORITHMS), format_func=ALGORITHMS.title, key=f"{key}_algorithm", width=180
        )
        ssl = st.selectbox(
            "SSL preset", list(SSL_PRESETS), format_func=SSL_PRESETS.title, key=f"{key}_ssl_preset", width=180
        )
        preset = st.selectbox(
            "Training preset",
            list(SUPERVISED_PRESETS),
            format_func=SUPERVISED_PRESETS.title,
            key=f"{key}_preset",
            width=180,
        )
        more: dict[str, Any] = {}
        if axis is POOL_SIZE:
            labeled = st.number_input(
                "Labeled, %", 1, 100, 10, key=f"{key}_labeled", width=130, help="Of each part of the pool, at random."
            )
            more["labeled"] = int(labeled) / 100
        truth = truths[0]
        if len(truths) > 1:
            truth = st.selectbox(
                "Labels from", truths, format_func=lambda value: f"{value} labels", key=f"{key}_truth", width=180
            )
    if not shares or not methods or not ratios:
        st.info(words.nothing, icon=":material/checklist:")
        return None
    try:
        return SETTINGS[axis.kind](
            **{axis.field: tuple(sorted(float(value) for value in shares))},
            methods=tuple(name for name in studied_methods() if name in methods),
            ratios=tuple(sorted(float(value) for value in ratios)),
            seeds=tuple(range(int(n_seeds))),
            algorithm=str(algorithm),
            ssl_preset=str(ssl),
            preset=str(preset),
            truth=str(truth),
            **more,
        )
    except SemiPruneError as error:
        errors.show(error)
        return None


def start_panel(project: Project, settings: StudySettings, data: EvaluationData, *, idle: bool) -> None:
    with st.container(border=True):
        st.markdown("**What it will do**")
        n_runs, n = len(settings.shares), n_trainings(settings)
        st.markdown(
            f"{count(n_runs, 'semi-supervised run')}, {count(n_runs, 'dynamics run')} and "
            f"{count(n, 'training')} on coresets. {data_sentence(data)}"
        )
        pace = seconds_per_image(project, settings.preset)
        plan = settings.plan(len(data.chosen_from))
        costs = [cost_of(settings, step.n_images, step.methods) for step in plan]
        images = sum(cost.dynamics + cost.trainings for cost in costs)
        with st.container(horizontal=True, gap="medium"):
            st.metric("Trainings", f"{n:,}")
            st.metric("Takes about", duration(pace * images) if pace is not None else "unknown")
        st.caption(
            f"Plus {count(n_runs, 'semi-supervised run')}; the Train page measures how long one takes. Finished "
            f"work is kept when you stop."
        )
        if st.button(
            "Start study",
            type="primary",
            icon=":material/play_arrow:",
            key=f"{settings.axis.column}_start",
            disabled=not idle,
            width="stretch",
        ):
            with errors.shown():
                with st.spinner("Checking what this machine can train with"):
                    submit_study(project, settings)
                jobs.supervise(project.workspace)
                st.rerun()


# --- results -------------------------------------------------------------------------------------------------------


def finished(project: Project) -> list[StudyRun]:
    """Studies that ended, newest first."""
    return [StudyRun(artifact) for artifact in reversed(project.artifacts(ARTIFACT))]


def show_finished(project: Project, studied: Sequence[StudyRun]) -> None:
    by_id = {study.artifact.id: study for study in studied}
    with st.container(border=True):
        chosen = next(iter(by_id))
        if len(by_id) > 1:
            chosen = st.selectbox(
                "Study", list(by_id), format_func=lambda name: title(by_id[name]), key=f"study_shown_{chosen}"
            )
        run = by_id[chosen]
        st.markdown(f"**{literal(chosen)}** :gray[{run.axis.title.lower()}]")
        if before := studied_before(project, run.artifact):
            st.info(literal(before, 400), icon=":material/update:")
        asked, key = run.artifact.settings, f"shown_{chosen}"
        show(chosen, asked, run.trials(), run.stages(), full_is_upper=run.full_is_upper, key=key)
        facts = run.artifact.facts
        st.caption(
            f"Trained with {facts['truth']} labels, tested on {facts['n_test']:,} images; the last epoch counts. "
            f"{facts.get('copies_words', '')}"
        )


def title(run: StudyRun) -> str:
    when = str(run.artifact.manifest["created"])[:16].replace("T", " ")
    return f"{run.artifact.id}: {run.axis.title.lower()} ({when})"


def show_job(job: Job, *, key: str) -> None:
    trials, stages = partial_study(job)
    show("study-partial", job.settings, trials, stages, full_is_upper=job_full_is_upper(job), key=key)


def show(
    whose: str,
    asked: Mapping[str, Any],
    trials: pd.DataFrame,
    stages: Sequence[Mapping[str, Any]],
    *,
    full_is_upper: bool,
    key: str,
) -> None:
    """Accuracy against the share at one ratio, and how right the pseudo-labels were at each share."""
    axis = axis_of(asked)
    if trials.empty:
        st.caption("No training has finished yet. Results appear here one by one.")
        stage_table(axis, stages, trials)
        return
    ratios = sorted(asked["ratios"])
    ratio = ratios[-1]
    if len(ratios) > 1:
        ratio = st.segmented_control(
            "Pruning ratio", ratios, default=ratio, format_func=percent, required=True, key=f"{key}_pruning"
        )
    shares, methods = asked[axis.field], asked["methods"]
    view = share_view(axis, trials, float(ratio), methods=methods, shares=shares, full_is_upper=full_is_upper)
    name = evaluation_result.file_name(f"{whose}-r{100 * float(ratio):g}", view)
    if trend := trend_sentence(view):
        st.markdown(f"#### {literal(trend, 400)}")
    evaluation_result.sentence(view, key=key)
    look = evaluation_result.plot(view, name, first="difference" if axis is POOL_SIZE else "accuracy", key=key)
    evaluation_result.table(view, None, key=key)
    stage_table(axis, stages, trials)
    evaluation_result.downloads(name, view, trials, None, look=look, key=key)


def stage_table(axis: Axis, stages: Sequence[Mapping[str, Any]], trials: pd.DataFrame) -> None:
    """What stood behind the coresets of each share; the full data's accuracy where each share has its own."""
    if not stages:
        return
    trained, full = [stage for stage in stages if "problem" not in stage], full_by_share(axis, trials)
    if trained:
        st.markdown(f"**Pseudo-labels by {axis.column}**")
        rows = [
            {
                axis.name: percent(stage[axis.column]),
                **({"Images": f"{stage['n_images']:,}"} if axis is POOL_SIZE else {}),
                "Labels": f"{stage['n_labels']:,}",
                "Accuracy on unlabeled images": f"{stage['pseudo_accuracy']:.1%}" if stage["pseudo_accuracy"] else "–",
                "Semi-supervised training": duration(60 * stage["ssl_minutes"]),
                **({"Accuracy with all images": _accuracy(full.get(stage[axis.column]))} if axis is POOL_SIZE else {}),
            }
            for stage in trained
        ]
        st.dataframe(pd.DataFrame(rows), hide_index=True)
    for stage in stages:
        if "problem" in stage:
            st.warning(
                f"{percent(stage[axis.column])} ({count(stage['n_labels'], 'label')}) was skipped: "
                f"{literal(stage['problem'], 400)}",
                icon=":material/label_off:",
            )


def _accuracy(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
