"""Evaluate: does the coreset beat random?"""

from __future__ import annotations

import streamlit as st

from pages.parts import project as projects
from semiprune_core.line import BY_KEY

projects.require("evaluate")
projects.title(BY_KEY["evaluate"].title, BY_KEY["evaluate"].purpose)
st.info(
    "This version does not train on coresets by itself. To compare by hand: build a coreset and a Random one at one "
    "ratio on the Select page, export both, train your model on each with several seeds, and compare on your test set.",
    icon=":material/balance:",
)
st.page_link("select.py", label="Go to Select", icon=":material/arrow_forward:")
