"""A coreset as a labeling queue: its images with the model's answers, most doubtful first, until all are people's."""

from __future__ import annotations

import streamlit as st

from pages.parts import errors
from pages.parts import labeling_elements as elements
from pages.parts.text import count, literal
from semiprune_core.errors import SemiPruneError
from semiprune_core.labeling import LabelStore
from semiprune_core.methods import METHODS
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.results import CoresetRun, PseudoRun, made_from, open_coreset
from semiprune_core.selection import SELECTORS
from semiprune_core.trust import review

KEY = "label_coreset"
ADDRESS = "coreset"
EVERY = 3.0


def button(coreset_id: str, *, key: str) -> None:
    """Go and annotate a coreset."""
    words = "Label its images one by one, most doubtful first, with the model's answers as suggestions."
    if st.button("Annotate", key=key, icon=":material/rate_review:", help=words):
        st.session_state[KEY] = coreset_id
        st.switch_page("label.py")


def chosen(project: Project) -> CoresetRun | None:
    """The coreset that the Label page is about; None for the drawn images, as ever."""
    name = st.session_state.get(KEY) or st.query_params.get(ADDRESS)
    if not name:
        return None
    try:
        return open_coreset(project, str(name))
    except SemiPruneError:  # another project's
        leave()
        return None


def leave() -> None:
    st.session_state.pop(KEY, None)
    st.query_params.pop(ADDRESS, None)


def show(project: Project, pool: Pool, store: LabelStore, run: CoresetRun, annotator: str) -> None:
    """The queue with a head that says which coreset, and how many of its labels are human."""
    artifact = run.artifact
    st.query_params[ADDRESS] = artifact.id
    settings = artifact.settings
    method = str(settings["method"])
    title = (METHODS if method in METHODS else SELECTORS).title(method)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.header(f"Annotate {artifact.id}", anchor=False, width="content")
        with st.container(horizontal=True, width="content"):
            if st.button("Export", key="coreset_export", icon=":material/output:"):
                st.session_state["export_wanted"] = [artifact.id]
                leave()
                st.switch_page("export.py")
            if st.button("Back to the drawn images", key="coreset_leave", icon=":material/arrow_back:"):
                leave()
                st.rerun()
    _how_far(pool, store, run, f"{title}, pruning ratio {settings['pruning_ratio']:g}")
    if not len(store.classes):
        store.classes.add(PseudoRun(made_from(project, artifact, "pseudo")).class_names, annotator=annotator)
    elements.deck(project, store, annotator=annotator, queue=f"coreset:{artifact.id}")
    st.caption(
        "Enter accepts the model's answer, a class key corrects it. Either way it becomes a human label, in "
        "exports too. Because you saw the model's answer, it never counts towards held-out accuracy."
    )


@st.fragment(run_every=EVERY)
@errors.shown()
def _how_far(pool: Pool, store: LabelStore, run: CoresetRun, words: str) -> None:
    """Looks again by itself: the deck saves alone."""
    progress = review.coreset_labels(pool, run, store)
    parts = [f"{progress.n_human:,} of {count(progress.n_kept, 'label')} are human"]
    if progress.n_skipped:
        parts.append(f"{progress.n_skipped:,} skipped")
    if progress.n_final:
        parts.append(f"{progress.n_final:,} kept for the final test")
    parts.append(f"{progress.n_left:,} to go" if progress.n_left else "all done")
    st.progress(progress.n_human / max(1, progress.n_kept), text=f"{literal(words)} · {' · '.join(parts)}")
