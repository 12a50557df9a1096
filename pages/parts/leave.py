"""Who is logged in, and the way out, below the pages."""

from __future__ import annotations

import streamlit as st

from pages.parts import identity, urls
from pages.parts import project as projects
from pages.parts.components import read
from semiprune_core.server import browser_token

_leave = st.components.v2.component("studio_leave", html=read("leave.html"), css=read("leave.css"), js=read("leave.js"))


def in_sidebar() -> None:
    """Name and *Log out*; nothing where there are no accounts."""
    person = identity.person()
    if person is None:
        return
    with st.sidebar:
        data = {"name": person.shown, "address": f"{urls.base()}/logout", "home": urls.home()}
        _leave(key="leave", data={**data, "token": browser_token(projects.workspace())})
