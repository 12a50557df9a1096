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
from semiprune_core.project.workspace import Project

MANY = 30


def numbers(found: LabelProgress) -> None:
    with st.container(horizontal=True, gap="large"):
        st.metric("Labeled", f"{found.labeled:,} of {found.n_drawn:,}")
        st.metric("Left", f"{found.left:,}")
        st.metric("Skipped", f"{found.skipped:,}")
        st.metric("Flagged", f"{found.flagged:,}")
        st.metric("Labels per minute", "–" if found.per_minute is None else f"{found.per_minute:.0f}")
        left = None if found.minutes_left is None else 60 * found.minutes_left
        st.metric("Time left", "–" if left is None else duration(left))
    st.caption(literal(found.note, 600))


def per_class(found: LabelProgress) -> None:
    if not found.per_class:
        return
    if found.thin_classes and found.labeled:
        names = ", ".join(found.thin_classes[:12]) + (" and more" if len(found.thin_classes) > 12 else "")
        st.warning(
            f"Fewer than 4 labels: {literal(names, 600)}. Label more of them, or merge classes.",
            icon=":material/warning:",
        )
    if len(found.per_class) <= MANY:
        st.plotly_chart(charts.class_bars(found.per_class), key="label_per_class")
    else:
        st.dataframe(pd.DataFrame(found.per_class.items(), columns=["Class", "Labels"]), hide_index=True, height=420)


def agreements(project: Project, store: LabelStore, annotator: str, disputed: int) -> None:
    """How well the annotators agree, and the disagreements as a deck to settle."""
    found = agreement(store)
    if not found.n_images:
        st.info(
            "No image has been labeled by two people yet. Draw with an overlap, or have a second annotator open "
            "this page under another name.",
            icon=":material/group:",
        )
        return
    with st.container(horizontal=True, gap="large"):
        st.metric("Labeled twice or more", f"{found.n_images:,}")
        st.metric("Agreement", "–" if found.raw is None else f"{found.raw:.1%}", help="Share of agreeing pairs.")
        kappa = "Cohen's kappa" if found.kind == "cohen" else "Fleiss' kappa"
        st.metric(
            kappa, "–" if found.kappa is None else f"{found.kappa:.2f}", help="Agreement beyond chance; 1 is perfect."
        )
    st.caption(f"Annotators: {literal(', '.join(found.annotators), 400)}")
    if not disputed:
        st.success("Nothing to settle.", icon=":material/check_circle:")
        return
    st.markdown(f"**{count(disputed, 'disagreement')} to settle.** The tags on the picture say who chose what.")
    elements.deck(project, store, annotator=annotator, queue="disputed")
