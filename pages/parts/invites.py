"""The link of an invite, shown once to whoever may send it."""

from __future__ import annotations

from urllib.parse import urlsplit

import streamlit as st

from pages.parts import errors
from pages.parts.text import literal
from semiprune_core.accounts import Account, Managing

KEY = "invite_shown"


def named(account: Account) -> str:
    """The name that is shown, with the id where it is another."""
    other = f" :gray[{literal(account.id)}]" if account.id != account.shown else ""
    return f"**{literal(account.shown)}**{other}"


def remember(name: str, code: str) -> None:
    st.session_state[KEY] = name, code


def show() -> None:
    """The link that was just made. It is kept nowhere: a new one can be made."""
    shown = st.session_state.pop(KEY, None)
    if shown is None:
        return
    with st.container(border=True):
        st.markdown(f"**Send this link to {literal(shown[0])}.** It works once, within a week, and is shown only now.")
        st.code(link(shown[1]), language=None, wrap_lines=True)


def link(code: str) -> str:
    """The app's address as this browser sees it, with the code."""
    site = urlsplit(st.context.url or "")
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    root = f"{site.scheme}://{site.netloc}/" if site.netloc else "/"
    return f"{root}{base}{'/' if base else ''}?invite={code}"


def button(acts: Managing, account: Account) -> None:
    """A new link for somebody who has not come in yet, or, by an admin, who has forgotten the password."""
    if acts.may_invite(account) and st.button("New link", key=f"invite_{account.id}"):
        with errors.shown():
            remember(account.shown, acts.invite(account.id))
            st.rerun()
