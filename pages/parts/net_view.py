"""What the net sees: eight training copies, their size and fit to choose, and what suits the images."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future

import numpy as np
import streamlit as st

from pages.parts import components, errors
from pages.parts import project as projects
from pages.parts.text import literal
from semiprune_core.errors import SemiPruneError
from semiprune_core.importing import ImportSettings, begin_project, can_repeat, preview, usual_fit
from semiprune_core.importing.preview import Preview
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.project.pool import SIZES, Pool, PoolSettings
from semiprune_core.project.workspace import Project

FITS = {"crop": "Crop to the centre", "pad": "Pad to a square", "stretch": "Stretch to a square"}
DONE = {"crop": "cropped", "pad": "padded", "stretch": "stretched"}
COLOURS = {3: "Colour", 1: "Grey"}
AUTO = "Auto"
EVERY = 1.0
"""Seconds between two looks at pictures under way; the page itself is not run again, as a click could get lost."""
REMEMBERED = 8
EXPLAIN = "Networks train on small square copies; pretrained features see the originals, made square in the same way."

_looks: dict[str, Future[Preview]] = {}
_lock = threading.Lock()


def look(key: str, make: Callable[[], Preview]) -> Future[Preview]:
    """What ``make`` gives, made once for a key in a thread of its own: no page waits for it."""
    with _lock:
        if key not in _looks:
            while len(_looks) >= REMEMBERED:
                _looks.pop(next(iter(_looks)))
            _looks[key] = future = Future()
            threading.Thread(target=_make, args=(future, make), name="net-view", daemon=True).start()
        return _looks[key]


def _make(future: Future[Preview], make: Callable[[], Preview]) -> None:
    try:
        future.set_result(make())
    except BaseException as error:  # noqa: BLE001 - raised again where the result is asked for
        future.set_exception(error)


def choose(spec: SourceSpec | None) -> tuple[dict[str, int], str]:
    """What a person sets of the training copies' size and channels, and how they become square; pictures below."""
    with st.container(border=True):
        st.markdown("**What the net sees**")
        st.caption(f"{EXPLAIN} The originals are not changed.")
        left, middle, right = st.columns(3)
        side = left.selectbox("Size", [AUTO, *SIZES], format_func=_pixels, key="new_size")
        channels = middle.selectbox("Colour", [AUTO, *COLOURS], format_func=_colour, key="new_colour")
        start = list(FITS).index(usual_fit(spec.kind) if spec else PoolSettings().fit)
        fit = str(right.selectbox("Non-square images", list(FITS), start, format_func=FITS.get, key=f"new_fit_{start}"))
        given = {name: int(value) for name, value in (("size", side), ("channels", channels)) if value != AUTO}
        if spec is not None:
            space = projects.workspace()
            key = json.dumps([str(space.root), spec.to_json()])
            future = look(key, lambda: preview.preview_source(space, spec))
            st.fragment(_of_source, run_every=None if future.done() else EVERY)(future, given, fit)
    return given, fit


def _of_source(future: Future[Preview], given: dict[str, int], fit: str) -> None:
    """The copies of a chosen source with what *Auto* takes, once they are made."""
    found = _finished(future)
    if found is None:
        return
    suggested = found.suggested(fit)
    settings = suggested.replace(**given)
    components.training_copies(found.pictures(settings), key="new_copies")
    auto = "" if len(given) == 2 else f"Auto: {suggested.size} px, {COLOURS[suggested.channels].lower()}."
    _advise(found.shapes, settings, suggested.size, auto)


def _finished(future: Future[Preview]) -> Preview | None:
    """What was made; None, said so, while it is not there or cannot be had."""
    if not future.done():
        st.caption("Making training copies of a few images")
        return None
    try:
        return future.result()
    except SemiPruneError as error:
        st.caption(f"No pictures to show: {literal(str(error), 300)}")
        return None


def of_pool(project: Project, everything: Pool) -> None:
    """The tab of the Pool page: the copies as they are, and as they would be."""
    pool, present = everything.split("pool"), project.pool_settings
    if present is None or not len(pool):
        st.info("There are no images to train on.", icon=":material/info:")
        return
    left, right = st.columns(2)
    size = left.selectbox("Size", SIZES, SIZES.index(present.size), format_func=_pixels, key="net_size")
    fits = list(FITS)
    fit = right.selectbox("Non-square images", fits, fits.index(present.fit), format_func=FITS.get, key="net_fit")
    settings = present.replace(size=int(size), fit=str(fit))
    if settings == present:
        components.training_copies(_present(pool), key="net_copies")
    else:
        future = look(f"{project.folder} {pool.hash}", lambda: preview.preview_pool(project))
        st.fragment(_of_pool, run_every=None if future.done() else EVERY)(future, settings)
    _advise(_shapes(pool), settings, present.size)
    st.caption(EXPLAIN)
    if settings != present:
        other_copies(project, present, settings)


def _of_pool(future: Future[Preview], settings: PoolSettings) -> None:
    if (found := _finished(future)) is not None:
        components.training_copies(found.pictures(settings), key="net_copies")


def other_copies(project: Project, present: PoolSettings, settings: PoolSettings) -> None:
    """A pool's copies are made once: others are another project's."""
    st.info(
        f"This project trains on copies of {present.size} px, {DONE[present.fit]}. They are made at the import and all "
        "results stand on them: others make another project.",
        icon=":material/info:",
    )
    imports = project.artifacts("pool")
    again = ImportSettings(source=imports[0].settings["source"], pool=settings.to_json())
    if len(imports) > 1 or not can_repeat(project.workspace, again):
        st.caption("Import the images again as a new project to have it.")
        return
    if st.button(f"New project: {settings.size} px, {DONE[settings.fit]}", icon=":material/add:", key="net_again"):
        with errors.shown():
            made = begin_project(project.workspace, f"{project.title} {settings.size} px {DONE[settings.fit]}", again)
            projects.choose(made.name)
            st.rerun()


@functools.lru_cache(maxsize=8)
def _present(pool: Pool) -> list[bytes]:
    return preview.present_copies(pool)


@functools.lru_cache(maxsize=8)
def _shapes(pool: Pool) -> np.ndarray:
    return preview.shapes_of(pool)


def _advise(shapes: np.ndarray, settings: PoolSettings, usual: int, first: str = "") -> None:
    words = (first.strip(), preview.advice(shapes, settings), preview.size_advice(shapes, settings, usual))
    st.caption(" ".join(word for word in words if word))


def _pixels(value: int | str) -> str:
    return str(value) if value == AUTO else f"{value} px"


def _colour(value: int | str) -> str:
    return str(value) if value == AUTO else COLOURS[int(value)]
