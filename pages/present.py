"""Present: the finished demo as a story of ten minutes, for a room full of people."""

from __future__ import annotations

import streamlit as st

from pages.parts import components, errors, story
from pages.parts import project as projects
from semiprune_core.demo import finished as finished_demo
from semiprune_core.project.workspace import Project

AT = "slide"
"""In the session and in the address: which slide is shown, counted from 1."""


def presented() -> Project | None:
    """The open project where it has scores, else the finished demo."""
    space, project = projects.workspace(), projects.current()
    if project is not None and project.latest("scores") is not None:
        return project
    return space.project(finished_demo.NAME) if finished_demo.is_open(space) else None


def turn(by: int, n_slides: int) -> None:
    at = min(max(place(n_slides) + by, 1), n_slides)
    st.session_state[AT] = at
    st.query_params[AT] = str(at)
    st.session_state.pop(story.REPLAY, None)


def place(n_slides: int) -> int:
    asked = st.session_state.get(AT) or st.query_params.get(AT, "1")
    return min(max(int(asked) if str(asked).isdigit() else 1, 1), n_slides)


def head(slide: story.Slide, at: int, n_slides: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.header(slide.title, anchor=False, width="content")
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            st.caption(f"{at} of {n_slides}", width="content")
            if st.button("Back", key="story_back", icon=":material/arrow_back:", disabled=at == 1):
                turn(-1, n_slides)
                st.rerun()
            if st.button("Next", key="story_next", icon=":material/arrow_forward:", disabled=at == n_slides):
                turn(1, n_slides)
                st.rerun()
            if st.button("End", key="story_end", icon=":material/close:"):
                st.session_state.pop(AT, None)
                st.query_params.pop(AT, None)
                st.switch_page("home.py")
    st.markdown(f"#### {slide.sentence}")


def main() -> None:
    project = presented()
    if project is None:
        st.header("Present", anchor=False)
        st.info("The story is told with the finished demo. Open it on Projects first.", icon=":material/co_present:")
        st.page_link("home.py", label="Go to Projects", icon=":material/arrow_forward:")
        return
    slides = story.slides_of(project)
    at = place(len(slides))
    slide = slides[at - 1]
    turned = components.slide_keys(arrows=slide.arrows)
    if turned:
        turn(turned, len(slides))
        st.rerun()
    head(slide, at, len(slides))
    with errors.shown():
        slide.draw(project)
    st.page_link(f"{slide.page}.py", label="Look closely", icon=":material/search:")
    st.caption("Page Down and Page Up turn the page, arrows too where nothing else uses them.")


main()
