"""Trackers: who else follows the runs of this workspace. Off unless somebody wants it."""

from __future__ import annotations

import streamlit as st

from pages.parts import errors
from pages.parts.text import literal
from semiprune_core.errors import SemiPruneError
from semiprune_core.project.workspace import Workspace
from semiprune_core.server.access import lets_others_in
from semiprune_core.tracking import (
    TRACKERS,
    VARIABLE,
    check_trackers,
    chosen_trackers,
    keep_trackers,
    lacking,
    set_outside,
)


def draw(workspace: Workspace) -> None:
    """Which trackers follow all runs and coresets of the workspace."""
    with st.expander("Trackers", icon=":material/monitoring:"):
        st.caption(
            "Follow the runs and coresets of all projects elsewhere too: curves, settings, manifests. A tracker that "
            "fails never stops a run; the run's log says so."
        )
        try:
            chosen = chosen_trackers(workspace)
        except SemiPruneError as error:
            errors.show(error)
            return
        fixed = set_outside() or lets_others_in()
        wanted = {name: address for name in TRACKERS if (address := _asked(name, chosen, fixed)) is not None}
        if set_outside():
            st.caption(f"Set by {VARIABLE}.")
        elif fixed:
            st.caption("Others can come in here, so only the command line (semiprune train NAME --track) changes this.")
        elif st.button("Save", key="trackers_save", disabled=wanted == chosen):
            with errors.shown():
                check_trackers(wanted)
                keep_trackers(workspace, wanted)
                st.rerun()


def _asked(name: str, chosen: dict[str, str], fixed: bool) -> str | None:
    """The address under which a tracker is wanted ("" for one without), None where it is not."""
    missing, example = lacking(name), str(TRACKERS.facts(name)["address"])
    with st.container(horizontal=True, vertical_alignment="center"):
        on = st.toggle(
            TRACKERS.title(name),
            value=name in chosen,
            key=f"tracker_{name}",
            disabled=fixed or (missing is not None and name not in chosen),
            width=150,
        )
        if missing is not None:
            st.caption(literal(missing))
        if not on:
            return None
        if not example:
            return ""
        return st.text_input(
            f"Address of {TRACKERS.title(name)}",
            chosen.get(name, ""),
            placeholder=example,
            key=f"tracker_{name}_address",
            disabled=fixed,
            label_visibility="collapsed",
        ).strip()
