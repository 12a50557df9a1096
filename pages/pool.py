"""Pool: what was imported, as pictures and as numbers; what could not be; more images."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.parts import charts, components, errors, find_panel, import_form, job_panel, net_view, scan_panel, urls
from pages.parts import project as projects
from pages.parts.image_dialog import open_image
from pages.parts.text import count, duration, literal, size
from semiprune_core import jobs
from semiprune_core.importing import ImportSettings, begin_import, can_repeat, features_are_on
from semiprune_core.jobs import states
from semiprune_core.project.pool import Pool, Segment, show_id
from semiprune_core.project.pool_view import PoolFilter, PoolSummary, filter_positions
from semiprune_core.project.workspace import Project

PER_PAGE = 60
CELLS = {"S": 84, "M": 124, "L": 200}


def watch_imports(project: Project) -> None:
    """Imports under way, and the last one if it did not end well."""
    import_jobs = jobs.list_jobs(project, "import")
    for job in import_jobs:
        if job.status().state not in states.OVER:
            job_panel.show(job)
    if import_jobs and import_jobs[0].status().state in states.OVER:
        can_retry = can_repeat(project.workspace, ImportSettings.from_json(import_jobs[0].settings))
        job_panel.ended(import_jobs[0], what="The import", can_retry=can_retry, starts_over=True)


def facts(summary: PoolSummary) -> None:
    with st.container(horizontal=True, gap="medium"):
        st.metric("Images", f"{summary.n_pool:,}")
        st.metric("Test images", f"{summary.n_test:,}")
        st.metric("Reference classes", f"{summary.n_classes:,}")
        same = "Images with the same pixels as an earlier one of the same split."
        st.metric("Duplicates", f"{summary.n_duplicates:,}", help=same)
        if summary.n_test:
            shared = "Images of the pool with the same pixels as a test image. Evaluations leave them out."
            st.metric("Also in test", f"{summary.n_shared:,}", help=shared)
        st.metric("Problems", f"{summary.n_problems:,}", help="Files that could not be used. See the Problems tab.")
        st.metric("Originals", size(summary.file_bytes))


def gallery(project: Project, pool: Pool) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = ["All classes", *pool.class_names]
        label = st.selectbox("Reference class", names, key="pool_class", width=160) if pool.class_names else names[0]
        splits = [name for name in ("pool", "test") if len(pool.split(name))]
        split = st.segmented_control("Split", [*splits, "all"], default=splits[0], required=True, key="pool_split")
        only = st.segmented_control("Show only", ["duplicates", "converted", "corrupted"], key="pool_only")
        words = st.text_input("Path contains", key="pool_path", width=120)
        cell = st.segmented_control("Size", list(CELLS), default="M", required=True, key="pool_cell")
        wanted = PoolFilter(
            label=None if label == names[0] else label,
            split=None if split == "all" else split,
            only=only,
            path_contains=words.strip() or None,
        )
        positions, _ = find_panel.order(project, filter_positions(pool, wanted), key="pool_gallery", pool=pool)
    if not len(positions):
        st.info("No images match this filter. Relax it to see more.", icon=":material/search_off:")
        return
    pages = -(-len(positions) // PER_PAGE)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(count(len(positions), "image"))
        page = st.pagination(pages, key=f"pool_page_{pages}") if pages > 1 else 1
    shown = list(positions[(page - 1) * PER_PAGE : page * PER_PAGE])
    opened = components.gallery(items(project, pool, shown), key="pool_gallery", cell=CELLS[str(cell)])
    if opened:
        open_image(project, pool, opened, "pool_gallery")


def items(project: Project, pool: Pool, positions: list[int]) -> list[components.Item]:
    rows = pool.facts(positions)
    return [
        components.Item(
            id=show_id(row["image_id"]),
            src=urls.picture(project.name, show_id(row["image_id"])),
            title=row["label"] or row["path"].rsplit("/", 1)[-1],
            note=f"{row['width']} x {row['height']}",
            badge=row["corruption"].replace("_", " ")
            if row["corruption"]
            else ("test" if row["split"] == "test" else ""),
            hint=row["path"],
        )
        for row in rows
    ]


def classes(summary: PoolSummary) -> None:
    if not summary.class_counts:
        st.info(
            "This pool has no reference labels. They come from class folders or a label column, and are used to "
            "measure, never to train.",
            icon=":material/info:",
        )
        return
    st.plotly_chart(charts.class_bars(summary.class_counts), key="pool_classes", config=charts.QUIET)
    rarest = min(summary.class_counts, key=summary.class_counts.__getitem__)
    st.caption(
        f"Rarest: {literal(rarest)} with {count(summary.class_counts[rarest], 'image')}. "
        "Reference labels are kept apart: they measure results, and training never sees them."
    )


def shapes(summary: PoolSummary) -> None:
    left, right = st.columns(2)
    with left:
        st.markdown("**Sizes**")
        st.plotly_chart(charts.size_scatter(summary.sizes), key="pool_sizes", config=charts.QUIET)
    with right:
        st.markdown("**Formats and conversions**")
        st.dataframe(pd.DataFrame(summary.formats, columns=["Format", "Mode", "Images"]), hide_index=True)
        if summary.converted:
            st.dataframe(pd.DataFrame(summary.converted, columns=["Converted on import", "Images"]), hide_index=True)
        else:
            st.caption("No images had to be converted.")


def problems(project: Project) -> None:
    rows = [
        {"File": problem.path, "Reason": problem.message, "Code": problem.code}
        for artifact in project.artifacts("pool")
        for problem in Segment(artifact).problems()
    ]
    if not rows:
        st.success("All files were imported.", icon=":material/check_circle:")
        return
    st.dataframe(pd.DataFrame(rows[:5000]), hide_index=True)
    st.link_button("Download all problems (CSV)", urls.problems(project.name), icon=":material/download:")


def imports(project: Project) -> None:
    rows = [
        {
            "Import": artifact.id,
            "From": artifact.settings["source"]["kind"],
            "Location": artifact.settings["source"]["location"],
            "Images": artifact.facts["n_images"],
            "Problems": artifact.facts["n_problems"],
            "Already in the pool": artifact.facts["n_already_there"],
            "Took": duration(artifact.manifest["duration_s"]),
            "When": artifact.manifest["created"],
            "Hash": artifact.hash[:12],
        }
        for artifact in project.artifacts("pool")
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True)


def add_images(project: Project) -> None:
    pool = project.pool_settings
    if pool is not None:
        st.caption(
            f"New images are prepared at {pool.size} x {pool.size} px like the others. Images already in the "
            f"pool are skipped."
        )
    spec = import_form.choose_source("add")
    features = import_form.choose_features("add", default=features_are_on(project))
    if st.button("Add images", type="primary", icon=":material/add_photo_alternate:", disabled=spec is None) and spec:
        with errors.shown():
            settings = ImportSettings(source=spec.to_json(), features=features)
            begin_import(project, settings, title="Adding images")
            st.session_state.pop("add_arrived", None)
            st.rerun()


def main() -> None:
    project = projects.require("pool")
    projects.title("Pool", "Every image of the project, in fixed order, each with a stable id.")
    watch_imports(project)
    if not project.has_pool():
        if not any(job.status().state not in states.OVER for job in jobs.list_jobs(project, "import")):
            st.write("No images yet. Choose where to import them from.")
            add_images(project)
        return
    pool = project.everything()
    summary = projects.summary(pool)
    facts(summary)
    tabs = st.tabs(
        ["Gallery", "What the net sees", "Scan", "Classes", "Sizes and formats", "Problems", "Imports", "Add images"]
    )
    with tabs[1]:
        show_copies = net_view.of_pool(project, pool)
    for tab, draw in zip(
        (tabs[0], *tabs[2:]),
        (
            lambda: gallery(project, pool),
            lambda: scan_panel.draw(project, pool, items),
            lambda: classes(summary),
            lambda: shapes(summary),
            lambda: problems(project),
            lambda: imports(project),
            lambda: add_images(project),
        ),
        strict=True,
    ):
        with tab:
            draw()
    show_copies()


main()
