"""The guided tour: one calm panel on top of each page that says what it shows and what to try. It blocks nothing."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pages.parts import project as projects
from semiprune_core.demo import finished as finished_demo

KEY = "tour"
"""In the session and in the address: whether the tour is on."""


@dataclass(frozen=True)
class Stop:
    """One page of the tour. ``page`` is the file's name, ``shows`` what is to be seen, ``attempt`` what to try."""

    page: str
    title: str
    shows: str
    attempt: str


STOPS = (
    Stop(
        "home",
        "Projects",
        "Every project is a pool of images on its way to a coreset: the part of it worth labeling and training on.",
        "Open the finished demo: a real run in which every page is full. Then follow the steps on the left.",
    ),
    Stop(
        "pool",
        "Pool",
        "All images, with what the import found: sizes, duplicates, files it could not use. The demo keeps 2,000 "
        "images aside for testing.",
        "Click a picture to see it large, with everything known about it.",
    ),
    Stop(
        "label",
        "Label",
        "A random 10% is labeled by people, here in the browser. Because it is random, it also measures how "
        "good the model's labels are. Below the picture a line says how accurate a model would be by now. Finish does "
        "all that follows in one go.",
        "Type a name and press 1 to 9 on the deck, Backspace to undo, ? for all keys. In the demo, reference labels "
        "stand in for people: the subset is complete.",
    ),
    Stop(
        "train",
        "Train",
        "A model learns from those labels and labels every image of the pool. Auto tries pretrained features, which "
        "know photographs, and a network from scratch (FixMatch), which also learns what no photograph shows; labels "
        "that both held out decide.",
        "Look at the curves of the run, and at the estimate of how long another one would take on this machine.",
    ),
    Stop(
        "pseudo",
        "Pseudo-labels",
        "How far the model's labels can be trusted, measured on human labels it never saw, with intervals, and "
        "whether its confidence is justified.",
        "Open Confusion and click a cell to see the images behind it. Review shows the most doubtful ones first.",
    ),
    Stop(
        "map",
        "Map",
        "Images that look alike to the model lie close together. Mistakes sit at the borders, outliers on their own.",
        "Draw a line around an island to see its images. Colour the points by confidence or by a score.",
    ),
    Stop(
        "scores",
        "Scores",
        "A second training watches how each image is learned: early and surely, late, or never. AUM and DUAL "
        "turn that into a score of how hard it is.",
        "Click a bar of a histogram to see the images of that score, from the easiest to the hardest.",
    ),
    Stop(
        "select",
        "Select",
        "How much to prune, and how. The picture follows the slider: what is kept, what is removed, what each "
        "class loses.",
        "Move the pruning ratio to 0.9 and compare Semi-AUM with Semi-DUAL and Random. Annotate opens a coreset as a "
        "labeling queue.",
    ),
    Stop(
        "evaluate",
        "Evaluate",
        "Does the coreset beat a random one? Models are trained on both, several times, and tested on other images.",
        "Compare the methods at the ratio you would use; look at the spread, not just the mean.",
    ),
    Stop(
        "export",
        "Export",
        "Export the coreset as CSV, Parquet, image folders or annotation tasks, with a manifest that can be verified.",
        "Press Verify beside an export: the selection is computed again and every file is checked. Write the report "
        "and send it.",
    ),
)
BY_PAGE = {stop.page: number for number, stop in enumerate(STOPS)}


def is_on() -> bool:
    return bool(st.session_state.get(KEY))


def recall() -> None:
    """After a reload the address says whether the tour was on."""
    if KEY not in st.session_state and KEY in st.query_params:
        st.session_state[KEY] = True


def start_button() -> None:
    """For the first page; nothing while the tour is on."""
    if not is_on() and st.button("Take the tour", icon=":material/tour:", key="tour_start"):
        st.session_state[KEY] = True
        if projects.current() is None and finished_demo.is_open(projects.workspace()):
            projects.choose(finished_demo.NAME)  # full pages say more than empty ones
        st.rerun()


def leave() -> None:
    st.session_state[KEY] = False
    st.query_params.pop(KEY, None)


def show(page: str) -> None:
    """The panel of this page while the tour is on."""
    if not is_on() or page not in BY_PAGE:
        return
    st.query_params[KEY] = "1"
    number = BY_PAGE[page]
    stop = STOPS[number]
    with st.container(border=True, key="tour_panel"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/tour: **{stop.title}** :gray[Tour, {number + 1} of {len(STOPS)}]", width="stretch")
            if number and st.button("Back", key="tour_back", icon=":material/arrow_back:"):
                _go(number - 1)
            if number + 1 < len(STOPS):
                if st.button("Next", key="tour_next", type="primary", icon=":material/arrow_forward:"):
                    _go(number + 1)
            elif st.button("Finish", key="tour_finish", type="primary", icon=":material/check:"):
                leave()
                st.switch_page("home.py")
            if st.button("End tour", key="tour_leave", icon=":material/close:"):
                leave()
                st.rerun()
        st.markdown(f"{stop.shows}  \n**Try:** {stop.attempt}")
        if projects.current() is None and page != "home":
            st.caption(
                "No project is open, so there is little to see here. Open the finished demo on the Projects page."
            )


def _go(number: int) -> None:
    st.switch_page(f"{STOPS[number].page}.py")
