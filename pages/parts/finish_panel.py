"""Finish: from the labels to coresets, a map and a report with one button; how far it is, and what came of it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.parts import errors, job_panel, urls
from pages.parts.text import count, duration, literal
from semiprune_core import jobs
from semiprune_core.finish import STAGES, finish_runs, go_on_with_features, submit_finish, why_not
from semiprune_core.jobs import Job
from semiprune_core.methods import METHODS
from semiprune_core.project.workspace import Project
from semiprune_core.refresh import freshness
from semiprune_core.results import CoresetRun

HELP = (
    "Learns the unlabeled rest, scores every image, searches for the best settings, selects at five pruning ratios, "
    "draws the map and writes the report. Every step stays open on its own page."
)


def draw(project: Project, *, key: str, primary: bool = True) -> None:
    """The button, the run under way, or its result, whichever there is."""
    past = finish_runs(project)
    job = past[0] if past else None
    if job is not None and not job.status().is_over:
        _watch(project, job)
        return
    if job is not None and job.status().state == jobs.DONE and not freshness.out_of_date(project):
        _result(project, job)
        return
    if job is not None:
        job_panel.ended(job, what="Finish")
    is_resumable = job is not None and job.status().is_resumable
    _offer(project, key=key, primary=primary and not is_resumable)


def _offer(project: Project, *, key: str, primary: bool) -> None:
    problem = why_not(project)
    with st.container(horizontal=True, vertical_alignment="center"):
        asked = st.button(
            "Finish",
            key=f"{key}_finish",
            icon=":material/bolt:",
            type="primary" if primary else "secondary",
            disabled=problem is not None,
            help=HELP,
        )
        st.caption(literal(problem, 400) if problem else "Learn, score, search, select, map and report in one go.")
    if asked:
        with errors.shown():
            submit_finish(project)
            st.rerun()


@st.fragment(run_every=job_panel.EVERY)
@errors.shown()
def _watch(project: Project, job: Job) -> None:
    status = job.status()
    if status.is_over:
        st.rerun()
    job_panel.stages(job, status, STAGES, what="Finish")
    plan = status.facts.get("plan")
    if plan and status.facts.get("step") == "learn":
        with st.container(horizontal=True, vertical_alignment="center"):
            if st.button("Go on with features", key=f"hurry_{job.id}", icon=":material/fast_forward:"):
                go_on_with_features(job)
            st.caption(literal(str(plan), 400))


def _result(project: Project, job: Job) -> None:
    """How long it took, the coresets with their files, and where to look closer."""
    result = job.result() or {}
    seconds = sum(result["seconds"].values())
    coresets = [project.artifact(name) for name in result["artifacts"]["select"]]
    with st.container(border=True):
        st.markdown(
            f":green[:material/check_circle:] **Finished** in {duration(seconds)}: {count(len(coresets), 'coreset')}."
        )
        for note in result["notes"]:
            st.caption(literal(note, 600))
        rows = [_row(project, CoresetRun(artifact)) for artifact in coresets]
        st.dataframe(
            rows,
            hide_index=True,
            column_config={"CSV": st.column_config.LinkColumn("CSV", display_text="Download")},
            key=f"finish_coresets_{job.id}",
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            st.link_button("Report", urls.export(project.name, result["report"]), icon=":material/description:")
            st.page_link("pseudo.py", label="Pseudo-labels", icon=":material/fact_check:")
            st.page_link("scores.py", label="Scores", icon=":material/bar_chart:")
            st.page_link("select.py", label="Select", icon=":material/filter_alt:")
            st.page_link("map.py", label="Map", icon=":material/scatter_plot:")


def _row(project: Project, run: CoresetRun) -> dict[str, Any]:
    settings, facts = run.artifact.settings, run.artifact.facts
    files = sorted(project.exports_folder.glob(f"{run.artifact.id}-kept-*.csv"))
    return {
        "Pruning ratio": f"{settings['pruning_ratio']:.0%}",
        "Kept": f"{facts['n_kept']:,}",
        "Method": METHODS.title(settings["method"]),
        "CSV": urls.export(project.name, files[-1].name) if files else None,
    }
