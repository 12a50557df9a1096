"""Label: draw a random share of the pool and label it."""

from __future__ import annotations

import streamlit as st

from pages.parts import coreset_labels, errors
from pages.parts import labeling_classes as classes
from pages.parts import labeling_elements as elements
from pages.parts import labeling_exchange as exchange
from pages.parts import labeling_report as report
from pages.parts import labeling_subset as subset
from pages.parts import project as projects
from pages.parts.text import literal
from semiprune_core.errors import SemiPruneError
from semiprune_core.labeling import LabelStore, open_store
from semiprune_core.labeling.events import MAX_ANNOTATOR, check_annotator
from semiprune_core.labeling.progress_report import LabelProgress, progress
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.steps import BY_KEY

NAME = "annotator"
VIEWS = {
    "deck": ":material/style: Deck",
    "grid": ":material/grid_view: Grid",
    "classes": ":material/category: Classes",
    "subset": ":material/casino: Subset",
    "agreement": ":material/group: Agreement",
    "exchange": ":material/swap_horiz: Import and export",
}
QUEUES = {"drawn": "Drawn images", "skipped": "Skipped images", "flagged": "Flagged images"}
GRID_SIZES = (60, 120, 240)


def annotator() -> str | None:
    """Who labels: asked once, then kept in the session and in the browser."""
    kept = elements.remembered(NAME, st.session_state.get(NAME))
    if st.session_state.get(NAME) is None and kept is not None and _is_name(kept):
        st.session_state[NAME] = kept
    return st.session_state.get(NAME)


def _is_name(name: str) -> bool:
    try:
        check_annotator(name)
    except SemiPruneError:
        return False
    return True


def ask_name(words: str) -> None:
    """The form for the annotator's name."""
    with st.form("who", border=False):
        name = st.text_input("Your name", placeholder="Ada", max_chars=MAX_ANNOTATOR, key="who_name")
        st.caption("Your labels carry it. It is kept in this browser.")
        given = st.form_submit_button(words, type="primary")
    if not given:
        return
    with errors.shown():
        check_annotator(name.strip())
        st.session_state[NAME] = name.strip()
        st.rerun()


def draw_first(project: Project, pool: Pool, store: LabelStore, who: str) -> None:
    """Nothing is drawn yet: choose how much to label."""
    st.markdown(
        "**First, draw the images to label.** A random share says without bias how good the model's labels are."
    )
    if subset.draw_form(project, pool, store, who):
        st.rerun()


def choose_queue(found: LabelProgress) -> str:
    """Which images the deck shows; asked only where there is a choice."""
    queues = {name: words for name, words in QUEUES.items() if name == "drawn" or getattr(found, name)}
    if len(queues) == 1:
        return "drawn"
    chosen = st.selectbox(
        "Show", list(queues), format_func=queues.get, key="label_queue", width=180, label_visibility="collapsed"
    )
    return str(chosen)


def label(project: Project, store: LabelStore, who: str, queue: str) -> None:
    """The deck, once there are classes."""
    if elements.deck(project, store, annotator=who, queue=queue):
        st.rerun()


def grid(project: Project, store: LabelStore, who: str) -> None:
    n = st.segmented_control(
        "At once",
        GRID_SIZES,
        format_func=lambda number: f"{number} at once",
        default=GRID_SIZES[1],
        required=True,
        key="label_grid_n",
        label_visibility="collapsed",
    )
    elements.grid(project, store, annotator=who, n=int(n or GRID_SIZES[1]))


def is_complete(found: LabelProgress) -> None:
    with st.container(border=True):
        st.success(literal(found.note, 600), icon=":material/check_circle:")
        st.page_link("train.py", label="Go to Train", icon=":material/arrow_forward:")


def head(project: Project, who: str, found: LabelProgress) -> tuple[str, str]:
    """Title, the views, which images and who labels, in little height: the picture comes first."""
    st.caption(literal(project.title))
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.header(BY_KEY["label"].title, anchor=False, width="content")
        view = st.segmented_control(
            "View",
            list(VIEWS),
            format_func=VIEWS.get,
            default="deck",
            required=True,
            key="label_view",
            label_visibility="collapsed",
        )
        queue = choose_queue(found) if view == "deck" and found.per_class else "drawn"
        with st.popover(literal(who, 24), icon=":material/person:", help="Who labels"):
            ask_name("Change the name")
    return str(view), queue


def main() -> None:
    project = projects.require("label")
    store, pool = open_store(project), project.pool()
    who = annotator()
    coreset = coreset_labels.chosen(project)
    if coreset is not None and who is not None:
        coreset_labels.show(project, pool, store, coreset, who)
        return
    if who is None or store.drawings.latest() is None:
        projects.title(BY_KEY["label"].title, BY_KEY["label"].purpose)
        if who is None:
            ask_name("Start")
        else:
            draw_first(project, pool, store, who)
        return
    found = progress(store, annotator=who)
    view, queue = head(project, who, found)
    if found.complete:
        is_complete(found)
    if view in ("deck", "grid") and not len(store.classes):
        st.markdown("**Now the classes.**")
        classes.editor(pool, store, who)
        exchange.reference(pool, store)
    elif view == "deck":
        label(project, store, who, queue)
    elif view == "grid":
        grid(project, store, who)
    elif view == "classes":
        classes.editor(pool, store, who)
    elif view == "subset":
        report.numbers(found)
        report.per_class(found)
        st.markdown("**Draw more**")
        if subset.draw_form(project, pool, store, who):
            st.rerun()
        subset.drawings_table(store)
    elif view == "agreement":
        report.agreements(project, store, who, found.disputed)
    else:
        exchange.exchange(project, pool, store, who)


main()
