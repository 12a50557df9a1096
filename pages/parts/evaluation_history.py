"""Earlier evaluations: look at one again, or delete it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from pages.parts import errors, evaluation_study
from pages.parts.text import duration
from semiprune_core import training
from semiprune_core.evaluation.runs import TRUTHS, Evaluation, delete_result
from semiprune_core.evaluation.study_view import StudyRun
from semiprune_core.evaluation.view import percent
from semiprune_core.jobs import Job
from semiprune_core.project.artifacts import Artifact
from semiprune_core.project.workspace import Project


def choose(done: Sequence[Evaluation]) -> Evaluation:
    """Which finished evaluation is shown: the newest, or another one."""
    if len(done) == 1:
        return done[0]
    by_id = {evaluation.id: evaluation for evaluation in done}
    chosen = st.selectbox(
        "Evaluation", list(by_id), format_func=lambda name: title(by_id[name]), key=f"evaluate_shown_{done[0].id}"
    )
    return by_id[chosen]


def title(evaluation: Evaluation) -> str:
    return f"{evaluation.id}: {evaluation.name} ({when(evaluation.created)})"


def when(moment: str) -> str:
    return moment[:16].replace("T", " ")


def draw(project: Project, done: Sequence[Evaluation], studied: Sequence[StudyRun], over: Sequence[Job]) -> None:
    """All of them as a table with their sentences, and a way to delete one."""
    results: list[tuple[str, Artifact]] = [
        (title(evaluation), evaluation.artifact) for evaluation in done if evaluation.artifact is not None
    ]
    results += [(evaluation_study.title(evaluation), evaluation.artifact) for evaluation in studied]
    removable: dict[str, tuple[str, Callable[[], None]]] = {
        artifact.id: (name, partial(delete_result, project, artifact)) for name, artifact in results
    }
    for job in over:
        if job.status().is_resumable:
            name = f"{job.title}, {job.status().state} ({when(job.created)})"
            removable[job.id] = (name, partial(training.delete_run, project, training.Run(job, None)))
    if not removable:
        return
    with st.expander(f"History ({len(removable)})", icon=":material/history:"):
        if done:
            st.dataframe(pd.DataFrame([_row(evaluation) for evaluation in done]), hide_index=True)
        _delete(removable)


def _delete(removable: Mapping[str, tuple[str, Callable[[], None]]]) -> None:
    with st.popover("Delete", icon=":material/more_horiz:"):
        chosen = st.selectbox(
            "Evaluation", list(removable), format_func=lambda name: removable[name][0], key="evaluate_which"
        )
        st.caption(
            "Deletes the results of its trainings; later evaluations cannot reuse them. Coresets, scores and "
            "labels stay. A stopped evaluation can be resumed until it is deleted itself."
        )
        if st.button("Delete", key="evaluate_delete", icon=":material/delete:"):
            errors.attempt(removable[chosen][1])


def _row(evaluation: Evaluation) -> dict[str, str]:
    view = evaluation.view()
    return {
        "Evaluation": evaluation.id,
        "When": when(evaluation.created),
        "Result": view.sentence(),
        "Methods": ", ".join(evaluation.titles.get(method, method) for method in evaluation.methods),
        "Ratios": ", ".join(percent(ratio) for ratio in evaluation.ratios),
        "Test": evaluation.tested_by,
        "Seeds": str(len(evaluation.seeds)),
        "Labels": TRUTHS.get(str(evaluation.facts.get("truth")), "–"),
        "Trained": duration(60 * view.minutes),
    }
