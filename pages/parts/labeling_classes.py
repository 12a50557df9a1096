"""The classes: add, rename, merge, reorder, colour, key."""

from __future__ import annotations

import functools

import pandas as pd
import streamlit as st

from pages.parts import dropped, errors
from pages.parts.text import count, literal
from semiprune_core.labeling import LabelStore
from semiprune_core.labeling.classes import Added, LabelClass, read_class_csv, read_class_list
from semiprune_core.labeling.exchange.rows import decode_text
from semiprune_core.project.pool import Pool

MAX_MB = 64
MOST_PICKERS = 40


def editor(pool: Pool, store: LabelStore, annotator: str) -> None:
    """Everything about classes, on one page."""
    _show_message()
    sheet = store.classes.all()
    if sheet:
        _table(store, sheet, annotator)
    else:
        st.write("No classes yet. Add the classes to label with; you can add more at any time, even while labeling.")
    left, right = st.columns(2, gap="large")
    with left:
        _add(pool, store, sheet, annotator)
    with right:
        if sheet:
            _merge_or_remove(store, sheet, annotator)


def _table(store: LabelStore, sheet: list[LabelClass], annotator: str) -> None:
    frame = pd.DataFrame(
        {
            "Place": range(1, len(sheet) + 1),
            "Name": [label_class.name for label_class in sheet],
            "Key": [label_class.key for label_class in sheet],
        }
    )
    edited = st.data_editor(
        frame,
        key=f"classes_table_{store.last_seq}",
        hide_index=True,
        num_rows="fixed",
        column_config={
            "Place": st.column_config.NumberColumn(
                min_value=0, max_value=len(sheet) + 1, step=0.5, width="small", format="%g"
            ),
            "Name": st.column_config.TextColumn(required=True, max_chars=255, width="large"),
            "Key": st.column_config.TextColumn(
                max_chars=1, width="small", help="A digit or a letter other than f and z."
            ),
        },
        height=min(420, 35 * (len(sheet) + 1) + 3),
    )
    st.caption("Edit a cell to rename a class or to change its place or key. Every change is saved at once.")
    if not edited.equals(frame):
        errors.attempt(lambda: _save(store, sheet, edited, annotator))
    _colours(store, sheet, annotator)


def _colours(store: LabelStore, sheet: list[LabelClass], annotator: str) -> None:
    """A picker for every class, or for one at a time where there are many."""
    shown = sheet
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(sheet) > MOST_PICKERS:
            chosen = st.selectbox("Colour of", sheet, format_func=lambda one: one.name, key="classes_colour", width=240)
            shown = [chosen] if chosen is not None else []
        for label_class in shown:
            key = f"classes_colour_{label_class.class_id}_{label_class.colour}"
            colour = st.color_picker(literal(label_class.name, 30), label_class.colour, key=key, width="content")
            if colour.lower() != label_class.colour.lower():
                errors.attempt(
                    functools.partial(store.classes.set_colour, label_class.class_id, colour, annotator=annotator)
                )


def _save(store: LabelStore, sheet: list[LabelClass], edited: pd.DataFrame, annotator: str) -> None:
    rows = edited.to_dict("records")
    keys = {
        label_class.class_id: str(row["Key"] or "").strip().lower()
        for label_class, row in zip(sheet, rows, strict=True)
    }
    moved = [label_class for label_class in sheet if keys[label_class.class_id] != label_class.key]
    for label_class in moved:  # free them all first, so that two classes can swap their keys
        store.classes.set_key(label_class.class_id, "", annotator=annotator)
    for label_class, row in zip(sheet, rows, strict=True):
        if row["Name"] != label_class.name:
            store.classes.rename(label_class.class_id, str(row["Name"] or ""), annotator=annotator)
    for label_class in moved:
        store.classes.set_key(label_class.class_id, keys[label_class.class_id], annotator=annotator)
    order = sorted(range(len(sheet)), key=lambda number: (rows[number]["Place"], number))
    if order != list(range(len(sheet))):
        store.classes.reorder([sheet[number].class_id for number in order], annotator=annotator)


def _add(pool: Pool, store: LabelStore, sheet: list[LabelClass], annotator: str) -> None:
    present = {label_class.name for label_class in sheet}
    missing = [name for name in store.classes.book().without_class(pool.class_names) if name not in present]
    if missing:
        words = f"Use the {count(len(missing), 'reference class', 'reference classes')}"
        if st.button(words, key="classes_reference", type="secondary" if sheet else "primary"):
            errors.attempt(lambda: _remember_message(store.classes.add(missing, annotator=annotator)))
    with st.form("classes_add", clear_on_submit=True):
        text = st.text_area("Add classes, one per line", placeholder="cat\ndog", key="classes_text")
        if st.form_submit_button("Add") and text.strip():
            errors.attempt(lambda: _remember_message(store.classes.add(read_class_list(text), annotator=annotator)))
    st.write("Or a CSV with a column called name, class or label.")
    file = dropped.one_file("classes")
    if file is not None and st.button("Add classes from the CSV", key="classes_csv"):
        errors.attempt(lambda: _add_from(file, store, annotator))


def _add_from(file: dropped.Dropped, store: LabelStore, annotator: str) -> None:
    wanted = read_class_csv(decode_text(file.read(MAX_MB)))
    _remember_message(store.classes.add(wanted, annotator=annotator))
    dropped.forget("classes")


def _merge_or_remove(store: LabelStore, sheet: list[LabelClass], annotator: str) -> None:
    names = {label_class.class_id: label_class.name for label_class in sheet}
    if len(sheet) > 1:
        st.markdown("**Merge**")
        source = st.selectbox("Class", list(names), format_func=names.get, key="classes_from")
        target = st.selectbox(
            "Into", [number for number in names if number != source], format_func=names.get, key="classes_into"
        )
        st.caption("All its labels, past and future, count for the other class. The history keeps both.")
        if st.button("Merge", key="classes_merge"):
            errors.attempt(lambda: store.classes.merge(source, target, annotator=annotator))
    st.markdown("**Remove**")
    st.caption("A class that has labels cannot be removed. Merge it into another one.")
    unwanted = st.selectbox("Class to remove", list(names), format_func=names.get, key="classes_unwanted")
    if st.button("Remove", key="classes_remove"):
        errors.attempt(lambda: store.classes.remove(unwanted, annotator=annotator))


def _remember_message(added: Added) -> None:
    """What to say after the rerun."""
    words = [f"Added {count(len(added.classes), 'class', 'classes')}."]
    if added.existing:
        words.append(f"Already there: {len(added.existing):,}.")
    st.session_state["classes_message"] = " ".join([*words, *added.warnings])


def _show_message() -> None:
    words = st.session_state.pop("classes_message", None)
    if words:
        st.success(literal(words, 1000), icon=":material/check_circle:")
