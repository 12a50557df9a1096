"""Account: one's own name, password and sessions."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from pages.parts import errors, identity
from pages.parts import project as projects
from pages.parts.text import literal
from semiprune_core.accounts import Managing, sessions_of
from semiprune_core.errors import InvalidSettingError
from semiprune_core.labeling.events import MAX_ANNOTATOR

ICON = "account_circle"
DONE = "account_done"


def name(acts: Managing) -> None:
    """The name that others see; the id, which stands in every label, stays."""
    person = acts.rights.person
    with st.form("account_name", border=False):
        shown = st.text_input("Name that others see", person.shown, max_chars=MAX_ANNOTATOR, width=320)
        if st.form_submit_button("Save"):
            errors.attempt(lambda: acts.rename(shown))
    st.caption(f"You log in as {literal(person.id)}, and your labels carry that name.")


def password(acts: Managing) -> None:
    with st.form("account_password", border=False, clear_on_submit=True):
        old = st.text_input("Present password", type="password", autocomplete="current-password", width=320)
        new = st.text_input("New password", type="password", autocomplete="new-password", width=320)
        again = st.text_input("New password once more", type="password", autocomplete="new-password", width=320)
        if st.form_submit_button("Change password"):
            errors.attempt(lambda: change(acts, old, new, again))


def change(acts: Managing, old: str, new: str, again: str) -> None:
    if new != again:
        raise InvalidSettingError("The two new passwords differ. Nothing was changed.")
    acts.change_password(old, new)
    st.session_state[DONE] = "The password was changed. All your other sessions have ended."


def sessions(acts: Managing) -> None:
    """Where one is logged in, each to be ended."""
    for session in sessions_of(acts.accounts, acts.rights.account):
        is_this = session.mark == acts.rights.mark
        seen = datetime.fromtimestamp(session.seen_ms / 1000, UTC).isoformat(sep=" ", timespec="minutes")[:16]
        words = [session.browser or "A browser", session.address, f"last seen {seen} UTC"]
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(literal(" · ".join(filter(None, words))), width=560)
            if is_this:
                st.caption("this one")
            elif st.button("End", key=f"end_{session.mark[:12]}"):
                errors.attempt(lambda mark=session.mark: acts.end_session(mark))


def main() -> None:
    acts = identity.manage()
    projects.title("Account", "Your name, your password, and where you are logged in.")
    if told := st.session_state.pop(DONE, None):
        st.success(told, icon=":material/check:")
    name(acts)
    st.subheader("Password", anchor=False)
    password(acts)
    st.subheader("Sessions", anchor=False)
    sessions(acts)


main()
