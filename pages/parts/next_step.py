"""The way on, at the end of every page of the line."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts.text import literal
from semiprune_core.steps import BY_KEY, Standing


def show(page: str, places: Sequence[Standing]) -> None:
    """A button to the next step; one that waits says for what. After the last step the way leads to all projects."""
    if page not in BY_KEY or not places:
        return
    following = [place.step.key for place in places].index(page) + 1
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center", key="next_step"):
        if following == len(places):
            if st.button("All projects", key="next_page", icon=":material/home:"):
                st.switch_page("home.py")
            return
        place = places[following]
        if place.state == "waiting":
            st.caption(literal(place.sentence, 400), width="content")
        if st.button(
            f"Next: {place.step.title}",
            key="next_page",
            icon=":material/arrow_forward:",
            icon_position="right",
            type="primary" if place.state == "next" else "secondary",
            disabled=place.state == "waiting",
        ):
            st.switch_page(f"{place.step.key}.py")
