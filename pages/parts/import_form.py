"""Choosing a source: one form for a new project and for adding images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from pages.parts import components, errors, urls
from pages.parts import project as projects
from pages.parts.text import literal, size
from semiprune_core.errors import SemiPruneError
from semiprune_core.importing.sources import datasets, manifest
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.importing.sources.uploads import uploaded_source
from semiprune_core.server import browser_token
from semiprune_core.server.uploads import folder_of

WAYS = {
    "upload": (":material/upload: Upload", "A ZIP, an .npz, images or a folder from your computer."),
    "folder": (
        ":material/folder: Server folder",
        "A folder this server can read. Class folders become reference labels.",
    ),
    "archive": (":material/folder_zip: ZIP or .npz on the server", "A file this server can read."),
    "manifest": (
        ":material/table: CSV or Parquet",
        "A table with a path column, and labels and splits if you have them.",
    ),
    "torchvision": (":material/dataset: Known data set", "CIFAR, Food-101, SUN397 and others, from a local folder."),
}


def choose_source(key: str) -> SourceSpec | None:
    """Draw the form; None until there is something to import."""
    way = st.segmented_control(
        "Where are the images?",
        list(WAYS),
        format_func=lambda name: WAYS[name][0],
        default="upload",
        required=True,
        key=f"{key}_way",
    )
    st.caption(WAYS[str(way)][1])
    try:
        spec = {
            "upload": _upload,
            "folder": _folder,
            "archive": _file,
            "manifest": _manifest,
            "torchvision": _torchvision,
        }[str(way)](key)
    except SemiPruneError as error:
        errors.show(error)
        return None
    variants = _variants(key)
    if spec is None:
        return None
    return SourceSpec(spec.kind, spec.location, spec.options, variants)


def name_of(spec: SourceSpec, key: str) -> str:
    """A project's name taken from its source."""
    arrived = st.session_state.get(f"{key}_arrived")
    uploaded = arrived is not None and arrived["upload"] in Path(spec.location).parts
    return Path(arrived["name"] if uploaded else spec.location).stem or "My pool"


def _upload(key: str) -> SourceSpec | None:
    space = projects.workspace()
    arrived = components.uploader(urls.base(), browser_token(space), key=f"{key}_upload")
    if arrived:
        st.session_state[f"{key}_arrived"] = arrived
    arrived = st.session_state.get(f"{key}_arrived")
    if not arrived:
        return None
    if not (space.uploads_folder / str(arrived["upload"])).is_dir():  # imported or cleared meanwhile
        return None
    st.caption(
        f"Ready: {literal(arrived['name'])}"
        + (f" and {arrived['n'] - 1:,} more" if arrived["n"] > 1 else "")
        + f", {size(arrived['bytes'])}"
    )
    return uploaded_source(folder_of(space, str(arrived["upload"])))


def _folder(key: str) -> SourceSpec | None:
    path = st.text_input("Folder", placeholder="~/pictures/my-pool", key=f"{key}_folder").strip()
    if not path:
        return None
    real = projects.workspace().guard.resolve(path)
    if not real.is_dir():
        raise SemiPruneError(f"{path} is not a folder on this server. Check the spelling.")
    return SourceSpec("folder", str(real))


def _file(key: str) -> SourceSpec | None:
    path = st.text_input("File", placeholder="~/pictures/my-pool.zip", key=f"{key}_file").strip()
    if not path:
        return None
    real = projects.workspace().guard.resolve(path)
    if not real.is_file():
        raise SemiPruneError(f"{path} is not a file on this server. Check the spelling.")
    return SourceSpec("npz" if real.suffix.lower() == ".npz" else "zip", str(real))


def _manifest(key: str) -> SourceSpec | None:
    path = st.text_input("Table", placeholder="~/pictures/images.csv", key=f"{key}_table").strip()
    if not path:
        return None
    real = projects.workspace().guard.resolve(path)
    preview = manifest.preview(real)
    st.dataframe(preview.rows, height=180, hide_index=True)
    columns = list(preview.columns)
    none = "(none)"

    def column(label: str, guess: str | None, optional: bool) -> str | None:
        options = ([none] if optional else []) + columns
        chosen = st.selectbox(
            label, options, index=options.index(guess) if guess in options else 0, key=f"{key}_{label}"
        )
        return None if chosen == none else chosen

    left, middle, right = st.columns(3)
    with left:
        path_column = column("Path column", preview.path_column, optional=False)
    with middle:
        label_column = column("Label column", preview.label_column, optional=True)
    with right:
        split_column = column("Split column", preview.split_column, optional=True)
    options = {"path_column": path_column, "label_column": label_column, "split_column": split_column}
    return SourceSpec("manifest", str(real), options)


def _torchvision(key: str) -> SourceSpec | None:
    name = st.selectbox("Data set", list(datasets.NAMES), key=f"{key}_dataset")
    root = st.text_input("Folder that holds it", placeholder="~/datasets", key=f"{key}_root").strip()
    download = st.checkbox("Download it if it is not there", key=f"{key}_download")
    if not root:
        return None
    projects.workspace().guard.resolve(root)
    return SourceSpec("torchvision", name, {"root": root, "download": download})


def _variants(key: str) -> tuple[dict[str, Any], ...]:
    """The paper's two kinds of hard data, on any source with reference labels."""
    chosen: list[dict[str, Any]] = []
    with st.expander("Make it harder, to study pruning", icon=":material/science:"):
        st.caption("As in the paper. Both need reference labels; both are seeded and recorded for each image.")
        if st.checkbox("Long tail: shrink the classes exponentially", key=f"{key}_longtail"):
            factor = st.select_slider(
                "Smallest class, as a share of the largest",
                [0.01, 0.02, 0.05, 0.1, 0.2, 0.5],
                value=0.1,
                key=f"{key}_factor",
            )
            chosen.append({"name": "longtail", "factor": factor, "seed": 0})
        if st.checkbox("Corrupt: noise, occlusion, low resolution, fog or motion blur", key=f"{key}_corrupt"):
            share = st.slider("Share of the images", 0.05, 1.0, 0.3, 0.05, key=f"{key}_share")
            chosen.append({"name": "corrupt", "share": share, "seed": 0})
    return tuple(chosen)
