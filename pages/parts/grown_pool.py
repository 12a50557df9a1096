"""Images were added since the drawing: offer to draw from them too, on the pages that rely on a random sample."""

from __future__ import annotations

import streamlit as st

from pages.parts import annotator_name, errors
from pages.parts.text import count
from semiprune_core.labeling import open_store
from semiprune_core.labeling.growth import extension
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project


def offer(project: Project, pool: Pool, *, key: str) -> bool:
    """The words and the button; False where the drawing is a sample of all images there are."""
    store = open_store(project)
    wanted = extension(store, pool)
    if wanted is None:
        return False
    with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(
            f":material/add_photo_alternate: **{count(wanted.n_added, 'image was', 'images were')} added since the "
            f"draw.** Until some of them are labeled too, the labels say nothing about them."
        )
        words = f"Draw {count(wanted.n_more, 'more image')}"
        help_text = "The same share of the new images, at random: all labels together are a random sample again."
        if st.button(words, key=f"{key}_extend", type="primary", icon=":material/casino:", help=help_text):
            annotator = annotator_name.current()
            with errors.shown():
                if annotator is not None:  # else the Label page asks for the name first, and offers this again
                    wanted.draw(store, pool, annotator=annotator)
                st.switch_page("label.py")
    return True
