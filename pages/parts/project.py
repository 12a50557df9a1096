"""Which project the page is about, and the guard that explains what is missing."""

from __future__ import annotations

import functools
from pathlib import Path

import streamlit as st

from semiprune_core import artifacts, line
from semiprune_core.pool import Pool, open_pool
from semiprune_core.pool_view import PoolSummary, pool_summary
from semiprune_core.workspace import Project, Workspace

KEY = "project"


def workspace() -> Workspace:
    return Workspace.open()


def current() -> Project | None:
    """The chosen project: from this session, or from the address after a reload."""
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


def require(step_key: str) -> Project:
    """The current project, if this step can be done; otherwise the page says what is missing, links there and stops."""
    project = current()
    if project is None:
        st.header(line.BY_KEY[step_key].title)
        st.info("No project is open. Open one, or try the demo.", icon=":material/folder_open:")
        st.page_link("home.py", label="Go to the projects", icon=":material/arrow_forward:")
        st.stop()
    place = next(place for place in line.standing(project) if place.step.key == step_key)
    if place.missing is not None:
        st.header(place.step.title)
        st.write(place.step.purpose)
        st.info(place.sentence, icon=":material/hourglass_empty:")
        st.page_link(f"{place.missing.key}.py", label=f"Go to {place.missing.title}", icon=":material/arrow_forward:")
        st.stop()
    return project


def title(text: str, purpose: str) -> None:
    """The head of a page: where we are, and what for."""
    st.header(text, anchor=False)
    st.caption(purpose)


def everything(project: Project) -> Pool:
    """The project's images, every split, opened once per state of its pool."""
    return _opened(project.artifacts_folder, tuple(segment.id for segment in project.artifacts("pool")))


def pool(project: Project) -> Pool:
    return _split(project.artifacts_folder, tuple(segment.id for segment in project.artifacts("pool")), "pool")


def summary(project: Project) -> PoolSummary:
    """The pool's numbers, counted once per state of it."""
    return _summary(project.artifacts_folder, tuple(segment.id for segment in project.artifacts("pool")))


@functools.lru_cache(maxsize=8)
def _summary(folder: Path, segment_ids: tuple[str, ...]) -> PoolSummary:
    return pool_summary(_opened(folder, segment_ids))


@functools.lru_cache(maxsize=8)
def _opened(folder: Path, segment_ids: tuple[str, ...]) -> Pool:
    return open_pool([artifacts.open_artifact(folder / segment) for segment in segment_ids])


@functools.lru_cache(maxsize=8)
def _split(folder: Path, segment_ids: tuple[str, ...], split: str) -> Pool:
    return _opened(folder, segment_ids).split(split)
