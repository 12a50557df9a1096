"""A new project: a name, a source, the training cache's form."""

from __future__ import annotations

import streamlit as st

from pages.parts import import_form
from pages.parts import project as projects
from pages.parts.text import literal
from semiprune_core import jobs
from semiprune_core.errors import SemiPruneError
from semiprune_core.importing import ImportSettings
from semiprune_core.pool import SIZES, PoolSettings

FITS = {"crop": "Cut out the middle", "pad": "Pad to a square", "stretch": "Stretch to a square"}

st.header("New project", anchor=False)
title = st.text_input("Name", placeholder="Warehouse photos", max_chars=80)
spec = import_form.choose_source("new")

with st.expander("Training cache", icon=":material/tune:"):
    st.caption(
        "Models train on small square copies of the images. Auto looks at the first ones; originals stay as they are."
    )
    left, middle, right = st.columns(3)
    side = left.selectbox(
        "Size", ["Auto", *SIZES], format_func=lambda value: value if value == "Auto" else f"{value} px"
    )
    channels = middle.selectbox("Colour", ["Auto", 3, 1], format_func={"Auto": "Auto", 3: "Colour", 1: "Grey"}.get)
    fit = right.selectbox("Not square?", list(FITS), format_func=FITS.get)
    if (side == "Auto") != (channels == "Auto"):
        st.caption("Choose both, or leave both on Auto.")

ready = spec is not None and bool(title.strip()) and (side == "Auto") == (channels == "Auto")
if st.button("Import", type="primary", icon=":material/download:", disabled=not ready) and spec is not None:
    pool = None if side == "Auto" else PoolSettings(size=int(side), channels=int(channels), fit=str(fit)).to_json()
    try:
        project = projects.workspace().create(title)
        jobs.submit(
            project, "import", ImportSettings(source=spec.to_json(), pool=pool).to_json(), title=f"Importing {title}"
        )
    except SemiPruneError as error:
        st.error(literal(str(error), 1000), icon=":material/error:")
    else:
        projects.choose(project.name)
        st.switch_page("pool.py")
if not ready:
    st.caption("Give it a name and choose a source.")
