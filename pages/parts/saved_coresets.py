"""Coresets that were built: the word that one was saved, and all of them with their files."""

from __future__ import annotations

import functools

import streamlit as st

from pages.parts import coreset_labels, errors, urls
from pages.parts.text import count
from semiprune_core.coresets import CoresetRequest
from semiprune_core.exporting import export_csv
from semiprune_core.methods import METHODS
from semiprune_core.project.workspace import Project
from semiprune_core.results import CoresetRun
from semiprune_core.selection import SELECTORS

BUILT = "select_built"
"""In the session: (project, coreset, request) of the last one that was built here."""
ANCHOR = "saved-coresets"
SHOWN = 5  # coresets in the list; the others are folded


def title_of(method: str) -> str:
    """For people; of a package that is no longer installed the bare name."""
    registry = METHODS if method in METHODS else SELECTORS
    return registry.title(method) if method in registry else method


def remember(run: CoresetRun, request: CoresetRequest) -> None:
    st.session_state[BUILT] = (run.artifact.folder.parent.parent.name, run.artifact.id, request)


def _just_built(project: Project) -> tuple[str, CoresetRequest | None]:
    name, coreset, request = st.session_state.get(BUILT, ("", "", None))
    return (coreset, request) if name == project.name else ("", None)


def confirm(project: Project, request: CoresetRequest) -> bool:
    """Say beside the button that this request was saved, where it is and what to do with it; False where it was not."""
    coreset, built = _just_built(project)
    if not coreset or built != request:
        return False
    kept = project.artifact(coreset).facts["n_kept"]
    st.success(f"**{coreset}** is saved: {count(kept, 'image')}.", icon=":material/check_circle:")
    if st.button("Export", key="built_export", icon=":material/output:", width="stretch"):
        st.session_state["export_wanted"] = [coreset]
        st.switch_page("export.py")
    st.markdown(f"[Show it among the saved coresets](#{ANCHOR})")
    return True


def table(project: Project, runs: list[CoresetRun]) -> None:
    """The saved coresets, newest first, with their files."""
    st.subheader("Saved coresets", anchor=ANCHOR)
    built, _ = _just_built(project)
    newest = list(reversed(runs))
    for run in newest[:SHOWN]:
        _row(project, run, is_new=run.artifact.id == built)
    if earlier := newest[SHOWN:]:
        with st.expander(f"{count(len(earlier), 'earlier coreset')}", icon=":material/history:"):
            for run in earlier:
                _row(project, run, is_new=run.artifact.id == built)


def _row(project: Project, run: CoresetRun, *, is_new: bool) -> None:
    artifact = run.artifact
    settings = artifact.settings
    with st.container(border=is_new, horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"**{artifact.id}** {title_of(settings['method'])}, ratio {settings['pruning_ratio']:g}: "
            f"{count(artifact.facts['n_kept'], 'image')}",
            width="stretch",
        )
        coreset_labels.button(artifact.id, key=f"annotate_{artifact.id}")
        files = sorted(project.exports_folder.glob(f"{artifact.id}-kept-*.csv"), key=lambda path: path.stat().st_mtime)
        if not files:
            if st.button("Write CSV", key=f"csv_{artifact.id}", icon=":material/table:"):
                errors.attempt(functools.partial(export_csv, project, run))
            return
        twin = max(project.exports_folder.glob(f"{artifact.id}-all-*.csv"), key=lambda path: path.stat().st_mtime)
        st.link_button("Coreset CSV", urls.export(project.name, files[-1].name), icon=":material/download:")
        st.link_button("All rows", urls.export(project.name, twin.name), icon=":material/download:")
