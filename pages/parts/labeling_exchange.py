"""Labels in and out: CSV, Label Studio, the pool's reference labels."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pandas as pd
import streamlit as st

from pages.parts import dropped, errors, urls
from pages.parts.text import count, literal
from semiprune_core.errors import SemiPruneError
from semiprune_core.labeling import LabelStore
from semiprune_core.labeling.exchange.csv_files import csv_columns, guess_columns, is_label_studio
from semiprune_core.labeling.exchange.pictures import picture_note, served_pictures
from semiprune_core.labeling.export_labels import label_studio_config
from semiprune_core.labeling.import_labels import (
    ImportResult,
    import_csv,
    import_label_studio,
    preview_csv,
    take_reference,
)
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project

MAX_MB = 200
RESULT = "labels_import"
SHOWN_CLASSES = 10
NO_COLUMN = ""
COLUMN_WORDS = {"path": "Path", "image_id": "Image id", "label": "Label", "annotator": "Annotator"}


def exchange(project: Project, pool: Pool, store: LabelStore, annotator: str) -> None:
    _show_result()
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**Import labels**")
        reference(pool, store)
        _file(pool, store, annotator)
    with right:
        st.markdown("**Export labels**")
        _exports(project, store)
        _drawn(project, store)


def reference(pool: Pool, store: LabelStore) -> None:
    """The shortcut for demos and benchmarks, where the pool came with labels."""
    if not pool.class_names or store.drawings.latest() is None:
        return
    with st.container(border=True):
        st.write("This pool came with reference labels. For a demo or a benchmark they can stand in for human labels.")
        if st.button("Use reference labels for the drawn images", key="labels_reference"):
            _take(lambda: take_reference(store, pool))


def _file(pool: Pool, store: LabelStore, annotator: str) -> None:
    with st.container(border=True):
        st.write("A CSV (path or image_id, label, optional annotator), or Label Studio's JSON, JSON_MIN or CSV.")
        file = dropped.one_file("labels")
        create = st.checkbox("Add missing classes", key="labels_create")
        replace = st.checkbox("Replace labels that differ", key="labels_replace")
        if file is None:
            return
        st.caption(f"Ready: {literal(file.name)}")
        read: Callable[..., ImportResult] = import_label_studio
        if not file.name.lower().endswith(".json"):
            try:
                columns = _columns(pool, store, file.read(MAX_MB))
            except SemiPruneError as error:
                errors.show(error)
                return
            if columns is None:
                return
            read = functools.partial(import_csv, columns=columns)
        if not st.button("Import", type="primary", key="labels_go"):
            return
        _take(
            lambda: read(
                store,
                pool,
                file.read(MAX_MB),
                annotator=annotator,
                create_missing_classes=create,
                replace=replace,
            )
        )


def _columns(pool: Pool, store: LabelStore, data: bytes) -> dict[str, str] | None:
    """Which column is what, asked with what the file would bring in view; None until that is clear."""
    names = csv_columns(data)
    chosen = {} if is_label_studio(names) else _chosen(names)
    if chosen is None:
        st.caption("Choose the column with the label, and the one with the path or the image's id.")
        return None
    found = preview_csv(store, pool, data, columns=chosen)
    classes = ", ".join(f"{literal(name, 40)} {n:,}" for name, n in list(found.per_class.items())[:SHOWN_CLASSES])
    more = f" and {len(found.per_class) - SHOWN_CLASSES} more" if len(found.per_class) > SHOWN_CLASSES else ""
    st.markdown(f"{count(found.n_rows, 'row')}, labels for {count(found.n_images, 'image')}: {classes}{more}")
    st.caption(
        f"{count(found.n_unknown, 'row')} without an image of this pool. {found.n_left:,} of {found.n_pool:,} images "
        f"stay unlabeled. New classes: {literal(', '.join(found.new_classes[:SHOWN_CLASSES]), 300) or 'none'}."
    )
    if found.warning:
        st.warning(found.warning, icon=":material/warning:")
    return chosen


def _chosen(names: tuple[str, ...]) -> dict[str, str] | None:
    """The columns a person chose by what they are for; None until label and image have theirs."""
    guess, chosen = guess_columns(names), {}
    with st.container(horizontal=True):
        for role, words in COLUMN_WORDS.items():
            options = [NO_COLUMN, *dict.fromkeys(names)]
            place = options.index(guess[role]) if role in guess else 0
            name = st.selectbox(
                words, options, index=place, key=f"labels_column_{role}", format_func=lambda name: name or "none"
            )
            if name:
                chosen[role] = name
    return chosen if "label" in chosen and {"path", "image_id"} & set(chosen) else None


def _take(work: Callable[[], ImportResult]) -> None:
    with errors.shown():
        with st.spinner("Importing"):
            st.session_state[RESULT] = work()
        dropped.forget("labels")
        st.rerun()


def _show_result() -> None:
    result: ImportResult | None = st.session_state.pop(RESULT, None)
    if result is None:
        return
    words = [f"Imported {result.n_saved:,} of {count(result.n_rows, 'label')}."]
    if result.n_unchanged:
        words.append(f"Already there: {result.n_unchanged:,}.")
    if result.new_classes:
        words.append(f"New classes: {', '.join(result.new_classes[:10])}.")
    st.success(literal(" ".join([*words, *result.warnings]), 1000), icon=":material/check_circle:")
    if result.problems:
        st.warning(f"Not imported: {count(result.problems.n_rows, 'row')}.", icon=":material/warning:")
        rows = [
            {"Row": problem.row, "Value": problem.value, "Reason": problem.message, "Code": problem.code}
            for problem in result.problems[:5000]
        ]
        st.dataframe(pd.DataFrame(rows), hide_index=True, height=min(300, 38 * (len(rows) + 1)))


def _exports(project: Project, store: LabelStore) -> None:
    if not store.labels().ids.size:
        st.caption("No labels yet.")
        return
    for name, words in (
        ("csv", "Labels as CSV, safe for spreadsheets"),
        ("exact", "Labels as CSV, exact"),
        ("answers", "All annotators' answers as CSV"),
        ("label-studio", "Label Studio tasks (JSON)"),
    ):
        st.link_button(words, urls.labels(project.name, name), icon=":material/download:")
    with st.expander("Labeling interface and pictures for Label Studio"):
        st.write(literal(picture_note(served_pictures(project.pool())), 1000))
        st.code(label_studio_config(store.classes.all()), language=None, wrap_lines=True)


def _drawn(project: Project, store: LabelStore) -> None:
    """The drawn images themselves: for people who label elsewhere."""
    if store.drawings.latest() is None:
        return
    st.markdown("**Export the drawn images**")
    for name, words, help_text in (
        ("drawn", "Drawn images as CSV", "Every drawn image with its label, or that it has none yet."),
        (
            "drawn-tasks",
            "Unlabeled ones for Label Studio (ZIP)",
            "Tasks, pictures and interface of the drawn images without a label. Unpack it into the root of Label "
            "Studio's local files; its export can be imported here.",
        ),
    ):
        st.link_button(words, urls.labels(project.name, name), icon=":material/download:", help=help_text)
