"""Map: the pool as a map of look-alikes, coloured by anything known, linked to the images behind it."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from pages.parts import annotator_name, components, errors, find_panel, image_list, job_panel, out_of_date, urls
from pages.parts import project as projects
from pages.parts.image_dialog import open_image
from pages.parts.text import count
from semiprune_core import jobs
from semiprune_core.embeddings.features import FEATURES, available_features
from semiprune_core.jobs import states
from semiprune_core.labeling.classes import NEUTRAL, PALETTE
from semiprune_core.maps.embedding_map import EmbeddingMap, MapSettings, inside, maps_of
from semiprune_core.maps.map_view import MOST_COLOURS, STEPS, Column, Columns, columns_of
from semiprune_core.maps.reduce import REDUCERS
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import BoolArray
from semiprune_core.steps import BY_KEY

HEIGHT = 560
BESIDE = 130  # how much higher the gallery is: the map's tools and its legend
NO_COLOUR, NO_SECOND = "Nothing", "None"
MOST_RINGS = 200
GALLERY = "map_selected"


def watch_jobs(project: Project) -> bool:
    """Maps under way, and the last one if it did not end well; whether one is under way."""
    map_jobs = jobs.list_jobs(project, "map")
    running = [job for job in map_jobs if job.status().state not in states.OVER]
    for job in running:
        job_panel.show(job)
    if map_jobs and not running:
        job_panel.ended(map_jobs[0], what="The map", starts_over=True)
    return bool(running)


def start(project: Project, settings: MapSettings) -> None:
    title = f"{REDUCERS.title(settings.method)} of {FEATURES.title(settings.features)}"
    jobs.submit(project, "map", settings.to_json(), title=f"Map: {title}")
    st.rerun()


def new_map(project: Project) -> None:
    """Choose features and a method; the work goes on when the page is closed."""
    available = available_features(project)
    names = [name for name, missing in available.items() if not missing]
    features = st.selectbox("Features", names, format_func=FEATURES.title, key="map_features")
    for name, missing in available.items():
        if missing:
            st.caption(f"{FEATURES.title(name)}: {missing}.")
    encoder = weights = ""
    if features == "pretrained":
        encoder = st.text_input(
            "Encoder", "torchvision:resnet18", key="map_encoder", help="torchvision:NAME or timm:NAME"
        )
        weights = st.text_input(
            "Weights", key="map_weights", placeholder="a .safetensors file; leave empty to download"
        )
    method = st.segmented_control(
        "Method", list(REDUCERS), format_func=REDUCERS.title, default="umap", required=True, key="map_method"
    )
    st.caption(f"Takes {REDUCERS.facts(str(method))['pace']}. A PCA map is shown meanwhile.")
    seed = st.number_input("Seed", 0, 2**31 - 1, 0, key="map_seed")
    if st.button("Make map", type="primary", key="map_start"):
        with errors.shown():
            settings = MapSettings(
                features=str(features), method=str(method), seed=int(seed), encoder=encoder, weights=weights
            )
            start(project, settings)


def first_map(project: Project) -> None:
    """Nothing yet: one button for the best features at hand, the rest behind it."""
    available = available_features(project)
    best = next(name for name, missing in available.items() if not missing)
    st.write(
        "A map places images that look alike to a model close together, so classes, mistakes and outliers stand out."
    )
    if st.button(f"Make a map of {FEATURES.title(best).lower()} features", type="primary", key="map_first"):
        start(project, MapSettings(features=best))
    with st.expander("Other features and methods", icon=":material/tune:"):
        new_map(project)


def colouring(columns: Columns) -> tuple[Column | None, list[int]]:
    """Which column colours the map, and with many classes which of them are marked."""
    titles = {NO_COLOUR: NO_COLOUR, **{column.key: column.title for column in columns.by_key.values()}}
    first = next((key for key in ("pseudo", "human", "reference") if key in titles), NO_COLOUR)
    key = st.selectbox(
        "Colour by", list(titles), format_func=titles.get, index=list(titles).index(first), key="map_colour", width=190
    )
    if key == NO_COLOUR:
        return None, []
    column = columns[str(key)]
    if column.is_class and len(column.names) > MOST_COLOURS:
        marked = st.multiselect(
            "Highlight classes",
            range(len(column.names)),
            format_func=lambda code: column.names[code],
            max_selections=MOST_COLOURS,
            key=f"map_marked_{key}",
            width=260,
        )
        return column, list(marked)
    return column, []


def filters(project: Project, columns: Columns) -> tuple[list[dict[str, Any]], BoolArray | None]:
    """What is shown: as the browser filters by codes, and as a mask (N,) by the same codes."""
    base = f"{urls.base()}/projects/{project.name}/columns"
    asked: list[dict[str, Any]] = []
    mask: BoolArray | None = None
    with st.popover("Filter", icon=":material/filter_alt:"):
        for column in columns.by_key.values():
            codes = np.frombuffer(columns.packed(column.key), dtype="<u2")
            url = f"{base}/{column.key}?v={columns.version}"
            if column.is_class:
                wanted = st.multiselect(
                    column.title, range(len(column.names)), format_func=lambda code, column=column: column.names[code],
                    key=f"map_only_{column.key}",
                )  # fmt: skip
                if not wanted:
                    continue
                asked.append({"url": url, "codes": [int(code) for code in wanted]})
                fits = np.isin(codes, wanted)
            else:
                low, high = column.span
                if low == high:
                    continue
                span = st.slider(
                    column.title, low, high, (low, high), key=f"map_span_{column.key}_{low:.6g}_{high:.6g}"
                )
                if span == (low, high):
                    continue
                least, most = (round((value - low) / (high - low) * STEPS) for value in span)
                asked.append({"url": url, "low": least, "high": most})
                fits = (codes >= least) & (codes <= most)
            mask = fits if mask is None else mask & fits
    if mask is not None:
        st.caption(f"{int(mask.sum()):,} of {len(mask):,} shown")
    return asked, mask


def legend(project: Project, columns: Columns, column: Column | None, marked: list[int]) -> dict[str, Any] | None:
    if column is None:
        return None
    entries = column.legend()
    if marked:
        colours = [NEUTRAL] * len(column.names)
        for place, code in enumerate(marked):
            colours[code] = PALETTE[place]
        entries["colours"] = colours
    url = f"{urls.base()}/projects/{project.name}/columns/{column.key}?v={columns.version}"
    return {**entries, "marked": marked, "url": url}


def panel(project: Project, point_map: EmbeddingMap) -> dict[str, Any]:
    facts = point_map.artifact.facts
    note = f"{facts['n_placed']:,} images"
    if facts["n_placed"] < facts["n_images"]:
        note = f"a random sample of {facts['n_placed']:,} of {facts['n_images']:,} images"
    url = f"{urls.base()}/projects/{project.name}/maps/{point_map.artifact.id}/points?h={point_map.artifact.hash[:16]}"
    return {"key": point_map.artifact.id, "url": url, "title": point_map.title, "note": note}


@st.fragment
@errors.shown()
def explore(project: Project, pool: Pool, maps: list[EmbeddingMap]) -> None:
    """The map, and beside it the gallery of what was drawn around. Only this part runs anew after a lasso."""
    columns = columns_of(project, pool)
    titles = {point_map.artifact.id: f"{point_map.title} · {point_map.artifact.id}" for point_map in maps}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        first = st.selectbox("Map", list(titles), format_func=titles.get, key="map_first_map", width=280)
        rest = [NO_SECOND, *(name for name in titles if name != first)]
        second = NO_SECOND
        if len(rest) > 1:
            second = st.selectbox(
                "Compare with", rest, format_func=lambda n: titles.get(n, n), key="map_second", width=220
            )
        column, marked = colouring(columns)
        asked, mask = filters(project, columns)
        with st.popover("New map", icon=":material/add:"):
            new_map(project)
    by_id = {point_map.artifact.id: point_map for point_map in maps}
    shown = [by_id[str(name)] for name in (first, second) if name in by_id]
    data = {
        "panels": [panel(project, point_map) for point_map in shown],
        "colour": legend(project, columns, column, marked),
        "filters": asked,
        "version": columns.version,
        "base": f"{urls.base()}/projects/{project.name}",
        "height": HEIGHT if len(shown) == 1 else 460,
        "highlight": chosen_beside(pool),
    }
    left, right = st.columns([3, 2] if len(shown) == 1 else [2, 1], gap="medium")
    with left:
        line, opened = components.point_map(data, key="map_view")
    if opened:
        open_image(project, pool, opened, GALLERY)
    with right, st.container(height=data["height"] + BESIDE, border=False):
        selection(project, pool, by_id, line, mask)


def chosen_beside(pool: Pool) -> list[int]:
    """Positions of what is selected in the gallery beside the map: they are ringed on it."""
    state = st.session_state.get(f"{GALLERY}_gallery")
    ids = (state.get("selected") if state else None) or ()
    places = pool.positions(np.array([int(image_id, 16) for image_id in ids], dtype=np.uint64))
    return [int(place) for place in places if place >= 0][:MOST_RINGS]


def selection(
    project: Project, pool: Pool, by_id: dict[str, EmbeddingMap], line: dict[str, Any] | None, mask: BoolArray | None
) -> None:
    if not line or line.get("key") not in by_id:
        if find_panel.is_asked(GALLERY):
            image_list.show(project, pool, np.arange(len(pool)), key=GALLERY)
            return
        find_panel.order(project, np.arange(0), key=GALLERY, pool=pool)
        st.caption(
            "Draw around points to see their images here. Hover to preview an image, click to open it, Ctrl and the "
            "wheel to zoom, double-click for the whole map. Keys: L lasso, B box, M move, + and -, Esc."
        )
        return
    points = by_id[line["key"]].points()
    limited = None if mask is None else mask[: len(points)]
    positions = inside(points, line["corners"], limited)
    st.markdown(f"**{count(len(positions), 'image')} selected**")
    image_list.show(project, pool, positions, key=GALLERY, given="Pool order")


def main() -> None:
    project = projects.require("map")
    annotator_name.recall()
    projects.title(BY_KEY["map"].title, BY_KEY["map"].purpose)
    running = watch_jobs(project)
    maps = maps_of(project)
    if not maps:
        if not running:
            first_map(project)
        return
    pool = project.pool()
    out_of_date.notice(project, pool, key="map")
    explore(project, pool, maps)


main()
