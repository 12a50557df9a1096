"""The name of the person who labels: the account's id, or, without accounts, asked once and kept in this browser."""

from __future__ import annotations

import streamlit as st

from pages.parts import errors, labeling_elements
from semiprune_core.errors import SemiPruneError
from semiprune_core.labeling.events import MAX_ANNOTATOR, check_person
from semiprune_core.project import rights

KEY = "annotator"


def recall() -> str | None:
    """Once per page: the name of this session, or the one this browser remembers from an earlier visit."""
    if rights.account() is not None:
        return current()
    with st.sidebar:  # where it takes no room from the page
        remembered = labeling_elements.remembered(KEY, current())
    if current() is None and remembered is not None and _is_name(remembered):
        st.session_state[KEY] = remembered
    return current()


def current() -> str | None:
    return rights.account() or st.session_state.get(KEY)


def save(text: str) -> None:
    """Take a name as typed; one that cannot be a name raises. Whoever is logged in keeps theirs."""
    if rights.account() is not None:
        return
    check_person(text.strip())
    st.session_state[KEY] = text.strip()


def ask(button: str) -> None:
    """A form for the name."""
    with st.form("annotator_form", border=False):
        text = st.text_input("Your name", placeholder="Ada", max_chars=MAX_ANNOTATOR, key="annotator_field")
        st.caption("Saved with every label you give, and remembered in this browser.")
        submitted = st.form_submit_button(button, type="primary")
    if submitted:
        errors.attempt(lambda: save(text))


def is_typed() -> bool:
    """Whether a name has to be typed: nobody is logged in."""
    return rights.account() is None


def ask_in_row(key: str) -> None:
    """A small field among other controls."""
    text = st.text_input("Your name", key=f"{key}_who", max_chars=MAX_ANNOTATOR, width=150, placeholder="to label")
    if text.strip():
        errors.attempt(lambda: save(text))


def _is_name(text: str) -> bool:
    try:
        check_person(text)
    except SemiPruneError:
        return False
    return True
