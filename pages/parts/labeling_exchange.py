"""Labels in and out: CSV, Label Studio, the pool's reference labels."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import streamlit as st

from pages.parts import dropped, errors, urls
from pages.parts.text import count, literal
from semiprune_core.labeling import LabelStore
from semiprune_core.labeling.export_labels import label_studio_config
from semiprune_core.labeling.import_labels import ImportResult, import_csv, import_label_studio, take_reference
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project

MAX_MB = 200
RESULT = "labels_import"


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
        st.write("A CSV (path or image_id, label, optional annotator) or JSON from Label Studio.")
        file = dropped.one_file("labels")
        create = st.checkbox("Add missing classes", key="labels_create")
        replace = st.checkbox("Replace labels that differ", key="labels_replace")
        if file is None:
            return
        st.caption(f"Ready: {literal(file.name)}")
        if not st.button("Import", type="primary", key="labels_go"):
            return
        read = import_label_studio if file.name.lower().endswith(".json") else import_csv
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
    with st.expander("Labeling interface for Label Studio"):
        st.code(label_studio_config(store.classes.all()), language=None, wrap_lines=True)
