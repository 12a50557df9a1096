"""Find, at every gallery: the most alike first, by an image of the project, a picture from elsewhere, or words."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

import numpy as np
import streamlit as st

from pages.parts import dropped, errors
from pages.parts.text import literal
from semiprune_core.find import can_find, like_image, like_picture, like_words, most_alike, words_missing
from semiprune_core.importing.sources.reading import MAX_FILE_BYTES
from semiprune_core.project.pool import Pool, read_id
from semiprune_core.project.workspace import Project
from semiprune_core.records import FloatArray, IntArray

FIRST = "Most alike first"
MAX_MB = -(-MAX_FILE_BYTES // (1 << 20))


@dataclass(frozen=True)
class Query:
    """What a gallery is asked for, and how alike every image of the project is to it."""

    words: str
    project: str
    images: str
    """The hash of the images that were looked through."""
    likeness: FloatArray
    image_id: str = ""

    def fits(self, project: Project, everything: Pool) -> bool:
        return self.project == project.name and self.images == everything.hash


def order(project: Project, positions: IntArray, *, key: str, pool: Pool) -> tuple[IntArray, bool]:
    """Draw *Find*; ``positions`` of ``pool`` with the most alike first, and whether anything is looked for."""
    everything = project.everything()
    query: Query | None = st.session_state.get(_state(key))
    if query is not None and not query.fits(project, everything):
        forget(key)
        query = None
    with st.container(horizontal=True, vertical_alignment="center", width="content"):
        with st.popover("Find", icon=":material/image_search:"):
            _ask(project, everything, key)
        if query is not None:
            _show(project, query, key)
    if query is None:
        return positions, False
    return most_alike(query.likeness[pool.rows], np.asarray(positions, np.int64)), True


def offer(project: Project, image_id: str, key: str | None) -> None:
    """In an image's dialog: look for images like it in the gallery that it was opened from."""
    if key is None or not can_find(project):
        return
    if st.button("Find images like this", icon=":material/image_search:", key=f"find_like_{image_id}"):
        with errors.shown():
            _ask_for_image(project, project.everything(), key, image_id)


def is_asked(key: str) -> bool:
    """Whether anything is looked for at this gallery."""
    return _state(key) in st.session_state


def forget(key: str) -> None:
    st.session_state.pop(_state(key), None)


def _state(key: str) -> str:
    return f"{key}_found"


def _ask(project: Project, everything: Pool, key: str) -> None:
    """Words, or a picture; what is missing is said in their place."""
    if not can_find(project):
        st.caption(f"Find needs features. They are computed after an import; or run: semiprune embed {project.name}")
        return
    st.caption("Open an image and choose *Find images like this*, or drop a picture here.")
    file = dropped.one_file(f"{key}_find")
    if file is not None:
        with errors.shown(), st.spinner("Looking at the picture"):
            _ask_for_file(project, everything, key, file)
    missing = words_missing(project)
    if missing:
        st.caption(literal(missing, 400))
        return
    with st.form(f"{key}_find_words", border=False):
        words = st.text_input("Words", placeholder="a red shoe", max_chars=300, key=f"{key}_find_text")
        asked = st.form_submit_button("Find")
    if asked:
        with errors.shown(), st.spinner("Looking"):
            _look(key, Query(words.strip(), project.name, everything.hash, like_words(project, everything, words)))


def _ask_for_image(project: Project, everything: Pool, key: str, image_id: str) -> None:
    likeness = like_image(project, everything, read_id(image_id))
    name = everything.path(int(everything.positions([read_id(image_id)])[0])).rsplit("/", 1)[-1]
    _look(key, Query(name, project.name, everything.hash, likeness, image_id))


def _ask_for_file(project: Project, everything: Pool, key: str, file: dropped.Dropped) -> None:
    """The upload goes once it was looked at, or refused."""
    try:
        likeness = like_picture(project, everything, file.read(MAX_MB), file.name)
    finally:
        dropped.forget(f"{key}_find")
        shutil.rmtree(file.path.parent.parent, ignore_errors=True)
    _look(key, Query(file.name, project.name, everything.hash, likeness))


def _look(key: str, query: Query) -> None:
    """Show the page anew, with this query at its gallery."""
    st.session_state[_state(key)] = query
    st.rerun()


def _show(project: Project, query: Query, key: str) -> None:
    """What is looked for, and the way out."""
    st.markdown(f"Most like **{literal(query.words, 60)}** first")
    if st.button("Clear", icon=":material/close:", key=f"{key}_find_clear"):
        forget(key)
        st.rerun()
