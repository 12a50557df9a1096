"""All runs, their settings side by side, and a way to delete one."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from pages.parts.text import duration, literal
from semiprune_core.errors import SemiPruneError
from semiprune_core.learning import described, training
from semiprune_core.learning.training import Run
from semiprune_core.workspace import Project

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
        table(project, [by_id[run_id] for run_id in chosen])
    with st.popover("Delete a run", icon=":material/delete:"):
        run_id = st.selectbox("Run", list(by_id), format_func=names.__getitem__, key="train_delete_which")
        st.write("Its pseudo-labels, weights, curve and log are removed. Labels stay.")
        if st.button("Delete", key="train_delete", type="primary"):
            try:
                training.delete_run(project, by_id[run_id])
            except SemiPruneError as error:
                st.error(literal(str(error), 1000), icon=":material/error:")
            else:
                st.rerun()


def table(project: Project, runs: Sequence[Run]) -> None:
    outcomes = pd.DataFrame({heading(run): outcome(run) for run in runs})
    settings = training.side_by_side(runs)
    frame = pd.DataFrame(settings, index=[heading(run) for run in runs]).T
    only = st.toggle(
        "Only settings that differ", value=len(runs) > 1, key="train_only_differences", disabled=len(runs) < 2
    )
    differs = frame.apply(lambda row: row.nunique() > 1, axis=1)
    if only and len(runs) > 1:
        frame = frame[differs]
    frame.index = [described.title_of(name.split(".")[-1]) for name in frame.index]
    whole = pd.concat([outcomes, frame]).astype(str)
    st.dataframe(whole)


def heading(run: Run) -> str:
    return run.id if run.artifact is not None else run.created[:19].replace("T", " ")


def outcome(run: Run) -> dict[str, str]:
    quality, reference = run.facts.get("quality"), run.facts.get("reference")
    share = quality["accuracy"] if quality else None
    return {
        "State": run.status.state,
        "Accuracy": f"{share['value']:.1%} ({share['low']:.0%} – {share['high']:.0%}, n {share['n']})"
        if share
        else "–",
        "Reference accuracy": f"{reference['value']:.1%}" if reference else "–",
        "Labels": f"{run.facts['n_labels']:,}" if run.artifact else "–",
        "Label snapshot": run.labels_hash[:12],
        "Took": duration(run.seconds) if run.seconds is not None else "–",
        "Started": run.created[:16].replace("T", " "),
    }
