"""Which project the page is about, and the guard that explains what is missing."""

from __future__ import annotations

import functools

import streamlit as st

from pages.parts import identity, job_glance
from semiprune_core import steps
from semiprune_core.project.pool import Pool
from semiprune_core.project.pool_view import PoolSummary, pool_summary
from semiprune_core.project.workspace import Project, Workspace

KEY, STANDING = "project", "standing"


def workspace() -> Workspace:
    return Workspace.open()


def current() -> Project | None:
    """The chosen project: of this visit, or from the address after a reload."""
    name = st.session_state.get(KEY) or st.query_params.get(KEY)
    space = workspace()
    if not name or name not in space:
        return None
    return space.project(name)


def choose(name: str | None) -> None:
    """Make a project the current one, here and in the address."""
    st.session_state[KEY] = name
    if name is None:
        st.query_params.pop(KEY, None)
    else:
        st.query_params[KEY] = name


def standing(project: Project) -> list[steps.Standing]:
    """Where a project stands, for the frame around a page; the page itself finds it below without asking again."""
    places = steps.standing(project)
    st.session_state[STANDING] = (project.folder, places)
    return places


def _standing_now(project: Project) -> list[steps.Standing]:
    """What the frame has found out in this very run, once."""
    folder, places = st.session_state.pop(STANDING, (None, []))
    return places if folder == project.folder else steps.standing(project)


def require(step_key: str) -> Project:
    """The current project, if this step can be done; otherwise the page says what is missing, links there and stops."""
    project = current()
    if project is None:
        st.header(steps.BY_KEY[step_key].title)
        st.info("No project is open. Open one, or try the demo.", icon=":material/folder_open:")
        st.page_link("home.py", label="Go to Projects", icon=":material/arrow_forward:")
        st.stop()
    place = next(place for place in _standing_now(project) if place.step.key == step_key)
    if place.missing is not None:
        st.header(place.step.title)
        st.write(place.step.purpose)
        st.info(place.sentence, icon=":material/hourglass_empty:")
        job_glance.waited_for(project)
        if identity.sees(place.missing.key, project.name):
            st.page_link(
                f"{place.missing.key}.py", label=f"Go to {place.missing.title}", icon=":material/arrow_forward:"
            )
        st.stop()
    return project


def title(text: str, purpose: str) -> None:
    """The head of a page: where we are, and what for."""
    st.header(text, anchor=False)
    st.caption(purpose)


@functools.lru_cache(maxsize=8)
def summary(pool: Pool) -> PoolSummary:
    """A pool's numbers, counted once."""
    return pool_summary(pool)
