"""Who is at the keyboard: labels carry a name."""

from __future__ import annotations

import streamlit as st

from pages.parts import labeling_elements
from semiprune_core.errors import SemiPruneError
from semiprune_core.labeling.events import MAX_ANNOTATOR, check_annotator

KEY = "annotator"


def recall() -> None:
    """Once per page: take the name this browser was given on the Label page, and keep a new one there."""
    kept = labeling_elements.remembered(KEY, st.session_state.get(KEY))
    if st.session_state.get(KEY) is None and kept is not None and is_name(kept):
        st.session_state[KEY] = kept


def is_name(text: str) -> bool:
    try:
        check_annotator(text)
    except SemiPruneError:
        return False
    return True


def name() -> str | None:
    return st.session_state.get(KEY)


def ask(key: str) -> None:
    """A small field for the name; once given it is kept for the session."""
    given = st.text_input("Your name", key=f"{key}_who", max_chars=MAX_ANNOTATOR, width=150, placeholder="to label")
    if given.strip() and is_name(given.strip()):
        st.session_state[KEY] = given.strip()
        st.rerun()
