"""All runs, their settings side by side, and a way to delete one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from pages.parts import charts, errors, job_panel
from pages.parts.text import duration, interval
from semiprune_core import training
from semiprune_core.learning import settings_help
from semiprune_core.project.workspace import Project
from semiprune_core.training import Run

SHOWN = 4


def draw(project: Project, runs: Sequence[Run]) -> None:
    st.markdown("#### Runs")
    names = {run.id: f"{run.id if run.artifact else run.created[:16].replace('T', ' ')}: {run.title}" for run in runs}
    by_id = {run.id: run for run in runs}
    chosen = st.multiselect(
        "Compare",
        list(by_id),
        default=list(by_id)[:SHOWN],
        format_func=names.__getitem__,
        key=f"train_compare_{len(runs)}_{runs[0].id}",
        label_visibility="collapsed",
        placeholder="Choose runs to compare",
    )
    if chosen:
        table([by_id[run_id] for run_id in chosen])
    with st.popover("Resume or delete", icon=":material/more_horiz:"):
        run = by_id[st.selectbox("Run", list(by_id), format_func=names.__getitem__, key="train_which")]
        if run.job is not None:
            job_panel.resume_button(run.job, run.status, key="history_resume")
        st.caption("Deletes its pseudo-labels, weights, curves and log. Your labels stay.")
        if st.button("Delete", key="train_delete", icon=":material/delete:"):
            errors.attempt(lambda: training.delete_run(project, run))


def table(runs: Sequence[Run]) -> None:
    """What each run reached; below it, folded, with which settings."""
    st.dataframe(pd.DataFrame({heading(run): outcome(run) for run in runs}), height="content")
    with st.expander("Settings, side by side", icon=":material/tune:"):
        settings_table(runs)


def settings_table(runs: Sequence[Run]) -> None:
    settings = {name: map(in_words, values) for name, values in training.side_by_side(runs).items()}
    frame = pd.DataFrame(settings, index=[heading(run) for run in runs]).T
    differs = frame.nunique(axis=1) > 1
    if len(runs) > 1 and st.toggle("Only settings that differ", value=True, key="train_only_differences"):
        frame, differs = frame[differs], differs[differs]
    titles = [settings_help.title_of(name.removeprefix("options.")) for name in frame.index]
    tint = f"background-color: {charts.faint(charts.accent())}"
    marks = [tint if mark and len(runs) > 1 else "" for mark in differs]
    st.dataframe(frame.set_axis(unique(titles)).style.apply(lambda column: marks), height="content")


def in_words(value: Any) -> str:
    """A setting as people write it; one that a run does not have, or leaves open, is a dash."""
    return {"True": "yes", "False": "no", "None": "–", "": "–"}.get(str(value), str(value))


def unique(titles: Sequence[str]) -> list[str]:
    """Two settings may have one title (an algorithm's own momentum): the later one says so."""
    seen: set[str] = set()
    distinct = []
    for title in titles:
        distinct.append(f"{title} (algorithm)" if title in seen else title)
        seen.add(title)
    return distinct


def heading(run: Run) -> str:
    return run.id if run.artifact is not None else run.created[:19].replace("T", " ")


def outcome(run: Run) -> dict[str, str]:
    quality, reference = run.facts.get("quality"), run.facts.get("reference")
    share = quality["accuracy"] if quality else None
    return {
        "State": run.status.state,
        "Accuracy": f"{share['value']:.1%}" if share else "not measured",
        "95% interval": interval(share["low"], share["high"], share["n"]) if share else "not measured",
        "Reference accuracy": f"{reference['value']:.1%}" if reference else "–",
        "Labels": f"{run.facts['n_labels']:,}" if run.artifact else "–",
        "Label snapshot": run.labels_hash[:12],
        "Took": duration(run.seconds) if run.seconds is not None else "–",
        "Started": run.created[:16].replace("T", " "),
    }
