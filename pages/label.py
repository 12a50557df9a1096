"""Label: draw a random share of the pool and label it."""

from __future__ import annotations

import streamlit as st

from pages.parts import annotator_name, coreset_labels, finish_panel, grown_pool, labeler, views
from pages.parts import labeling_classes as classes
from pages.parts import labeling_elements as elements
from pages.parts import labeling_exchange as exchange
from pages.parts import labeling_report as report
from pages.parts import labeling_subset as subset
from pages.parts import project as projects
from pages.parts.text import literal
from semiprune_core.labeling import LabelStore, open_store
from semiprune_core.labeling.progress_report import LabelProgress, further_ids, progress
from semiprune_core.project import rights
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.steps import BY_KEY

VIEWS = {
    "deck": ":material/style: Deck",
    "grid": ":material/grid_view: Grid",
    "classes": ":material/category: Classes",
    "subset": ":material/casino: Subset",
    "agreement": ":material/group: Agreement",
    "exchange": ":material/swap_horiz: Import and export",
}
QUEUES = {
    "drawn": "Drawn images",
    "further": "Further images, with suggestions",
    "skipped": "Skipped images",
    "flagged": "Flagged images",
}
PRACTICE = "label_practice_of"
"""In the session: the project in which somebody practices."""
GRID_SIZES = (60, 120, 240)


def draw_first(project: Project, pool: Pool, store: LabelStore, annotator: str) -> None:
    """Nothing is drawn yet: choose how much to label."""
    st.markdown("**First, draw the images to label.** A random sample gives an unbiased measure of the model's labels.")
    if subset.draw_form(project, pool, store, annotator):
        st.rerun()


def choose_queue(store: LabelStore, standing: LabelProgress) -> str:
    """Which images the deck shows; asked only where there is a choice."""
    there = {"drawn": 1, "further": len(further_ids(store)), "skipped": standing.skipped, "flagged": standing.flagged}
    queues = {name: words for name, words in QUEUES.items() if there[name]}
    if len(queues) == 1:
        return "drawn"
    chosen = st.selectbox(
        "Show", list(queues), format_func=queues.get, key="label_queue", width=180, label_visibility="collapsed"
    )
    return str(chosen)


def label(project: Project, store: LabelStore, annotator: str, queue: str) -> None:
    """The deck, once there are classes."""
    if elements.deck(project, store, annotator=annotator, queue=queue):
        st.rerun()


def grid(project: Project, store: LabelStore, annotator: str) -> None:
    n = st.segmented_control(
        "At once",
        GRID_SIZES,
        format_func=lambda number: f"{number} at once",
        default=GRID_SIZES[1],
        required=True,
        key="label_grid_n",
        label_visibility="collapsed",
    )
    elements.grid(project, store, annotator=annotator, n=int(n or GRID_SIZES[1]))


def is_complete(project: Project, standing: LabelProgress) -> None:
    with st.container(border=True):
        st.success(literal(standing.note, 600), icon=":material/check_circle:")
        finish_panel.draw(project, key="label")
        with st.container(horizontal=True, vertical_alignment="center"):
            st.page_link("train.py", label="Or step by step: go to Train", icon=":material/arrow_forward:")
            offer_practice(project, open_store(project))


def offer_practice(project: Project, store: LabelStore) -> None:
    """Where there are labels: the deck over some of them, to see what labeling is like."""
    if not store.labels().ids.size:
        return
    help_text = "Label some images that have a label, see how often you agree. Nothing is saved."
    if st.button("Practice on 20 images", key="label_practice", icon=":material/school:", help=help_text):
        st.session_state[PRACTICE] = project.name
        st.rerun()


def practice(project: Project, store: LabelStore) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.header("Practice", anchor=False, width="content")
        if st.button("End practice", key="label_practice_end", icon=":material/close:"):
            st.session_state.pop(PRACTICE)
            st.rerun()
    st.caption("Press the key beside a class, or ? for all keys. Nothing is saved.")
    elements.deck(project, store, annotator="practice", queue="practice")


def head(project: Project, store: LabelStore, annotator: str, standing: LabelProgress) -> tuple[str, str]:
    """Title, the views, which images and who labels, in little height: the picture comes first."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.header(BY_KEY["label"].title, anchor=False, width="content")
        view = views.choose(VIEWS, key="label_view")
        queue = choose_queue(store, standing) if view == "deck" and standing.per_class else "drawn"
        if annotator_name.is_typed():
            with st.popover(literal(annotator, 24), icon=":material/person:", help="Who is labeling"):
                annotator_name.ask("Change name")
    return str(view), queue


def main() -> None:
    project = projects.require("label")
    store, pool = open_store(project), project.pool()
    annotator = annotator_name.recall()
    if annotator is not None and not rights.allows("review", project.name):
        labeler.show(project, store, annotator)
        return
    coreset = coreset_labels.chosen(project)
    if coreset is not None and annotator is not None:
        coreset_labels.show(project, pool, store, coreset, annotator)
        return
    if st.session_state.get(PRACTICE) == project.name:
        practice(project, store)
        return
    if annotator is None or store.drawings.latest() is None:
        projects.title(BY_KEY["label"].title, BY_KEY["label"].purpose)
        if annotator is None:
            annotator_name.ask("Start")
            offer_practice(project, store)
        else:
            draw_first(project, pool, store, annotator)
        return
    standing = progress(store, annotator=annotator)
    view, queue = head(project, store, annotator, standing)
    is_short = grown_pool.offer(project, pool, key="label")
    if standing.complete and not is_short:
        is_complete(project, standing)
        if view == "deck" and subset.draw_for_classes(project, pool, store, annotator, standing):
            st.rerun()
    if view in ("deck", "grid") and not len(store.classes):
        st.markdown("**Now add the classes.**")
        classes.editor(pool, store, annotator)
        exchange.reference(pool, store)
    elif view == "deck":
        label(project, store, annotator, queue)
    elif view == "grid":
        grid(project, store, annotator)
    elif view == "classes":
        classes.editor(pool, store, annotator)
    elif view == "subset":
        report.numbers(standing)
        report.per_class(standing)
        if subset.draw_for_classes(project, pool, store, annotator, standing):
            st.rerun()
        st.markdown("**Draw more**")
        if subset.draw_form(project, pool, store, annotator):
            st.rerun()
        subset.drawings_table(store)
    elif view == "agreement":
        report.agreements(project, store, annotator, standing.disputed)
    else:
        exchange.exchange(project, pool, store, annotator)


main()
