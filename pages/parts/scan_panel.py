"""The tab *Scan* of the Pool page: near-duplicates, and blurred, dark, blank, odd-sized and off-topic images."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import streamlit as st

from pages.parts import components, job_panel
from pages.parts.image_dialog import open_image
from pages.parts.text import count
from semiprune_core import jobs
from semiprune_core.jobs import states
from semiprune_core.project.artifacts import open_artifact
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import IntArray
from semiprune_core.scan import (
    LEAST,
    ODDITIES,
    THRESHOLD,
    Groups,
    ScanRun,
    found_csv,
    grouped,
    groups_csv,
    latest_scan,
    sees_more_again,
)

NEAR = "near_duplicates"
PER_PAGE = 60
GROUPS_PER_PAGE = 8
SHOWN_OF_GROUP = 12
CELL = 96

Items = Callable[[Project, Pool, Sequence[int]], list[components.Item]]


def draw(project: Project, everything: Pool, items: Items) -> None:
    """What the newest scan found, or the way to one."""
    scans = jobs.list_jobs(project, "scan")
    if scans and scans[0].status().state not in states.OVER:
        job_panel.show(scans[0])
        return
    if scans:
        job_panel.ended(scans[0], what="The scan")
    run = latest_scan(project)
    if run is None:
        st.write(
            "Looks at every image for near-duplicates and for blurred, dark, blank, odd-sized and off-topic ones. "
            "Nothing is dropped."
        )
        start(project, "Scan the pool", primary=True)
        return
    kind = chosen_kind(run, everything)
    if kind == NEAR:
        near_duplicates(project, run, everything, items)
    else:
        oddity(project, run, everything, items, kind)
    if not run.has_features:
        st.caption("Without features: near-duplicates are found by fingerprints alone, off-topic images not at all.")
    if sees_more_again(project, run):
        start(project, "Scan again", primary=False)


def start(project: Project, words: str, *, primary: bool) -> None:
    if st.button(words, type="primary" if primary else "secondary", icon=":material/radar:", key="scan_start"):
        jobs.submit(project, "scan", {}, title="Scanning the pool")
        st.rerun()


@functools.lru_cache(maxsize=16)
def groups_at(folder: Path, everything: Pool, threshold: float) -> Groups:
    """Kept, as a page asks for them with every click; a scan never changes."""
    return grouped(everything, ScanRun(open_artifact(folder)).groups(everything, threshold))


def chosen_kind(run: ScanRun, everything: Pool) -> str:
    """Near-duplicates or a kind of odd image, each with its count."""
    threshold = float(st.session_state.get("scan_threshold", THRESHOLD))
    counts = {NEAR: groups_at(run.artifact.folder, everything, threshold).n_spare}
    counts |= {kind: len(positions) for kind, positions in run.odd().items()}
    titles = {NEAR: "Near-duplicates", **{kind: oddity.title for kind, oddity in ODDITIES.items()}}
    return str(
        st.segmented_control(
            "Found",
            list(counts),
            format_func=lambda kind: f"{titles[kind]} {counts[kind]:,}",
            default=NEAR,
            required=True,
            key="scan_kind",
        )
    )


def near_duplicates(project: Project, run: ScanRun, everything: Pool, items: Items) -> None:
    """Groups at a threshold, each a row of pictures."""
    threshold = st.slider(
        "Alike from",
        LEAST,
        0.99,
        THRESHOLD,
        0.01,
        key="scan_threshold",
        help="1 is the same picture. Lower it to see more; higher up only copies are left.",
    )
    groups = groups_at(run.artifact.folder, everything, threshold)
    if not groups.members:
        st.info("No near-duplicates at this threshold.", icon=":material/check:")
        return
    across = f" {count(groups.n_across, 'group')} reach across pool and tests." if groups.n_across else ""
    st.caption(
        f"{count(groups.n_images, 'image')} in {count(len(groups.members), 'group')}; one of each would leave out "
        f"{groups.n_spare:,}.{across} Mirrored copies count too."
    )
    pages = -(-len(groups.members) // GROUPS_PER_PAGE)
    page = st.pagination(pages, key=f"scan_groups_{pages}") if pages > 1 else 1
    for members in groups.members[(page - 1) * GROUPS_PER_PAGE : page * GROUPS_PER_PAGE]:
        row(project, everything, items, members)
    download(project, "near-duplicates", lambda: groups_csv(everything, groups))


def row(project: Project, everything: Pool, items: Items, members: IntArray) -> None:
    hidden = len(members) - SHOWN_OF_GROUP
    st.caption(count(len(members), "image") + (f", {hidden:,} not shown" if hidden > 0 else ""))
    pictures = items(project, everything, members[:SHOWN_OF_GROUP].tolist())
    if opened := components.gallery(pictures, key=f"scan_group_{members[0]}", cell=CELL):
        open_image(project, everything, opened)


def oddity(project: Project, run: ScanRun, everything: Pool, items: Items, kind: str) -> None:
    """The odd images of one kind, the oddest first."""
    positions = run.odd()[kind]
    st.caption(f"{ODDITIES[kind].explain} The oddest come first. They stay in the pool.")
    if not len(positions):
        st.info("No such images.", icon=":material/check:")
        return
    pages = -(-len(positions) // PER_PAGE)
    page = st.pagination(pages, key=f"scan_{kind}_{pages}") if pages > 1 else 1
    shown: IntArray = np.asarray(positions[(page - 1) * PER_PAGE : page * PER_PAGE])
    if opened := components.gallery(items(project, everything, shown.tolist()), key=f"scan_images_{kind}", cell=CELL):
        open_image(project, everything, opened)
    download(project, kind.replace("_", "-"), lambda: found_csv(everything, run, [kind]))


def download(project: Project, what: str, text: Callable[[], str]) -> None:
    """The list as CSV, written when it is asked for."""
    st.download_button(
        "Download as CSV",
        lambda: text().encode("utf-8"),
        file_name=f"{project.name}-{what}.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
        key=f"scan_csv_{what}",
    )
