"""One image, large, with everything known about it."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.parts import components, errors, find_panel, urls
from pages.parts.text import literal, size
from semiprune_core.maps.map_view import columns_of
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project


@st.dialog("Image", width="large")
@errors.shown()
def open_image(project: Project, pool: Pool, image_id: str, find: str | None = None) -> None:
    """``find`` is the key of the gallery that it was opened from, which can look for images like it."""
    position = int(pool.positions([int(image_id, 16)])[0])
    row = pool.facts([position])[0]
    components.picture(
        urls.picture(project.name, image_id, "original"),
        key=f"large_{image_id}",
        alt=row["path"],
        fallback=urls.picture(project.name, image_id),
    )
    st.code(row["path"], language=None)
    find_panel.offer(project, image_id, find)
    in_pool = pool.split("pool")
    place = int(in_pool.positions([int(image_id, 16)])[0])
    if place >= 0:
        column_values = [(column.title, column.told(place)) for column in columns_of(project, in_pool).by_key.values()]
        facts = pd.DataFrame(
            [(title, text) for title, text in column_values if text is not None], columns=["Fact", "Value"]
        )
        if len(facts):
            st.dataframe(facts, hide_index=True)
    words = [f"{row['width']} x {row['height']} px", str(row["format"]), str(row["mode"]), size(row["file_bytes"])]
    words += [row["split"]] + ([f"corrupted: {row['corruption']}"] if row["corruption"] else [])
    words += [row["converted"]] if row["converted"] else []
    if row["label"] is not None:
        st.markdown(f"Reference label: **{literal(row['label'])}**")
    st.caption(literal(" · ".join(words), 400))
    st.caption(f"Image id `{image_id}`")
