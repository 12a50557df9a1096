"""A new project: a name, a source, the training cache's form."""

from __future__ import annotations

import streamlit as st

from pages.parts import errors, import_form
from pages.parts import project as projects
from semiprune_core.importing import ImportSettings, begin_project
from semiprune_core.labeling.events import check_person
from semiprune_core.project.pool import SIZES, PoolSettings

FITS = {"crop": "Crop to the centre", "pad": "Pad to a square", "stretch": "Stretch to a square"}

st.header("New project", anchor=False)
title = st.text_input("Name", placeholder="Taken from the source if left empty", max_chars=80)
spec = import_form.choose_source("new")
annotator = import_form.choose_annotator("new", spec)

with st.expander("Training cache", icon=":material/tune:"):
    st.caption(
        "Models train on small square copies of the images. Auto decides from the first few. The originals are "
        "not changed."
    )
    left, middle, right = st.columns(3)
    side = left.selectbox(
        "Size", ["Auto", *SIZES], format_func=lambda value: value if value == "Auto" else f"{value} px"
    )
    channels = middle.selectbox("Colour", ["Auto", 3, 1], format_func={"Auto": "Auto", 3: "Colour", 1: "Grey"}.get)
    fit = right.selectbox("Non-square images", list(FITS), format_func=FITS.get)
    mixed = (side == "Auto") != (channels == "Auto")
    if mixed:
        st.caption("Choose both, or leave both on Auto.")

features = import_form.choose_features("new")
if st.button("Import", type="primary", icon=":material/download:", disabled=spec is None or mixed) and spec is not None:
    name = title.strip() or import_form.name_of(spec, "new")
    pool = None if side == "Auto" else PoolSettings(size=int(side), channels=int(channels), fit=str(fit)).to_json()
    with errors.shown():
        if annotator is not None:
            check_person(annotator)
        settings = ImportSettings(source=spec.to_json(), pool=pool, features=features, annotator=annotator or "")
        project = begin_project(projects.workspace(), name, settings)
        st.session_state.pop("new_arrived", None)
        projects.choose(project.name)
        st.switch_page("pool.py")
if spec is None:
    st.caption("Choose a source to continue.")
