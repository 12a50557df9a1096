"""A job on a page: progress, speed, time left, its log, and the one bar of buttons: Stop, Resume, Retry."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from pages.parts import errors
from pages.parts.text import duration, literal
from semiprune_core import jobs, training
from semiprune_core.jobs import Job, JobStatus, states

EVERY = 0.8
QUEUED = "Waiting for its turn: another job is running."


def show(job: Job) -> None:
    """Watch ``job`` until it ends; then the whole page runs once more and sees the result."""
    _watch(job)


@st.fragment(run_every=EVERY)
@errors.shown()
def _watch(job: Job) -> None:
    status = job.status()
    if status.is_over:
        if st.session_state.get(f"job_seen_{job.id}") != (status.state, status.attempt):
            st.session_state[f"job_seen_{job.id}"] = (status.state, status.attempt)
            st.rerun()
        return
    with st.container(border=True):
        head(job, status)
        progress(status, _sentence(status))


def head(job: Job, status: JobStatus, *, note: str = "") -> None:
    """The job's title on the left, its buttons on the right."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**{literal(job.title)}** :gray[{literal(note)}]" if note else f"**{literal(job.title)}**")
        buttons(job, status)


def progress(status: JobStatus, sentence: str) -> None:
    if status.state == states.QUEUED:
        st.progress(0.0, text=QUEUED)
    else:
        st.progress(status.fraction, text=sentence)


def stages(job: Job, status: JobStatus, titles: Mapping[str, str], *, what: str) -> None:
    """A job that leads through several steps: which are done, which is under way and how far; its buttons."""
    names = list(titles)
    now = str(status.facts.get("step", names[0]))
    place = names.index(now) if now in names else 0
    marks = [
        f":green[:material/check:] {titles[name]}"
        if number < place
        else f":material/arrow_forward: **{titles[name]}**"
        if number == place
        else f":gray[{titles[name]}]"
        for number, name in enumerate(names)
    ]
    with st.container(border=True):
        st.markdown(f"**{literal(what)}** &nbsp; " + " &nbsp; ".join(marks))
        waits = status.state == states.QUEUED or status.facts.get("state") == states.QUEUED
        share = status.fraction * len(names) - place
        words = f"Step {place + 1} of {len(names)}: {titles[names[place]].lower()}"
        seconds = jobs.seconds_left(job, status)
        left = "" if seconds is None else f", {duration(seconds)} left"
        text = f"{words}, waiting for its turn" if waits else f"{words}, {max(0.0, min(1.0, share)):.0%}{left}"
        st.progress(status.fraction, text="Stopping" if status.stop_requested else text)
        buttons(job, status)
        st.caption("This keeps running when you close the page. After a stop it can be resumed.")


def buttons(job: Job, status: JobStatus, *, can_retry: bool = True, starts_over: bool = False) -> None:
    """Stop while it runs; then Resume, or Retry after a failure and for a job that ``starts_over``; and the log."""
    with st.container(horizontal=True, width="content"):
        if not status.is_over and st.button(
            "Stop", key=f"stop_{job.id}", icon=":material/stop_circle:", disabled=status.stop_requested
        ):
            job.stop()
            st.rerun(scope="fragment")
        if can_retry:
            resume_button(job, status, starts_over=starts_over)
        log(job)


def resume_button(job: Job, status: JobStatus, *, key: str = "resume", starts_over: bool = False) -> None:
    """Nothing where there is nothing to resume."""
    is_retry = starts_over or status.state == states.FAILED
    icon = ":material/replay:" if is_retry else ":material/play_arrow:"
    word = "Retry" if is_retry else "Resume"
    if status.is_resumable and st.button(word, key=f"{key}_{job.id}", icon=icon, type="primary"):
        with errors.shown():
            with st.spinner("Starting"):
                training.resume(job)
            st.rerun()


def log(job: Job) -> None:
    with st.popover("Log", icon=":material/article:"):
        st.code(job.log_tail(60) or "Nothing logged yet.", language=None)


def _sentence(status: JobStatus) -> str:
    if status.stop_requested:
        return "Stopping"
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


def ended(job: Job, *, what: str, can_retry: bool = True, starts_over: bool = False) -> None:
    """What became of a job that did not end well, and the way on."""
    status = job.status()
    if status.is_resumable:
        outcome(status, what=what, stopped=f"{what} was stopped.")
        buttons(job, status, can_retry=can_retry, starts_over=starts_over)


def outcome(status: JobStatus, *, what: str, stopped: str) -> None:
    """Why a job did not come to its end; ``stopped`` is what to say where a person stopped it."""
    reason = literal(status.message or "", 1000)
    if status.state == states.FAILED:
        st.error(f"{what} failed. {reason}", icon=":material/error:")
    elif status.state == states.LOST:
        st.warning(f"{what} was interrupted. {reason}", icon=":material/power_off:")
    else:
        st.info(stopped, icon=":material/pause_circle:")
