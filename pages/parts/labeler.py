"""The Label page of somebody who only labels: the deck, the grid and how far it is, nothing else."""

from __future__ import annotations

import streamlit as st

from pages.parts import labeling_elements as elements
from pages.parts import views
from pages.parts.text import count, literal
from semiprune_core.labeling import LabelStore
from semiprune_core.labeling.progress_report import LabelProgress, further_ids, progress
from semiprune_core.project.workspace import Project

VIEWS = {"deck": ":material/style: Deck", "grid": ":material/grid_view: Grid"}
QUEUES = {"drawn": "Drawn images", "further": "Further images, with suggestions", "skipped": "Skipped images"}
AT_ONCE = 120


def show(project: Project, store: LabelStore, annotator: str) -> None:
    st.header(f"Label: {literal(project.title, 60)}", anchor=False)
    if store.drawings.latest() is None or not len(store.classes):
        st.info("Nothing to label yet: an engineer of the project draws the images and names the classes first.")
        return
    standing = progress(store, annotator=annotator)
    _how_far(store, standing, annotator)
    with st.container(horizontal=True, vertical_alignment="center"):
        view = views.choose(VIEWS, key="labeler_view")
        queue = _queue(store, standing) if view == "deck" else "drawn"
    if view == "grid":
        elements.grid(project, store, annotator=annotator, n=AT_ONCE)
    elif elements.deck(project, store, annotator=annotator, queue=queue):
        st.rerun()


def _how_far(store: LabelStore, standing: LabelProgress, annotator: str) -> None:
    """The team's progress, and one's own part in it."""
    own = sum(1 for held in store.held(annotator=annotator) if held.annotator == annotator and held.action == "label")
    parts = [f"{standing.labeled:,} of {count(standing.n_drawn, 'image')} labeled", f"{own:,} by you"]
    if standing.complete:
        parts.append("all done, thank you")
    st.caption(" · ".join(parts))


def _queue(store: LabelStore, standing: LabelProgress) -> str:
    there = {"drawn": 1, "further": len(further_ids(store)), "skipped": standing.skipped}
    queues = {name: words for name, words in QUEUES.items() if there[name]}
    if len(queues) == 1:
        return "drawn"
    chosen = st.selectbox(
        "Show", list(queues), format_func=queues.get, key="labeler_queue", width=240, label_visibility="collapsed"
    )
    return str(chosen)
