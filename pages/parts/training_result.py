"""What a finished run found, in plain words, and whether it is still up to date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from pages.parts import job_panel, training_form, training_live
from pages.parts.text import count, duration, interval, literal
from semiprune_core import training
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.training import Run, TrainingData


def note_changes(project: Project, runs: Sequence[Run], data: TrainingData, pool: Pool) -> None:
    """Say that labels or images changed since the latest run, and offer the same run on the present ones."""
    if not runs or runs[0].artifact is None:
        return
    change = training.changes_since(project, runs[0].labels_hash, data.snapshot)
    grew = runs[0].artifact.inputs.get("pool", pool.hash) != pool.hash
    words = [change.sentence] if change is not None else []
    words += ["Images were added since this run: the model has not labeled them."] if grew else []
    if not words:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f":material/update: **Out of date.** {' '.join(words)}")
        if data.problem is None and st.button(
            "Train again", type="primary", icon=":material/replay:", key="train_anew"
        ):
            job = runs[0].job
            device, nproc = (job.devices[0], job.nproc) if job is not None else ("auto", 1)
            training_form.start(project, runs[0].settings, device=device, nproc=nproc)


def show(run: Run) -> None:
    """The result of the run: how good its labels are, how it went."""
    assert run.artifact is not None
    facts = run.facts
    quality, reference = facts["quality"], facts.get("reference")
    with st.container(horizontal=True, gap="medium"):
        if quality:
            share = quality["accuracy"]
            st.metric(
                "Accuracy",
                f"{share['value']:.1%}",
                interval(share["low"], share["high"], share["n"]),
                delta_color="off",
                delta_arrow="off",
                help=f"{quality['measured_on']} Below: its 95% interval.",
            )
        if reference:
            st.metric(
                "Reference accuracy",
                f"{reference['value']:.1%}",
                help=f"On {count(reference['n'], 'unlabeled image')} with a reference label. The model saw none "
                f"of these labels.",
            )
        st.metric("Labels used", f"{facts['n_labels']:,}")
        st.metric("Took", duration(facts.get("seconds")))
    compared(run)
    st.write(in_words(run))
    if missing := facts.get("missing_classes"):
        st.warning(training_form.without_label(missing, "no image got it"), icon=":material/label_off:")
    for note in facts.get("notes", ()):
        st.caption(literal(note, 400))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link("pseudo.py", label="View pseudo-labels", icon=":material/arrow_forward:")
        if run.job is not None:
            job_panel.log(run.job)
    names = tuple(facts["class_names"])
    if (
        facts.get("start") == training.FROZEN and run.job is not None
    ):  # the curves are those of a net that was not taken
        curves = training.curves(run.job.progress())
        if not curves.is_empty:
            with st.expander("How the net from scratch learned", icon=":material/show_chart:"):
                training_live.draw(curves, names, key=run.id)
    else:
        training_live.draw(training.run_curves(run), names, key=run.id)


def compared(run: Run) -> None:
    """Which start Auto took, why, and how each did."""
    facts = run.facts
    if not facts.get("decision"):
        return
    close = (facts.get("comparison") or {}).get("close_call")
    box, icon = (st.warning, ":material/balance:") if close else (st.info, ":material/route:")
    taken, _, reason = facts["decision"].partition(". ")
    box(f"**{literal(taken)}.** {literal(reason, 600)}", icon=icon)
    if len(facts["candidates"]) > 1:
        st.dataframe(
            pd.DataFrame([candidate_row(row) for row in facts["candidates"]]), hide_index=True, width="content"
        )


def candidate_row(candidate: Mapping[str, Any]) -> dict[str, str]:
    share = candidate["accuracy"]
    return {
        "Start": training.STARTS[candidate["start"]],
        "Accuracy": f"{share['value']:.1%}" if share else "not measured",
        "95% interval": interval(share["low"], share["high"]) if share else "not measured",
        "Held-out labels": f"{candidate['n']:,}",
        "Took": duration(candidate["seconds"]),
    }


def in_words(run: Run) -> str:
    facts = run.facts
    n_model = facts["n_images"] - facts["n_human"]
    sources = f"The model labeled {count(n_model, 'image')}; {facts['n_human']:,} have a human label. "
    quality = facts["quality"]
    if not quality:
        return sources + "No labels were held out, so its accuracy was not measured."
    share = quality["accuracy"]
    return sources + (
        f"It got {share['right']:,} of {count(share['n'], 'held-out label')} right ({share['value']:.0%}), so its "
        f"accuracy on the whole pool is most likely between {share['low']:.0%} and {share['high']:.0%}."
    )
