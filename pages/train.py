"""Train: learn from the labels and the unlabeled rest, in the background, with an honest number at the end."""

from __future__ import annotations

import streamlit as st

from pages.parts import (
    finish_panel,
    grown_pool,
    trackers,
    training_form,
    training_history,
    training_live,
    training_result,
)
from pages.parts import project as projects
from pages.parts.text import literal
from semiprune_core import training
from semiprune_core.steps import BY_KEY


def main() -> None:
    project = projects.require("train")
    projects.title(BY_KEY["train"].title, BY_KEY["train"].purpose)
    pool = project.pool()
    data = training.training_data(project, pool)
    runs = training.list_runs(project)
    active = [run for run in runs if not run.status.is_over]
    grown_pool.offer(project, pool, key="train")
    training_result.note_changes(project, runs, data, pool)
    for run in active:
        training_live.watch(run)
    if not active and runs and (runs[0].artifact is None or runs[0].is_provisional):
        training_live.broken(runs[0])
    finished = next((run for run in runs if run.artifact is not None), None)
    if finished is not None and active:
        with st.expander(f"Latest result: {literal(finished.title)}", icon=":material/task_alt:"):
            training_result.show(finished)
    elif finished is not None:
        with st.container(border=True):
            st.markdown(f"**Result: {literal(finished.title)}**")
            training_result.show(finished)
    if runs:
        with st.expander("New run", icon=":material/add:", expanded=not active and finished is None):
            training_form.draw(project, data, idle=not active)
        training_history.draw(project, runs)
    else:
        training_form.draw(project, data, idle=not active)
        st.divider()
        finish_panel.draw(project, key="train", primary=False)
    trackers.draw(project.workspace)


main()
