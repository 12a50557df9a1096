"""A job, watched: progress, speed, time left, its last words, and a way to stop it or go on."""

from __future__ import annotations

import streamlit as st

from pages.parts import errors
from pages.parts.text import duration, literal
from semiprune_core.jobs import Job, JobStatus, states

EVERY = 0.8


def show(job: Job) -> None:
    """Watch ``job`` until it ends; then the whole page runs once more and sees the result."""
    _watch(job)


@st.fragment(run_every=EVERY)
@errors.shown()
def _watch(job: Job) -> None:
    status = job.status()
    if status.state in states.OVER:
        if st.session_state.get(f"job_seen_{job.id}") != (status.state, status.attempt):
            st.session_state[f"job_seen_{job.id}"] = (status.state, status.attempt)
            st.rerun()
        return
    with st.container(border=True):
        st.markdown(f"**{literal(job.title)}**")
        if status.state == states.QUEUED:
            st.progress(0.0, text="Waiting for its turn")
        else:
            share = status.done / status.total if status.total else 0.0
            st.progress(min(1.0, share), text=_sentence(status))
        with st.container(horizontal=True):
            if st.button("Cancel", key=f"stop_{job.id}", icon=":material/stop_circle:"):
                job.stop()
            with st.popover("Log", icon=":material/article:"):
                st.code(job.log_tail(40) or "Nothing yet.", language=None)


def _sentence(status: JobStatus) -> str:
    if not status.total:
        return "Starting"
    unit = status.facts.get("unit", "steps")
    parts = [f"{status.done:,} of {status.total:,} {unit}"]
    if status.speed:
        parts.append(f"{status.speed:,.0f} {unit}/s")
    if status.seconds_left is not None:
        parts.append(f"{duration(status.seconds_left)} left")
    if status.facts.get("problems"):
        parts.append(f"{status.facts['problems']:,} problems")
    return " · ".join(parts)


def ended(job: Job, *, what: str, again: bool = True) -> None:
    """What became of a job that did not end well, and what can be done (``again``: whether a retry has a chance)."""
    status = job.status()
    if status.state == states.FAILED:
        st.error(f"{what} failed. {literal(status.message or '', 1000)}", icon=":material/error:")
    elif status.state == states.STOPPED:
        st.warning(f"{what} was cancelled.", icon=":material/stop_circle:")
    elif status.state == states.LOST:
        st.warning(f"{what} was interrupted. {literal(status.message or '', 1000)}", icon=":material/power_off:")
    else:
        return
    with st.container(horizontal=True):
        if again and st.button("Try again", key=f"again_{job.id}", icon=":material/replay:"):
            with errors.shown():
                job.resume()
                st.rerun()
        with st.popover("Log", icon=":material/article:"):
            st.code(job.log_tail(60) or "Nothing was logged.", language=None)
