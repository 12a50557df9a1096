"""Who is at the keyboard: labels carry a name."""

from __future__ import annotations

import streamlit as st

from semiprune_core.errors import SemiPruneError
from semiprune_core.labeling.events import MAX_ANNOTATOR, check_annotator

KEY = "annotator"


def name() -> str | None:
    return st.session_state.get(KEY)


def ask(key: str) -> None:
    """A small field for the name; once given it is kept for the session."""
    given = st.text_input("Your name", key=f"{key}_who", max_chars=MAX_ANNOTATOR, width=150, placeholder="to label")
    if not given.strip():
        return
    try:
        check_annotator(given.strip())
    except SemiPruneError as error:
        st.error(str(error))
    else:
        st.session_state[KEY] = given.strip()
        st.rerun()
