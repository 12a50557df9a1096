"""The label-budget study on the page: its form, and what it found so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from pages.parts import evaluation_result
from pages.parts.text import count, duration, literal
from semiprune_core import jobs
from semiprune_core.coresets import RATIOS
from semiprune_core.errors import SemiPruneError
from semiprune_core.evaluation import Ground
from semiprune_core.evaluation_runs import ground_sentence, seconds_per_image
from semiprune_core.evaluation_view import percent
from semiprune_core.freshness import studied_before
from semiprune_core.jobs import Job
from semiprune_core.learning.presets import SSL_PRESETS, SUPERVISED_PRESETS
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.methods import METHODS
from semiprune_core.studies import (
    ARTIFACT,
    BUDGETS,
    BudgetSettings,
    StudyRun,
    budget_methods,
    budget_view,
    cost_of,
    n_trainings,
    partial_study,
    submit_budget_study,
)
from semiprune_core.workspace import Project

MORE_BUDGETS = (0.005, *BUDGETS, 0.3, 0.5)


def form(project: Project, grounds: Mapping[str, Ground], *, idle: bool) -> None:
    """What to study and for how long; refused in words where not every image has a true label."""
    true = {truth: ground for truth, ground in grounds.items() if truth != "pseudo"}
    if not true:
        st.warning(
            "This study draws labels anew, so it needs a true label for every image: reference labels that came with "
            "the images, or a label by a person for each.",
            icon=":material/label_off:",
        )
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        settings = choices(tuple(true))
    with right:
        if settings is not None:
            start_panel(project, settings, true[str(settings.truth)], idle=idle)


def choices(truths: tuple[str, ...]) -> BudgetSettings | None:
    budgets = st.pills(
        "Label budgets",
        MORE_BUDGETS,
        selection_mode="multi",
        default=list(BUDGETS),
        format_func=percent,
        key="budget_budgets",
        help="Shares of the pool that count as labeled, drawn at random; each contains the smaller ones.",
        wrap=True,
    )
    methods = st.pills(
        "Methods",
        budget_methods(),
        selection_mode="multi",
        default=["semi_aum_cutoff", "semi_dual_beta"],
        format_func=METHODS.title,
        key="budget_methods",
        help="Those that choose by scores on pseudo-labels. Random and the full data are trained once beside them.",
        wrap=True,
    )
    ratios = st.pills(
        "Pruning ratios",
        RATIOS,
        selection_mode="multi",
        default=[0.7, 0.9],
        format_func=percent,
        key="budget_ratios",
        wrap=True,
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n_seeds = st.number_input("Seeds", 1, 20, 3, key="budget_seeds", width=110)
        algorithm = st.selectbox(
            "Algorithm", list(ALGORITHMS), format_func=ALGORITHMS.title, key="budget_algorithm", width=180
        )
        ssl = st.selectbox(
            "SSL preset", list(SSL_PRESETS), format_func=SSL_PRESETS.title, key="budget_ssl_preset", width=180
        )
        preset = st.selectbox(
            "Training preset",
            list(SUPERVISED_PRESETS),
            format_func=SUPERVISED_PRESETS.title,
            key="budget_preset",
            width=180,
        )
        truth = truths[0]
        if len(truths) > 1:
            truth = st.selectbox(
                "Labels from", truths, format_func=lambda one: f"{one} labels", key="budget_truth", width=180
            )
    if not budgets or not methods or not ratios:
        st.info("Choose at least one budget, one method and one pruning ratio.", icon=":material/checklist:")
        return None
    try:
        return BudgetSettings(
            budgets=tuple(sorted(float(one) for one in budgets)),
            methods=tuple(name for name in budget_methods() if name in methods),
            ratios=tuple(sorted(float(one) for one in ratios)),
            seeds=tuple(range(int(n_seeds))),
            algorithm=str(algorithm),
            ssl_preset=str(ssl),
            preset=str(preset),
            truth=str(truth),
        )
    except SemiPruneError as error:
        st.error(literal(str(error), 1000), icon=":material/error:")
        return None


def start_panel(project: Project, settings: BudgetSettings, ground: Ground, *, idle: bool) -> None:
    with st.container(border=True):
        st.markdown("**What it will do**")
        n_budgets, n = len(settings.budgets), n_trainings(settings)
        st.markdown(
            f"{count(n_budgets, 'semi-supervised run')}, {count(n_budgets, 'dynamics run')} and "
            f"{count(n, 'training')} on coresets. {ground_sentence(ground)}"
        )
        cost, pace = cost_of(settings, len(ground.chosen_from)), seconds_per_image(project, settings.preset)
        images = cost.common + n_budgets * (cost.dynamics + cost.coresets)
        with st.container(horizontal=True, gap="medium"):
            st.metric("Trainings", f"{n:,}")
            st.metric("They take about", duration(pace * images) if pace is not None else "not known")
        st.caption(
            f"The {count(n_budgets, 'semi-supervised run')} come on top; the Train page measures how long one takes. "
            "Stopping loses nothing that has ended."
        )
        if st.button(
            "Start the study",
            type="primary",
            icon=":material/play_arrow:",
            key="budget_start",
            disabled=not idle,
            width="stretch",
        ):
            try:
                with st.spinner("Looking at what this machine can train with"):
                    submit_budget_study(project, settings)
                jobs.supervise(project.workspace)
            except SemiPruneError as error:
                st.error(literal(str(error), 1000), icon=":material/error:")
            else:
                st.rerun()


# --- results -------------------------------------------------------------------------------------------------------


def finished(project: Project) -> list[StudyRun]:
    """Studies that ended, newest first."""
    return [StudyRun(artifact) for artifact in reversed(project.artifacts(ARTIFACT))]


def show_finished(project: Project, studied: Sequence[StudyRun]) -> None:
    by_id = {one.artifact.id: one for one in studied}
    with st.container(border=True):
        chosen = next(iter(by_id))
        if len(by_id) > 1:
            chosen = st.selectbox("Label-budget study", list(by_id), key=f"budget_shown_{chosen}")
        run = by_id[chosen]
        st.markdown(f"**{literal(chosen)}** :gray[label-budget study]")
        if before := studied_before(project, run.artifact):
            st.info(literal(before, 400), icon=":material/update:")
        show(chosen, run.artifact.settings, run.trials(), run.stages(), key=f"shown_{chosen}")
        facts = run.artifact.facts
        st.caption(
            f"Trained with {facts['truth']} labels, tested on {facts['n_test']:,} images; the last epoch counts."
        )


def show_job(job: Job, *, key: str) -> None:
    trials, stages = partial_study(job)
    show("study-partial", job.settings, trials, stages, key=key)


def show(
    whose: str,
    asked: Mapping[str, Any],
    trials: pd.DataFrame,
    stages: Sequence[Mapping[str, Any]],
    *,
    key: str,
) -> None:
    """Accuracy against the label budget at one ratio, and how right the pseudo-labels were at each budget."""
    if trials.empty:
        st.caption("The first training has not ended yet. Numbers appear here one training at a time.")
    else:
        ratios = sorted(asked["ratios"])
        ratio = ratios[-1]
        if len(ratios) > 1:
            ratio = st.segmented_control(
                "Pruning ratio", ratios, default=ratio, format_func=percent, required=True, key=f"{key}_pruning"
            )
        view = budget_view(trials, float(ratio), methods=asked["methods"], budgets=asked["budgets"])
        name = evaluation_result.file_name(f"{whose}-r{100 * float(ratio):g}", view)
        evaluation_result.sentence(view, key=key)
        look = evaluation_result.plot(view, name, key=key)
        evaluation_result.table(view, None, key=key)
        stage_table(stages)
        evaluation_result.downloads(name, view, trials, None, look=look, key=key)
        return
    stage_table(stages)


def stage_table(stages: Sequence[Mapping[str, Any]]) -> None:
    if not stages:
        return
    known = [one for one in stages if "problem" not in one]
    if known:
        st.markdown("**Pseudo-labels by budget**")
        rows = [
            {
                "Label budget": percent(one["budget"]),
                "Labels": f"{one['n_labels']:,}",
                "Right among the unlabeled": f"{one['pseudo_accuracy']:.1%}" if one["pseudo_accuracy"] else "–",
                "Semi-supervised training": duration(60 * one["ssl_minutes"]),
            }
            for one in known
        ]
        st.dataframe(pd.DataFrame(rows), hide_index=True)
    for one in stages:
        if "problem" in one:
            st.warning(
                f"{percent(one['budget'])} ({count(one['n_labels'], 'label')}) was left out: "
                f"{literal(one['problem'], 400)}",
                icon=":material/label_off:",
            )
