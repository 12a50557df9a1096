"""An evaluation while it runs, and one that did not come to its end: progress, numbers so far, stop, resume."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import streamlit as st

from pages.parts import errors, evaluation_result, evaluation_study, job_panel
from pages.parts.text import count, duration, literal
from semiprune_core import evaluation
from semiprune_core.evaluation import studies
from semiprune_core.evaluation.runs import of_job
from semiprune_core.jobs import Job, JobStatus
from semiprune_core.project.workspace import Project

EVERY = 2.0


@st.fragment(run_every=EVERY)
@errors.shown()
def watch(project: Project, job: Job) -> None:
    """The job until it ends; then the whole page runs once more and sees the result."""
    status = job.status()
    if status.is_over:
        st.rerun()
    with st.container(border=True):
        job_panel.head(job, status, note=name_of(job))
        job_panel.progress(status, _sentence(status))
        results(project, job, key=f"live_{job.id}")


def name_of(job: Job) -> str:
    return "" if job.kind in studies.AXES else of_job(job).name


def results(project: Project, job: Job, *, key: str) -> None:
    """What it has found so far."""
    if job.kind in studies.AXES:
        evaluation_study.show_job(job, key=key)
    else:
        evaluation_result.show(project, of_job(job), key=key)


def _sentence(status: JobStatus) -> str:
    if status.stop_requested:
        return "Stopping; finished trainings are kept"
    if not status.total:
        return "Starting: preparing the methods"
    facts = status.facts
    parts = [trainings(status)] if facts.get("trials_total") else []
    if facts.get("trial"):
        parts.append(literal(str(facts["trial"]), 100))
    if status.seconds_left is not None:
        parts.append(f"{duration(status.seconds_left)} left")
    return " · ".join(parts) or "Preparing the methods"


def trainings(status: JobStatus) -> str:
    facts = status.facts
    return f"{facts.get('trials_done', 0):,} of {count(int(facts.get('trials_total', 0)), 'training')}"


def buttons(job: Job, status: JobStatus) -> None:
    """Those of every job; an evaluation that did not end can also be saved as far as it got."""
    with st.container(horizontal=True, width="content"):
        job_panel.buttons(job, status)
        if job.kind == evaluation.KIND and st.button(
            "Save partial results",
            key=f"keep_{job.id}",
            icon=":material/save:",
            help="Saves the finished trainings as an evaluation of their own. You can still resume.",
        ):
            errors.attempt(functools.partial(evaluation.keep_partial, job))


def broken(project: Project, job: Job) -> None:
    """One that stopped on its way: why, what there is already, and the way on."""
    status = job.status()
    with st.container(border=True):
        st.markdown(f"**{literal(job.title)}** :gray[{literal(name_of(job))}]")
        where = f"{trainings(status)} are done. " if status.facts.get("trials_total") else ""
        stopped = f"Stopped. {where}Resume continues from there."
        job_panel.outcome(status, what="The evaluation", stopped=stopped)
        buttons(job, status)
        results(project, job, key=f"broken_{job.id}")


def earlier(stopped: Sequence[Job]) -> None:
    """Those that stopped before something newer was done: each with its way on."""
    if not stopped:
        return
    with st.expander(f"Stopped earlier ({len(stopped)})", icon=":material/pause_circle:"):
        for job in stopped:
            status = job.status()
            with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
                done = f", {trainings(status)} done" if status.facts.get("trials_total") else ""
                note = " ".join(filter(None, (name_of(job), f"{status.state}{done}")))
                st.markdown(f"**{literal(job.title)}** :gray[{literal(note)}]", width="content")
                buttons(job, status)
