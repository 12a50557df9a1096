"""Where labeling stands, in numbers: progress, thin classes, agreement."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.parts import charts
from pages.parts import labeling_elements as elements
from pages.parts.text import count, duration, literal
from semiprune_core.labeling import LabelStore
from semiprune_core.labeling.agreement import agreement
from semiprune_core.labeling.progress_report import LabelProgress
from semiprune_core.project import rights
from semiprune_core.project.workspace import Project

MANY = 30


def numbers(standing: LabelProgress) -> None:
    with st.container(horizontal=True, gap="large"):
        st.metric("Labeled", f"{standing.labeled:,} of {standing.n_drawn:,}")
        st.metric("Left", f"{standing.left:,}")
        st.metric("Skipped", f"{standing.skipped:,}")
        st.metric("Flagged", f"{standing.flagged:,}")
        st.metric("Labels per minute", "–" if standing.per_minute is None else f"{standing.per_minute:.0f}")
        left = None if standing.minutes_left is None else 60 * standing.minutes_left
        st.metric("Time left", "–" if left is None else duration(left))
    st.caption(literal(standing.note, 600))


def per_class(standing: LabelProgress) -> None:
    if not standing.per_class:
        return
    if standing.thin_classes and standing.labeled:
        names = ", ".join(standing.thin_classes[:12]) + (" and more" if len(standing.thin_classes) > 12 else "")
        st.warning(
            f"Fewer than 4 labels: {literal(names, 600)}. Label more of them, or merge classes.",
            icon=":material/warning:",
        )
    if len(standing.per_class) <= MANY:
        st.plotly_chart(charts.class_bars(standing.per_class), key="label_per_class", config=charts.QUIET)
    else:
        st.dataframe(pd.DataFrame(standing.per_class.items(), columns=["Class", "Labels"]), hide_index=True, height=420)


def agreements(project: Project, store: LabelStore, annotator: str, disputed: int) -> None:
    """How well the annotators agree, and the disagreements as a deck to settle."""
    measured = agreement(store)
    if not measured.n_images:
        st.info(
            "No image has been labeled by two people yet. Draw with an overlap, or have a second annotator open "
            "this page under another name.",
            icon=":material/group:",
        )
        return
    with st.container(horizontal=True, gap="large"):
        st.metric("Labeled twice or more", f"{measured.n_images:,}")
        st.metric("Agreement", "–" if measured.raw is None else f"{measured.raw:.1%}", help="Share of agreeing pairs.")
        kappa = "Cohen's kappa" if measured.kind == "cohen" else "Fleiss' kappa"
        st.metric(
            kappa,
            "–" if measured.kappa is None else f"{measured.kappa:.2f}",
            help="Agreement beyond chance; 1 is perfect.",
        )
    st.caption(f"Annotators: {literal(', '.join(measured.annotators), 400)}")
    if not disputed:
        st.success("Nothing to settle.", icon=":material/check_circle:")
        return
    if not rights.allows("settle", project.name):
        st.info(f"{count(disputed, 'disagreement')} to settle, by an owner of the project.", icon=":material/group:")
        return
    st.markdown(f"**{count(disputed, 'disagreement')} to settle.** The tags on the picture say who chose what.")
    elements.deck(project, store, annotator=annotator, queue="disputed")
