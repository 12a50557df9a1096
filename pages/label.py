"""Label: draw a random share of the pool and label it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.parts import labeling_elements as elements
from pages.parts import labeling_subset as subset
from pages.parts import project as projects
from pages.parts.text import literal
from semiprune_core.errors import SemiPruneError
from semiprune_core.labeling import LabelStore, open_store
from semiprune_core.labeling.events import MAX_ANNOTATOR, check_annotator
from semiprune_core.line import BY_KEY
from semiprune_core.pool import Pool
from semiprune_core.workspace import Project

NAME = "annotator"


def annotator() -> str | None:
    """Who labels: asked once, then kept in the session and in the browser."""
    kept = elements.remembered(NAME, st.session_state.get(NAME))
    if st.session_state.get(NAME) is None and kept is not None:
        st.session_state[NAME] = kept
    return st.session_state.get(NAME)


def ask_name() -> None:
    with st.form("who", border=True):
        name = st.text_input("Your name", placeholder="Ada", max_chars=MAX_ANNOTATOR, key="who_name")
        st.caption("Your labels carry it. It is asked once and kept in this browser.")
        given = st.form_submit_button("Start", type="primary")
    if given:
        try:
            check_annotator(name.strip())
        except SemiPruneError as error:
            st.error(literal(str(error), 1000), icon=":material/error:")
        else:
            st.session_state[NAME] = name.strip()
            st.rerun()


def main() -> None:
    project = projects.require("label")
    projects.title(project, BY_KEY["label"].title, BY_KEY["label"].purpose)
    store, pool = open_store(project), projects.pool(project)
    who = annotator()
    if who is None:
        ask_name()
        return
    if store.drawings.latest() is None:
        if subset.draw_form(pool, store, who):
            st.rerun()
        return
    if not len(store.classes):
        store.classes.add(pool.class_names, annotator=who)
    elements.deck(project, store, annotator=who)


main()
