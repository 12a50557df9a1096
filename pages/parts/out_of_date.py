"""What is out of date, and the one button that brings everything up to date; the same on every page that says so."""

from __future__ import annotations

import streamlit as st

from pages.parts import errors, job_panel
from pages.parts.text import literal
from semiprune_core import jobs, refresh
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.refresh import freshness

EVERY_SECONDS = 3
DOING = {
    "pseudo": "Training",
    "trajectory": "Training dynamics",
    "scores": "Scoring",
    "coreset": "Rebuilding the coresets",
    "map": "Drawing the map",
}


@st.fragment(run_every=EVERY_SECONDS)
@errors.shown()
def notice(project: Project, pool: Pool, *, key: str, button_only: bool = False) -> None:
    """Nothing while all is up to date. Looks again by itself: the deck saves labels without the page.

    ``button_only``: the page says itself what is out of date.
    """
    refresh_jobs = jobs.list_jobs(project, refresh.KIND)
    job = refresh_jobs[0] if refresh_jobs else None
    status = job.status() if job is not None else None
    if job is not None and status is not None and not status.is_over:
        st.session_state[f"{key}_watched"] = job.id
        titles = {step: DOING[step] for step in job.settings["steps"]}
        job_panel.stages(job, status, titles, what="Bringing up to date")
        return
    if job is not None and st.session_state.pop(f"{key}_watched", None) == job.id:
        st.rerun()  # it has just ended: the whole page shows what it made
    stale = freshness.out_of_date(project, pool)
    if not stale:
        return
    if job is not None:
        job_panel.ended(job, what="Bringing up to date")
    with st.container(
        border=not button_only, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
    ):
        first, rest = stale[0], stale[1:]
        words = f"**{literal(first.title)}** ({first.artifact.id}): {literal(first.reason)}."
        if rest:
            words += f" Also affected: {', '.join(literal(result.title.lower()) for result in rest)}."
        if not button_only:
            st.markdown(f":material/update: **Out of date.** {words}")
        steps = [DOING[kind].lower() for kind in refresh.STEPS if kind in {result.artifact.kind for result in stale}]
        asked = st.button(
            "Bring up to date",
            key=f"{key}_update",
            icon=":material/refresh:",
            type="primary",
            help=f"Repeats these steps with the same settings: {', '.join(steps)}.",
        )
    if asked:
        _start(project, pool)


def _start(project: Project, pool: Pool) -> None:
    with errors.shown():
        refresh.bring_up_to_date(project, pool)
        st.rerun()
