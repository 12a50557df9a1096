"""A training run, live and afterwards: its curves, its numbers, stop, resume and its log."""

from __future__ import annotations

import streamlit as st

from pages.parts import charts, errors, job_panel
from pages.parts.text import duration, interval, literal
from semiprune_core import training
from semiprune_core.jobs import Job, JobStatus
from semiprune_core.training import Curves, Run

EVERY = 1.0
STAGES = {
    "neighbours": "Looking for similar images",
    "near-duplicates": "Looking for near-duplicates",
    "cross-fit": "Fitting heads on features",
    "head": "Fitting heads on features",
    "pre-flight": "Timing a few steps from scratch",
}
"""What is done on pretrained features, besides computing them."""
MASK_SHARE = "The share of unlabeled images on which the model is confident enough to learn from its own labels."


def watch(run: Run) -> None:
    """The run until it ends; then the whole page runs once more and sees the result."""
    assert run.job is not None
    _watch(run.job, training.class_names_of(run.job))


@st.fragment(run_every=EVERY)
@errors.shown()
def _watch(job: Job, class_names: tuple[str, ...]) -> None:
    status = job.status()
    if status.is_over:
        st.rerun()
    with st.container(border=True):
        job_panel.head(job, status)
        job_panel.progress(status, _sentence(status))
        so_far(status)
        numbers(status)
        curves = training.curves(job.progress())
        draw(curves, class_names, key=job.id)


def _sentence(status: JobStatus) -> str:
    if status.stop_requested:
        return "Stopping and saving a checkpoint"
    if not status.total or status.speed is None and not status.done:
        return "Starting: loading images and network"
    if status.facts.get("unit") and status.facts.get("start", training.FROZEN) == training.FROZEN:
        return STAGES.get(status.facts.get("stage", ""), "Computing features: {done:,} of {total:,} images").format(
            done=status.done, total=status.total
        )
    parts = [f"Step {status.done:,} of {status.total:,}"]
    if status.facts.get("plan"):
        parts.insert(0, training.STARTS[status.facts["start"]])
    if status.facts.get("rounds"):
        parts.insert(0, f"Model {status.facts['round']} of {status.facts['rounds']}")
    if status.seconds_left is not None:
        parts.append(f"{duration(status.seconds_left)} left")
    return " · ".join(parts)


def so_far(status: JobStatus) -> None:
    """What Auto has already, and why it goes on."""
    share, plan = status.facts.get("first"), status.facts.get("plan")
    if share:
        st.info(
            f"**Pretrained features: {share['value']:.1%}** ({interval(share['low'], share['high'], share['n'])}). "
            f"{literal(plan, 400)} Stop keeps this result.",
            icon=":material/task_alt:",
        )
    elif plan:
        st.caption(literal(plan, 400))


def numbers(status: JobStatus) -> None:
    """The latest of each number, in one row; nothing before the first step of a net."""
    facts = status.facts
    if facts.get("loss") is None:
        return
    with st.container(horizontal=True, gap="medium"):
        st.metric("Epoch", facts.get("epoch", "–"))
        st.metric("Loss", f"{facts['loss']:.3f}" if facts.get("loss") is not None else "–")
        accuracy, ends = facts.get("held_out_accuracy"), facts.get("held_out_interval")
        st.metric(
            "Held-out accuracy",
            f"{accuracy:.1%}" if accuracy is not None else "–",
            interval(*ends) if ends else None,
            delta_color="off",
            delta_arrow="off",
            help="On held-out human labels, measured after every epoch. Below: its 95% interval.",
        )
        share = facts.get("mask_share")
        st.metric(
            "Mask share",
            f"{share:.0%}" if share is not None else "–",
            help=MASK_SHARE,
        )
        st.metric("Learning rate", f"{facts['lr']:.2g}" if facts.get("lr") is not None else "–")
        speed = facts.get("images_per_s")
        st.metric("Images/s", f"{speed:,.0f}" if speed is not None else "–")


def draw(curves: Curves, class_names: tuple[str, ...], *, key: str) -> None:
    """The curves; nothing before the first point."""
    if curves.is_empty:
        return
    left, right = st.columns(2)
    with left:
        st.markdown("**Loss**")
        st.plotly_chart(charts.loss_curve(curves), key=f"loss_{key}", config=charts.QUIET)
    with right:
        st.markdown("**Accuracy**")
        if any(curves.checks.values()):
            st.plotly_chart(charts.accuracy_curve(curves), key=f"accuracy_{key}", config=charts.QUIET)
        else:
            st.caption("Measured after every epoch on the held-out labels.")
    learning(curves, class_names, key)


def learning(curves: Curves, class_names: tuple[str, ...], key: str) -> None:
    """How the model learns from unlabeled images, and the learning rate."""
    left, right = st.columns(2)
    with left:
        if curves.lines["mask_share"]:
            st.markdown("**Mask share**", help=MASK_SHARE)
            st.plotly_chart(
                charts.single_curve(curves.lines["mask_share"], share=True), key=f"mask_{key}", config=charts.QUIET
            )
        st.markdown("**Learning rate**")
        st.plotly_chart(charts.single_curve(curves.lines["lr"]), key=f"lr_{key}", config=charts.QUIET)
    counts = curves.class_counts[-1][1] if curves.class_counts else []
    if any(counts) and len(counts) == len(class_names):
        with right:
            st.markdown(
                "**Pseudo-labels by class, last epoch**",
                help="Of all confident answers on unlabeled images in the last epoch, the share of each class.",
            )
            bars = charts.class_bars(dict(zip(class_names, counts)), shares=True)
            st.plotly_chart(bars, key=f"counts_{key}", config=charts.QUIET)


def broken(run: Run) -> None:
    """A run that did not end well: why, and what can be done."""
    job = run.job
    assert job is not None
    status = job.status()
    with st.container(border=True):
        st.markdown(f"**{literal(job.title)}**")
        where = f"Step {status.done:,} of {status.total:,}. " if status.total else ""
        kept = "The result on pretrained features is below. " if run.artifact is not None else ""
        stopped = f"Stopped. {where}{kept}Resume continues from there, with the same labels."
        job_panel.outcome(status, what="The run", stopped=stopped)
        draw(training.run_curves(run), training.class_names_of(job), key=job.id)
        job_panel.buttons(job, status)
