"""Export: hand coresets over in the format of whoever takes them, with their proof."""

from __future__ import annotations

import functools
from datetime import datetime
from pathlib import Path

import pandas as pd
import streamlit as st

from pages.parts import coreset_labels, errors, job_panel, urls
from pages.parts import project as projects
from pages.parts.text import count, literal, size
from semiprune_core import jobs
from semiprune_core.coresets import RATIOS, more_ratios, nesting
from semiprune_core.errors import SemiPruneError
from semiprune_core.exporting import (
    FORMATS,
    Content,
    Export,
    ExportOptions,
    estimate_bytes,
    last_proof,
    list_exports,
    open_content,
    preview,
    submit_export,
    submit_verify,
)
from semiprune_core.labeling import has_store, open_store
from semiprune_core.methods import METHODS
from semiprune_core.project import artifacts
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.report import write_report
from semiprune_core.results import CoresetRun
from semiprune_core.selection import SELECTORS
from semiprune_core.steps import BY_KEY

WAY_WORDS = {
    "zip": "in a ZIP, for download",
    "copy": "as copies in a folder",
    "hardlink": "as hard links in a folder",
    "symlink": "as symbolic links in a folder",
    "reference": "where they are (FiftyOne, Label Studio)",
}
CHOSEN = "export_coresets"
FIRST = ("csv", "parquet", "jsonl", "paths", "imagefolder", "huggingface")  # the others follow by name
SHOWN = 12  # exports in the history before "show all"


def method_title(name: str) -> str:
    return (METHODS if name in METHODS else SELECTORS).title(name)


def coreset_title(artifact: artifacts.Artifact) -> str:
    settings = artifact.settings
    kept = count(artifact.facts["n_kept"], "image")
    return f"{artifact.id}: {method_title(settings['method'])}, ratio {settings['pruning_ratio']:g}, {kept}"


@functools.lru_cache(maxsize=8)
def opened(folder: Path, coreset_id: str, coreset_hash: str, last_label: int) -> Content:
    """A coreset's content, opened once for each state of the labels; coresets never change."""
    project = Workspace(folder.parent).project(folder.name)
    return open_content(project, CoresetRun(project.artifact(coreset_id)))


def content_of(project: Project, run: CoresetRun) -> Content:
    last = open_store(project).last_seq if has_store(project) else 0
    return opened(project.folder, run.artifact.id, run.artifact.hash, last)


def which(project: Project, runs: dict[str, CoresetRun]) -> list[CoresetRun]:
    """Choose coresets, or make more like one of them."""
    st.session_state.setdefault(CHOSEN, [next(iter(runs))])
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = st.multiselect(
            "Coresets", list(runs), format_func=lambda name: coreset_title(runs[name].artifact), key=CHOSEN
        )
        with st.popover("More ratios", icon=":material/layers:", disabled=not names):
            if names:
                _more(project, runs[names[0]])
    if note := st.session_state.pop("export_nesting", None):
        st.info(literal(note, 400), icon=":material/layers:")
    return [runs[name] for name in names]


def _more(project: Project, run: CoresetRun) -> None:
    """The same recipe at several ratios."""
    selector = run.artifact.settings["selector"]
    st.markdown(f"Like **{run.artifact.id}**, at other pruning ratios")
    ratios = st.pills(
        "Ratios", RATIOS, selection_mode="multi", default=list(RATIOS), format_func=lambda one: f"{one:.0%}"
    )
    if SELECTORS.facts(selector)["nested"]:
        nested = st.toggle(
            "Nested",
            help="Uses the settings of the smallest ratio for all, so that each coreset is part of "
            "the next larger one.",
        )
    else:
        nested = False
        st.caption(
            f"{SELECTORS.title(selector)} selects independently at each ratio, so these coresets are not nested."
        )
    if st.button("Build coresets", type="primary", disabled=not ratios):
        made = more_ratios(project, run, ratios, nested=nested)
        st.session_state["export_wanted"] = [one.artifact.id for one in made]
        st.session_state["export_nesting"] = nesting(made)
        st.rerun()


def facts(content: Content) -> None:
    """What is in a coreset, before it is written."""
    n_kept, n_human = len(content.kept_idx), content.n_human
    left, second, third, right = st.columns(4)
    left.metric("Kept", f"{n_kept:,}", help=f"of {len(content.pool):,} images")
    second.metric("Human labels", f"{n_human:,}", help="Labels of the kept images that a person gave.")
    third.metric("Pseudo-labels", f"{n_kept - n_human:,}", help="Labels of the kept images that the model gave.")
    classes = content.kept_per_class()
    right.metric("Classes kept", f"{sum(1 for kept in classes.values() if kept)} of {len(classes)}")
    if n_human < n_kept:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(
                "Until people check the labels, a network trained on this coreset also learns the model's mistakes."
            )
            coreset_labels.button(content.run.artifact.id, key="export_annotate")
    if gone := content.vanished():
        names = ", ".join(literal(name, 30) for name in gone[:5]) + (" and others" if len(gone) > 5 else "")
        st.warning(
            f"{count(len(gone), 'class', 'classes')} vanished: {names}. Tools that number classes by folder "
            f"shift the numbers after a missing one; classes.txt in the export lists them all.",
            icon=":material/warning:",
        )


def how(contents: list[Content]) -> tuple[list[str], ExportOptions, int]:
    """Choose formats and their options; what that will write, in bytes."""
    names = st.pills(
        "Formats",
        [*FIRST, *(name for name in FORMATS if name not in FIRST)],
        selection_mode="multi",
        default=["csv"],
        format_func=FORMATS.title,
        key="export_formats",
    )
    known = {option for name in names for option in FORMATS.facts(name)["options"]}
    ways = [way for way in WAY_WORDS if any(way in FORMATS.facts(name).get("ways", ()) for name in names)]
    exact = absolute = False
    images = None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if ways:
            images = st.selectbox("Images", ways, format_func=WAY_WORDS.get, key="export_images", width=300)
        if "exact" in known:
            exact = st.checkbox(
                "Exact text",
                key="export_exact",
                help="By default, text that a spreadsheet would run as a formula gets a leading apostrophe. "
                "Exact leaves all text as it is, for programs.",
            )
        if "absolute" in known:
            absolute = st.checkbox(
                "Full paths",
                key="export_absolute",
                help="Tables get a column with the full path on this server; the list of paths holds full paths.",
            )
    options = ExportOptions(exact=exact, images=images, absolute=absolute)
    total, usable = 0, []
    for name in names:
        try:
            n_bytes = sum(_estimate(content, name, options) for content in contents)
        except SemiPruneError as error:
            st.warning(f"{FORMATS.title(name)}: {literal(str(error), 300)}", icon=":material/block:")
            continue
        usable.append(name)
        total += n_bytes
        said = FORMATS.facts(name)
        st.markdown(f"**{said['title']}** about {size(n_bytes)}. {literal(said['explain'], 300)}")
        st.caption(f"Label source: {literal(said['label_source'], 200)}.")
    return usable, options, total


@functools.lru_cache(maxsize=256)
def _estimate(content: Content, name: str, options: ExportOptions) -> int:
    return estimate_bytes(content, name, options)


def first_rows(content: Content) -> None:
    with st.expander("First rows", icon=":material/table:", expanded=True):
        st.dataframe(preview(content, 5).to_pandas(), hide_index=True)


def watch(project: Project) -> bool:
    """Exports under way, and the last one if it did not end well; whether one is under way."""
    found = jobs.list_jobs(project, "export")
    live = [job for job in found if not job.status().is_over]
    for job in live:
        job_panel.show(job)
    if found and not live:
        job_panel.ended(found[0], what="The export", starts_over=True)
    return bool(live)


def report(project: Project) -> None:
    """One page about the whole project, to send."""
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown("**Report** :gray[One HTML page that opens offline and prints well.]", width="stretch")
        written = sorted(project.exports_folder.glob("report-*.html"), key=lambda path: path.stat().st_mtime)
        if written:
            st.link_button("Download", urls.export(project.name, written[-1].name), icon=":material/download:")
        if st.button("Write again" if written else "Write report", key="export_report", icon=":material/description:"):
            with st.spinner("Writing the report"):
                write_report(project)
            st.rerun()


def history(project: Project) -> None:
    exports = list_exports(project)
    if not exports:
        return
    st.subheader("History", anchor=False)
    proofs = jobs.list_jobs(project, "verify")
    everything = len(exports) <= SHOWN or st.toggle(f"Show all {len(exports)}", key="export_all")
    for export in exports if everything else exports[:SHOWN]:
        _one(project, export, proofs)


def _one(project: Project, export: Export, proofs: list[jobs.Job]) -> None:
    """An export with its files, where they are, and its proof."""
    said = export.manifest
    counts = said["counts"]
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            when = datetime.fromtimestamp(export.path.stat().st_mtime).strftime("%d %b %Y, %H:%M")
            exact = ", exact text" if said["options"].get("exact") else ""
            st.markdown(
                f"**{FORMATS.title(export.format)}** of {said['coreset']}{exact} "
                f":gray[{method_title(said['method'])}, ratio {said['pruning_ratio']:g}, {when}]",
                width="stretch",
            )
            if st.button("Verify", key=f"verify_{export.id}", icon=":material/verified_user:"):
                submit_verify(project, export)
                jobs.supervise(project.workspace)
                st.rerun()
        st.caption(
            f"{count(counts['n_kept'], 'image')}: {counts['n_human']:,} labels by people, {counts['n_pseudo']:,} by "
            f"the model. {size(export.n_bytes)}."
        )
        for warning in said["warnings"]:
            st.warning(literal(warning, 400), icon=":material/warning:")
        _proof(last_proof(proofs, export))
        with st.container(horizontal=True):
            for role, path in export.files.items():
                if path.is_file():
                    words = f"{role} {path.suffix}" if role != "images" else path.suffix.removeprefix(".").upper()
                    st.link_button(words, urls.export(project.name, path.name), icon=":material/download:")
            st.link_button("manifest", urls.export(project.name, export.path.name), icon=":material/receipt_long:")
            if any(path.is_dir() for path in export.files.values()) and st.button(
                "Make a ZIP to download", key=f"zip_{export.id}", icon=":material/folder_zip:"
            ):
                submit_export(project, [said["coreset"]], [export.format], ExportOptions(images="zip"))
                jobs.supervise(project.workspace)
                st.rerun()
        with st.expander("Location and SHA-256", icon=":material/fingerprint:"):
            rows = [
                {
                    "file": str(export.path.with_name(entry["name"])),
                    "size": size(entry["bytes"]),
                    "SHA-256": entry["sha256"],
                }
                for entry in said["files"].values()
            ]
            st.dataframe(pd.DataFrame(rows), hide_index=True)


def _proof(job: jobs.Job | None) -> None:
    if job is None:
        return
    status = job.status()
    if not status.is_over:
        job_panel.show(job)
    elif status.state == jobs.DONE:
        result = job.result() or {}
        if result.get("difference"):
            st.error(f"Differs. {literal(result['difference'], 600)}", icon=":material/gpp_bad:")
        else:
            st.success(
                f"Verified: {result.get('checked')} checks, selection recomputed from its scores "
                f"(requested {datetime.fromisoformat(job.created).astimezone():%d %b, %H:%M}).",
                icon=":material/verified_user:",
            )
    else:
        job_panel.ended(job, what="The verification", starts_over=True)


def main() -> None:
    project = projects.require("export")
    projects.title(BY_KEY["export"].title, BY_KEY["export"].purpose)
    if wanted := st.session_state.pop("export_wanted", None):
        st.session_state[CHOSEN] = wanted
    runs = {artifact.id: CoresetRun(artifact) for artifact in reversed(project.artifacts("coreset"))}
    if st.session_state.get(CHOSEN) and not {*st.session_state[CHOSEN]} <= {*runs}:
        del st.session_state[CHOSEN]  # another project's
    busy = watch(project)
    chosen = which(project, runs)
    if chosen:
        try:
            contents = [content_of(project, run) for run in chosen]
        except SemiPruneError as error:
            errors.show(error)
            history(project)
            return
        facts(contents[0])
        formats, options, total = how(contents)
        first_rows(contents[0])
        words = f"Export {count(len(chosen), 'coreset')}, about {size(total)}" if formats else "Export"
        if st.button(words, type="primary", icon=":material/output:", disabled=busy or not formats):
            submit_export(project, [run.artifact.id for run in chosen], formats, options)
            jobs.supervise(project.workspace)
            st.rerun()
    report(project)
    history(project)


main()
