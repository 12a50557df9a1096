"""Evaluate: does the coreset beat random? Train on coresets, test, with seeds and intervals."""

from __future__ import annotations

import streamlit as st

from pages.parts import evaluation_form, evaluation_history, evaluation_live, evaluation_result, evaluation_study
from pages.parts import project as projects
from pages.parts.text import literal
from semiprune_core import evaluation, jobs
from semiprune_core.evaluation import runs as evaluation_runs
from semiprune_core.evaluation import studies
from semiprune_core.refresh import freshness
from semiprune_core.steps import BY_KEY


def main() -> None:
    project = projects.require("evaluate")
    projects.title(BY_KEY["evaluate"].title, BY_KEY["evaluate"].purpose)
    kinds = (evaluation.KIND, *studies.AXES)
    started = [job for kind in kinds for job in jobs.list_jobs(project, kind)]
    evaluation_jobs = sorted(started, key=lambda job: job.id, reverse=True)
    live = [job for job in evaluation_jobs if not job.status().is_over]
    done = evaluation_runs.finished(project)
    for job in live:
        evaluation_live.watch(project, job)
    newest = evaluation_jobs[0] if evaluation_jobs and not live and evaluation_jobs[0].status().is_resumable else None
    if newest is not None:
        evaluation_live.broken(project, newest)
    if done:
        shown = evaluation_history.choose(done)
        with st.container(border=True):
            st.markdown(f"**{literal(shown.id)}** :gray[{literal(shown.name)}]")
            if shown.artifact is not None and (before := freshness.evaluated_before(project, shown.artifact)):
                st.info(literal(before, 400), icon=":material/update:")
            evaluation_result.show(project, shown, key=f"shown_{shown.id}")
    studied = evaluation_study.finished(project)
    if studied:
        evaluation_study.show_finished(project, studied)
    if not done and not studied and not evaluation_jobs:
        st.info(
            "Is a coreset better than a random choice? Choose methods and ratios below. A new network is "
            "trained on each coreset several times and tested. You get a sentence with its interval, a plot and "
            "a table.",
            icon=":material/balance:",
        )
        evaluation_form.draw(project, idle=True)
        return
    with st.expander("New evaluation", icon=":material/add:", expanded=not live and not done and not studied):
        evaluation_form.draw(project, idle=not live)
    evaluation_live.earlier([job for job in evaluation_jobs if job is not newest and job.status().is_resumable])
    evaluation_history.draw(project, done, studied, [job for job in evaluation_jobs if job not in live])


main()
