"""What a job does and how far it is, in one line; the same line on cards, in the sidebar and where a page waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import streamlit as st

from pages.parts import errors
from pages.parts.text import duration, literal
from semiprune_core import jobs
from semiprune_core.jobs import Job, JobStatus
from semiprune_core.project.workspace import Project

EVERY = 5


class Doing(NamedTuple):
    """What a kind of job does, in a word or two, and the page that shows it."""

    words: str
    page: str


DOING = {
    "import": Doing("Import", "pool"),
    "adopt": Doing("Taking the source's labels", "label"),
    "features": Doing("Computing features", "pool"),
    "scan": Doing("Scan", "pool"),
    "preflight": Doing("Timing a run", "train"),
    "ssl": Doing("Training", "train"),
    "dynamics": Doing("Training dynamics", "scores"),
    "map": Doing("Map", "map"),
    "search": Doing("Search", "select"),
    "evaluate": Doing("Evaluation", "evaluate"),
    "label_budget": Doing("Label-budget study", "evaluate"),
    "pool_size": Doing("Pool-size study", "evaluate"),
    "export": Doing("Export", "export"),
    "verify": Doing("Verification", "export"),
    "refresh": Doing("Bringing up to date", "scores"),
    "finish": Doing("Finish", "train"),
    "finished_demo": Doing("Opening the demo", "home"),
}


def doing(job: Job) -> Doing:
    return DOING.get(job.kind) or Doing(job.title, "home")


def sentence(job: Job, status: JobStatus) -> str:
    """Such as "Training 17%, 6 min left"."""
    words = doing(job).words
    if status.stop_requested:
        return f"{words}: stopping"
    if status.state == jobs.QUEUED:
        return f"{words}: waiting for its turn"
    seconds = jobs.seconds_left(job, status)
    left = "" if seconds is None else f", {duration(seconds)} left"
    step = " in this step" if left and "step" in status.facts else ""
    return f"{words} {status.fraction:.0%}{left}{step}"


def of_project(project: Project) -> list[tuple[Job, JobStatus]]:
    """The jobs of one project that are under way."""
    return [(job, status) for job, status in jobs.under_way(project.workspace) if job.project_name == project.name]


def looked_at(draw: Callable[..., None], *, again: bool) -> Callable[..., None]:
    """``draw`` as a part of the page that looks ``again`` every few seconds.

    Only while there is something to see: a page that draws itself anew all the time can miss a click on a slow machine.
    """
    return st.fragment(errors.shown()(draw), run_every=EVERY if again else None)


def waited_for(project: Project) -> None:
    """On a page that waits for a step: what is under way; when that has ended, the page looks again."""
    looked_at(_waited_for, again=bool(of_project(project)))(project)


def _waited_for(project: Project) -> None:
    alive = of_project(project)
    if not alive and st.session_state.pop(f"waited_{project.name}", False):
        st.rerun()
    st.session_state[f"waited_{project.name}"] = bool(alive)
    for job, status in alive:
        st.progress(status.fraction, text=literal(sentence(job, status)))


def on_card(project: Project) -> None:
    """The same on the project's card, where there is anything."""
    if of_project(project):
        looked_at(_on_card, again=True)(project)


def _on_card(project: Project) -> None:
    for job, status in of_project(project):
        st.progress(status.fraction, text=literal(sentence(job, status)))
