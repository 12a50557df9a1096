"""Jobs under way, beside every page: how far they are, how long they still take, and a word when one has ended."""

from __future__ import annotations

import streamlit as st

from pages.parts import components
from pages.parts import project as projects
from pages.parts.job_glance import doing, looked_at, sentence
from pages.parts.text import literal
from semiprune_core import jobs
from semiprune_core.errors import SemiPruneError
from semiprune_core.jobs import Job, JobStatus
from semiprune_core.project.workspace import Project, Workspace

SEEN = "running_jobs_seen"
"""In the session: the projects, by job id, of the jobs that were under way at some time in this visit."""
ENDINGS = {jobs.DONE: "is done", jobs.FAILED: "failed", jobs.STOPPED: "was stopped", jobs.LOST: "was interrupted"}
ICONS = {jobs.DONE: ":material/check:", jobs.FAILED: ":material/error:", jobs.STOPPED: ":material/stop_circle:"}
"""By the state a job ended in; a job that was lost looks like a failed one."""
UNTOLD = ("preflight",)
"""Kinds whose end nobody waits for."""


def in_sidebar(page: str) -> None:
    """All jobs of the workspace, below the pages; what ended is told until somebody goes to see it."""
    with st.sidebar:
        components.frame()
        looked_at(_watch, again=bool(jobs.under_way(projects.workspace())))(page)


def _watch(page: str) -> None:
    space, here = projects.workspace(), projects.current()
    alive = jobs.under_way(space)
    seen: dict[str, str] = st.session_state.setdefault(SEEN, {})
    seen.update({job.id: job.project_name for job, _ in alive if job.kind not in UNTOLD})
    ended = _ended(space, seen, {job.id for job, _ in alive})
    for job, status in alive:
        _line(job, sentence(job, status), ":material/autorenew:", here)
    for job, status in ended:
        if here is not None and job.project_name == here.name and doing(job).page == page:
            del seen[job.id]
        else:
            _line(job, _ending(job, status), ICONS.get(status.state, ":material/error:"), here)
    components.job_teller(
        [job.id for job, _ in alive], {job.id: _ending(job, status) for job, status in ended}, key="job_teller"
    )


def _ending(job: Job, status: JobStatus) -> str:
    return f"{doing(job).words} {ENDINGS[status.state]}"


def _ended(space: Workspace, seen: dict[str, str], alive: set[str]) -> list[tuple[Job, JobStatus]]:
    """Of the jobs seen under way those that are over; one that is gone or was led by another is forgotten."""
    ended = []
    for job_id in [job_id for job_id in seen if job_id not in alive]:
        try:
            job = jobs.find_job(space, job_id)
            status = job.status()
        except SemiPruneError:
            del seen[job_id]
            continue
        if status.is_over:
            ended.append((job, status))
    return ended


def _line(job: Job, words: str, icon: str, here: Project | None) -> None:
    """The words lead to the page of the job, in its project."""
    elsewhere = here is None or job.project_name != here.name
    label = f"{literal(words)} :gray[{literal(job.project_name, 30)}]" if elsewhere else literal(words)
    if st.button(label, key=f"running_{job.id}", type="tertiary", icon=icon):
        st.session_state.setdefault(SEEN, {}).pop(job.id, None)
        projects.choose(job.project_name)
        st.switch_page(f"{doing(job).page}.py")
