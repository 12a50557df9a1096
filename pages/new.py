"""A new project: a name, a source, what the net sees of its images."""

from __future__ import annotations

import streamlit as st

from pages.parts import errors, import_form, net_view
from pages.parts import project as projects
from semiprune_core.importing import ImportSettings, begin_project
from semiprune_core.labeling.events import check_person

st.header("New project", anchor=False)
title = st.text_input("Name", placeholder="Taken from the source if left empty", max_chars=80)
spec = import_form.choose_source("new")
copies, fit, show_copies = net_view.choose(spec)
annotator = import_form.choose_annotator("new", spec)
features = import_form.choose_features("new")
if st.button("Import", type="primary", icon=":material/download:", disabled=spec is None) and spec is not None:
    name = title.strip() or import_form.name_of(spec, "new")
    with errors.shown():
        if annotator is not None:
            check_person(annotator)
        settings = ImportSettings(
            source=spec.to_json(), pool=copies or None, fit=fit, features=features, annotator=annotator or ""
        )
        project = begin_project(projects.workspace(), name, settings)
        st.session_state.pop("new_arrived", None)
        projects.choose(project.name)
        st.switch_page("pool.py")
if spec is None:
    st.caption("Choose a source to continue.")
show_copies()
