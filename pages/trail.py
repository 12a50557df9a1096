"""Trail: who did what in the project, when."""

from __future__ import annotations

import csv
import io

import pandas as pd
import streamlit as st

from pages.parts import identity
from pages.parts import project as projects
from semiprune_core.accounts import Managing, as_rows
from semiprune_core.project.workspace import Project

ICON = "history"
SHOWN = 1000
TITLES = {
    "at": "When (UTC)",
    "account": "Who",
    "act": "What",
    "project": "Project",
    "note": "Details",
    "address": "From",
}


def choose(acts: Managing, project: Project | None) -> tuple[str | None, str]:
    """Which part of the trail, and the words to look for."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        search = st.text_input("Search", key="trail_search", width=320, placeholder="ada labels")
        everything = acts.rights.allows("manage accounts") and (
            project is None or st.toggle("Everything on the server", key="trail_everything")
        )
    return (None if everything or project is None else project.name), search


def main() -> None:
    acts, project = identity.manage(), projects.current()
    projects.title("Trail", "Who did what, when. Entries are only added; single labels stand in the label store.")
    if project is None and not acts.rights.allows("manage accounts"):
        st.info("No project is open.", icon=":material/folder_open:")
        st.page_link("home.py", label="Go to Projects", icon=":material/arrow_forward:")
        return
    place, search = choose(acts, project)
    entries = acts.trail(place, search, limit=SHOWN)
    if not entries:
        st.info("Nothing here.", icon=":material/search_off:")
        return
    rows = pd.DataFrame([{title: getattr(entry, name) for name, title in TITLES.items()} for entry in entries])
    st.dataframe(rows, hide_index=True, height=min(600, 38 * (len(rows) + 1)))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(as_rows(entries))
    name = f"{place or 'server'}-trail-{entries[0].seq}.csv"
    st.download_button("Download as CSV", text.getvalue(), name, "text/csv", icon=":material/download:")


main()
