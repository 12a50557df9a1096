"""The one gallery: pages of pictures with class, confidence and badges, sorted by any column, to label or flag."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.parts import annotator_name, components, errors, find_panel, urls
from pages.parts.image_dialog import open_image
from pages.parts.text import count, literal
from semiprune_core.labeling import open_store
from semiprune_core.maps.map_view import Columns, columns_of
from semiprune_core.project.pool import Pool, show_id
from semiprune_core.project.workspace import Project
from semiprune_core.records import IntArray
from semiprune_core.trust import review

PER_PAGE = 60
CELLS = {"S": 84, "M": 112, "L": 180}
AS_GIVEN = "As given"
ORDERS = {"up": "Ascending", "down": "Descending"}


def show(project: Project, pool: Pool, positions: IntArray, *, key: str, given: str = AS_GIVEN) -> None:
    """Draw these images of the pool, a page of them, with what may be done to a selection.

    ``given`` names the order in which they come.
    """
    columns = columns_of(project, pool)
    message = st.session_state.pop(f"{key}_message", None)
    if message:
        st.toast(message, icon=":material/check:")
    if not len(positions):
        st.info("No images here.", icon=":material/search_off:")
        return
    positions, is_found = find_panel.order(project, positions, key=key, pool=pool)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        given = find_panel.FIRST if is_found else given
        titles = {AS_GIVEN: given, **{column.key: column.title for column in columns.by_key.values()}}
        by = st.selectbox("Sort by", list(titles), format_func=titles.get, key=f"{key}_sort", width=180)
        way = _way(key) if by != AS_GIVEN else "up"
        cell = st.segmented_control("Size", list(CELLS), default="M", required=True, key=f"{key}_cell")
        pages = -(-len(positions) // PER_PAGE)
        page = st.pagination(pages, key=f"{key}_page_{pages}") if pages > 1 else 1
    ordered = sort_by(columns, positions, str(by), way == "down")
    shown = ordered[(page - 1) * PER_PAGE : page * PER_PAGE]
    bar = st.container(horizontal=True, vertical_alignment="bottom")
    turn = st.session_state.get(f"{key}_turn", 0)
    chosen = components.chooser(
        items(project, columns, shown), key=f"{key}_gallery", cell=CELLS[str(cell)], round=str(turn)
    )
    with bar:
        actions(project, pool, positions, chosen.ids, key)
    if chosen.opened:
        open_image(project, pool, chosen.opened, key)


def _way(key: str) -> str:
    return str(
        st.segmented_control(
            "Order", list(ORDERS), format_func=ORDERS.get, default="up", required=True, key=f"{key}_way"
        )
    )


def sort_by(columns: Columns, positions: IntArray, key: str, down: bool) -> IntArray:
    """Positions ordered by a column; unknown values last, equal ones as they were given."""
    if key not in columns.by_key:
        return positions
    column = columns[key]
    values = (column.codes if column.codes is not None else column.values)[positions].astype(np.float64)  # type: ignore[index]
    unknown = ~np.isfinite(values) | (column.is_class & (values < 0))
    return positions[np.lexsort((-values if down else values, unknown))]


def items(project: Project, columns: Columns, positions: IntArray) -> list[components.Item]:
    """What a picture says of itself: its class with its colour, its confidence, where that class comes from."""
    by_key = columns.by_key
    label = next((by_key[key] for key in ("pseudo", "human", "reference") if key in by_key), None)
    pictures = []
    for position in positions.tolist():
        code = int(label.codes[position]) if label is not None and label.codes is not None else -1
        by_person = "human" in by_key and by_key["human"].told(position) is not None
        confidence = float(by_key["confidence"].values[position]) if "confidence" in by_key else None  # type: ignore[index]
        badges = ["person"] if by_person else []
        badges += [by_key["corruption"].told(position)] if "corruption" in by_key else []
        badges += ["flagged"] if "flagged" in by_key and by_key["flagged"].told(position) else []
        truth = by_key["reference"].told(position) if "reference" in by_key else None
        differs = label is not None and label.key != "reference" and truth not in (None, label.told(position))
        words = [
            f"ref. {truth}" if differs else "",
            f"{confidence:.0%}" if confidence is not None and confidence == confidence else "",
        ]
        image_id = show_id(columns.pool.ids[position])
        pictures.append(
            components.Item(
                id=image_id,
                src=urls.picture(project.name, image_id),
                title=label.names[code] if label is not None and code >= 0 else "",
                note=" · ".join(word for word in words if word),
                color=label.colours[code] if label is not None and code >= 0 else "",
                hint=columns.pool.path(position),
                value=None if by_person or confidence is None or confidence != confidence else confidence,
                badges=tuple(badge for badge in badges if badge),
            )
        )
    return pictures


def actions(project: Project, pool: Pool, positions: IntArray, chosen: tuple[str, ...], key: str) -> None:
    """Label, flag, or put into the next draw: the selected images, or all of the list."""
    store = open_store(project)
    ids = [int(image_id, 16) for image_id in chosen]
    everything = st.toggle(
        f"All {len(positions):,}", key=f"{key}_all", help="Act on the whole list, not just this page."
    )
    if everything:
        ids = [int(number) for number in pool.ids[positions]]
    names = [label_class.name for label_class in store.classes.all() if label_class.merged_into is None]
    words = count(len(ids), "image") if ids else "nothing selected"
    target = st.selectbox("Class", names, index=None, key=f"{key}_class", width=170, placeholder="Choose a class")
    annotator = annotator_name.current()
    disabled = not ids or annotator is None
    label = st.button(
        f"Label {words}" if ids else "Label", key=f"{key}_label", type="primary", disabled=disabled or target is None
    )
    flag = st.button("Flag", key=f"{key}_flag", icon=":material/flag:", disabled=disabled)
    draw = st.button(
        "Add to the next draw", key=f"{key}_draw", icon=":material/playlist_add:", disabled=disabled,
        help="Queues these images on the Label page. They do not count as a random sample.",
    )  # fmt: skip
    if annotator is None:
        annotator_name.ask_in_row(key)
        return
    with errors.shown():
        if label and target is not None:
            review.label_images(store, ids, target, annotator=annotator)
            done(key, f"Labeled {count(len(ids), 'image')} as {literal(target)}. Human labels win over the model's.")
        elif flag:
            review.flag_images(store, ids, annotator=annotator)
            done(key, f"Flagged {count(len(ids), 'image')}.")
        elif draw:
            places = pool.positions(np.array(ids, dtype=np.uint64))
            drawing = review.add_to_next_draw(store, pool, places, annotator=annotator)
            done(key, f"Queued {count(len(drawing), 'image')} on the Label page.")


def done(key: str, words: str) -> None:
    """Say what was done, begin a new selection, and let the whole page see the change."""
    st.session_state[f"{key}_message"] = words
    st.session_state[f"{key}_turn"] = st.session_state.get(f"{key}_turn", 0) + 1
    st.rerun()
