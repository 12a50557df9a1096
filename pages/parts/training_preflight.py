"""How long a run would take, how much memory and disk: before it starts."""

from __future__ import annotations

import shutil

import psutil
import streamlit as st

from pages.parts import errors
from pages.parts.text import count, duration, literal, size
from semiprune_core.errors import SemiPruneError
from semiprune_core.jobs import Job, states
from semiprune_core.learning import machine
from semiprune_core.learning.machine import Machine
from semiprune_core.project.workspace import Project
from semiprune_core.training import TrainingData, TrainSettings, preflight

EVERY = 0.8
LONG_SECONDS = 8 * 3600


def draw(
    project: Project,
    settings: TrainSettings,
    data: TrainingData,
    here: Machine,
    *,
    device: str,
    nproc: int,
    idle: bool,
) -> None:
    """The estimate where it is known; otherwise a few steps are timed, as soon as nothing else runs."""
    if not here.can_train:
        return
    with st.container(border=True):
        st.markdown("**Pre-flight, from scratch**" if settings.is_auto else "**Pre-flight**")
        try:
            place = machine.devices_for(device)
            key = preflight.trial_key(settings, place, project.pool().hash, len(data.per_class))
            job = preflight.find_trial(project, key)
            if job is None and idle:
                job = preflight.start_trial(project, settings, data, device=device)
        except SemiPruneError as error:
            errors.show(error)
            return
        if job is None:
            st.caption("Will be measured when the current run ends.")
        elif not job.status().is_over:
            _wait(job)
        elif trial := preflight.trial_of(job):
            estimate = preflight.estimate(trial, settings.training, data, nproc=nproc)
            _show(estimate, trial, here, project)
            if settings.is_auto:
                st.caption(in_budget(estimate, settings.budget))
            if idle and st.button("Measure again", key="train_measure", icon=":material/timer:", type="tertiary"):
                job.delete()  # the machine may have been busy with something else
                st.rerun()
        else:
            _failed(project, job, settings, data, device)


@st.fragment(run_every=EVERY)
@errors.shown()
def _wait(job: Job) -> None:
    status = job.status()
    if status.is_over:
        st.rerun()
    waiting = "Waiting for the device" if status.state == states.QUEUED else "Timing a few steps on this device"
    st.progress(status.fraction, text=waiting)


def _failed(project: Project, job: Job, settings: TrainSettings, data: TrainingData, device: str) -> None:
    status = job.status()
    if status.state == states.FAILED:
        st.error(literal(status.message, 1000), icon=":material/error:")
    else:
        st.caption("The measurement was interrupted.")
    if st.button("Measure again", key="train_measure", icon=":material/timer:"):
        preflight.start_trial(project, settings, data, device=device)
        st.rerun()


def _show(estimate: preflight.Estimate, trial: preflight.Trial, here: Machine, project: Project) -> None:
    with st.container(horizontal=True, gap="medium"):
        st.metric("Takes about", duration(estimate.seconds))
        st.metric("Memory", rounded(estimate.ram_bytes))
        if estimate.vram_bytes:
            st.metric("GPU memory", rounded(estimate.vram_bytes))
        st.metric(
            "Disk", rounded(estimate.disk_bytes), help="Two checkpoints and the features; a finished run keeps less."
        )
    models = f"{estimate.n_rounds} models, " if estimate.n_rounds > 1 else ""
    st.caption(
        f"{models}{count(estimate.n_steps, 'step')} at {estimate.images_per_s:,.0f} images/s; "
        f"{trial.n_weights / 1e6:.1f} million weights, {trial.precision}. "
        f"Measured over {count(trial.n_steps, 'step')}."
    )
    free, available = shutil.disk_usage(project.folder).free, psutil.virtual_memory().available
    if estimate.disk_bytes > free:
        st.warning(f"Only {size(free)} of disk space is free.", icon=":material/hard_drive:")
    if estimate.ram_bytes > available:
        st.warning(f"Only {size(available)} of memory is free now.", icon=":material/memory:")
    if estimate.seconds > LONG_SECONDS:
        st.warning(
            f"This will take long. The preset {here.recommended_preset} suits this machine; a smaller network, "
            f"fewer epochs or fewer unlabeled images per step also help.",
            icon=":material/schedule:",
        )


def in_budget(estimate: preflight.Estimate, budget: float) -> str:
    """What this means for Auto."""
    if estimate.seconds <= budget:
        return "Pretrained features come first and take seconds. A net from scratch seems to fit the budget too."
    return (
        "Pretrained features come first and take seconds. A net from scratch does not fit the budget: it is only "
        "trained where features do badly, and can be stopped."
    )


def rounded(n_bytes: int) -> str:
    """An estimate needs no decimals below a gigabyte."""
    return size(n_bytes) if n_bytes >= 1e9 else size(round(n_bytes, -6)).replace(".0", "")
