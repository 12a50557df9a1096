"""Choosing a source: one form for a new project and for adding images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from pages.parts import components, errors, knobs, urls
from pages.parts import project as projects
from pages.parts.text import count, literal, size
from semiprune_core.errors import SemiPruneError
from semiprune_core.importing import allowing
from semiprune_core.importing.corruptions import MILD, SEVERITIES
from semiprune_core.importing.sources import SOURCES, class_folders, datasets, kinds_by_suffix, manifest
from semiprune_core.importing.sources.base import Form, SourceSpec
from semiprune_core.importing.sources.layout import AUTO, NO, YES, is_storage
from semiprune_core.importing.sources.uploads import uploaded_source
from semiprune_core.knobs import knobs_of
from semiprune_core.labeling.events import REFERENCE
from semiprune_core.paths import check_can_be_allowed, roots_from_environment
from semiprune_core.project import rights
from semiprune_core.server import browser_token
from semiprune_core.server.access import may_allow_folders
from semiprune_core.server.uploads import folder_of

UPLOAD = "upload"
SHOWN_FOLDERS = 12
GIVEN = {
    REFERENCE: ("A reference", "Hidden from the learner: they measure, and fill in for people in trials."),
    "human": (
        "Labels by people",
        "The learner learns from them. They were not drawn at random, so they measure nothing.",
    ),
}
"""What labels of a source can be, for people."""
FIRST = ("folder", "zip", "npz", "manifest", "torchvision")
"""The usual sources; all others follow."""


def forms() -> dict[Form, list[str]]:
    """The sources that can be typed, by their form."""
    found: dict[Form, list[str]] = {}
    for kind in sorted(SOURCES, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST)):
        form = SOURCES.facts(kind).get("form")
        if form is not None:
            found.setdefault(form, []).append(kind)
    return found


def ways() -> dict[str, tuple[str, str]]:
    """How a person may name a source: title and sentence by key, an upload first; sources of one form are one way."""
    found = {UPLOAD: (":material/upload: Upload", "A ZIP, an .npz, images or a folder from your computer.")}
    if not rights.allows("read server folders"):
        return found
    for form, kinds in forms().items():
        package = SOURCES.package(kinds[0])
        where = f" ({package})" if package else ""
        found[kinds[0]] = f":material/{form.icon}: {form.title}{where}", form.explain
    return found


def choose_source(key: str) -> SourceSpec | None:
    """Draw the form; None until there is something to import."""
    offered = ways()
    way = st.segmented_control(
        "Where are the images?",
        list(offered),
        format_func=lambda name: offered[name][0],
        default=UPLOAD,
        required=True,
        key=f"{key}_way",
    )
    st.caption(offered[str(way)][1])
    own = {UPLOAD: _upload, "manifest": _manifest, "torchvision": _torchvision}
    try:
        spec = own[str(way)](key) if way in own else _typed(key, str(way))
    except SemiPruneError as error:
        errors.show(error)
        return None
    allowed_folders(key)
    labels = {} if spec is None else _folder_labels(key, spec)
    variants = _variants(key)
    if spec is None:
        return None
    return SourceSpec(spec.kind, spec.location, {**spec.options, **labels}, variants)


def _folder_labels(key: str, spec: SourceSpec) -> dict[str, Any]:
    """Whether the names of folders are reference labels, asked with the names in view."""
    space, seen = projects.workspace(), st.session_state.setdefault(f"{key}_class_folders", {})
    if spec.location not in seen:  # an archive's directory is long: it is read once
        try:
            seen[spec.location] = class_folders(spec, guard=space.guard, scratch=space.uploads_folder)
        except SemiPruneError:
            return {}  # the import itself says what is wrong
    names = seen[spec.location]
    if not names:
        return {}
    classes = [name for name in names if not is_storage(name)]
    use = st.checkbox(
        "Use folder names as labels",
        value=bool(classes),
        key=f"{key}_folder_labels_{spec.location}",
        help="Reference labels are hidden from the learner. They fill in for people in trials, and measure.",
    )
    taken = classes or names
    st.caption(f"{count(len(taken), 'folder')}: {_listed(taken)}")
    if len(taken) < len(names):
        others = [name for name in names if is_storage(name)]
        st.caption(f"No classes, but dates or a camera's folders: {_listed(others)}. Their images have no label.")
    if not use:
        return {"folder_labels": NO}
    return {"folder_labels": AUTO if classes else YES}


def _listed(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - SHOWN_FOLDERS:,} more" if len(names) > SHOWN_FOLDERS else ""
    return ", ".join(literal(name, 40) for name in names[:SHOWN_FOLDERS]) + more


def choose_features(key: str, *, default: bool = True) -> bool:
    """Whether features are computed once the images are in."""
    return st.checkbox(
        "Compute features in the background",
        value=default,
        help="A pretrained encoder looks at every original once. Frozen training, search by probes and near-duplicates "
        "use the result. You can draw and label meanwhile.",
        key=f"{key}_features",
    )


def choose_annotator(key: str, spec: SourceSpec | None) -> str | None:
    """Who gave the labels that the source brings; None where they are a reference, or where there can be none."""
    if spec is None or spec.options.get("folder_labels") == NO or _has_no_labels(spec):
        return None
    chosen = st.radio(
        "Labels that come with the images",
        list(GIVEN),
        format_func=lambda name: GIVEN[name][0],
        captions=[about for _, about in GIVEN.values()],
        key=f"{key}_labels",
    )
    if chosen == REFERENCE:
        return None
    return st.text_input("Who gave them", "source", max_chars=40, key=f"{key}_annotator", width=260).strip()


def _has_no_labels(spec: SourceSpec) -> bool:
    """Whether that is known before the import: of a table without a label column."""
    return spec.kind == "manifest" and "label_column" in spec.options and spec.options["label_column"] is None


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


def _typed(key: str, kind: str) -> SourceSpec | None:
    """The field of a source's form, and the options that are its knobs."""
    form: Form = SOURCES.facts(kind)["form"]
    text = st.text_input(form.label, placeholder=form.example, key=f"{key}_{kind}").strip()
    options = knobs.draw(knobs_of(SOURCES[kind]), key=f"{key}_{kind}", start={}, around={})
    if not text:
        return None
    if form.is_a == "text":
        return SourceSpec(kind, text, options)
    if not _may_read(key, SourceSpec(kind, text, options)):
        return None
    real = projects.workspace().guard.resolve(text)
    if not (real.is_dir() if form.is_a == "folder" else real.is_file()):
        raise SemiPruneError(f"{text} is not a {form.is_a} on this server. Check the spelling.")
    meant = kinds_by_suffix().get(real.suffix.lower())
    return SourceSpec(meant if meant in forms()[form] else kind, str(real), options)


def _manifest(key: str) -> SourceSpec | None:
    path = st.text_input("Table", placeholder="~/pictures/images.csv", key=f"{key}_table").strip()
    if not path:
        return None
    if not _may_read(key, SourceSpec("manifest", path)):
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
    download = st.checkbox("Download if missing", key=f"{key}_download")
    if not root:
        return None
    spec = SourceSpec("torchvision", name, {"root": root, "download": download})
    if not _may_read(key, spec):
        return None
    projects.workspace().guard.resolve(root)
    return spec


def _may_read(key: str, spec: SourceSpec) -> bool:
    """Ask before a folder is read for the first time, and remember the answer."""
    space = projects.workspace()
    place = allowing.place_of(spec)
    if place is None or not may_allow_folders() or not allowing.is_refused(space, place):
        return True  # the guard has the last word
    check_can_be_allowed(place)
    st.info(
        f"Nothing in {literal(str(place), 200)} has been read so far. Allow it once, and it may be imported from. "
        "Hidden files stay closed.",
        icon=":material/lock:",
    )
    if st.button("Allow this folder" if place.is_dir() else "Allow this file", key=f"{key}_allow"):
        space.allow_folder(place)
        st.rerun()
    return False


def allowed_folders(key: str) -> None:
    """Which folders may be read, and a way to take that back."""
    space = projects.workspace()
    if not rights.allows("read server folders"):
        return
    folders = space.allowed_folders() if roots_from_environment() is None else ()
    if not folders:
        return
    with st.popover("Allowed folders", icon=":material/folder_open:"):
        st.write("Images may be imported from these. Removing one leaves what was imported as it is.")
        for number, folder in enumerate(folders):
            with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
                st.write(literal(str(folder), 200))
                if st.button("Remove", key=f"{key}_remove_{number}"):
                    space.forget_folder(folder)
                    st.rerun()


def _variants(key: str) -> tuple[dict[str, Any], ...]:
    """The paper's two kinds of hard data, on any source with reference labels."""
    chosen: list[dict[str, Any]] = []
    with st.expander("Make the pool harder, to study pruning", icon=":material/science:"):
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
            severity = st.segmented_control(
                "Severity",
                list(SEVERITIES),
                format_func=SEVERITIES.get,
                default=MILD,
                required=True,
                key=f"{key}_severity",
            )
            chosen.append({"name": "corrupt", "share": share, "seed": 0, "severity": severity})
    return tuple(chosen)
