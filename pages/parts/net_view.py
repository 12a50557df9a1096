"""What the net sees: eight training copies, their size and fit to choose, and what suits the images.

They are made in a thread of their own and shown when everything else on the page is: the page may be used meanwhile. No
timer runs the page again, as its answer could arrive when another page is already there.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

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
EVERY, LONGEST = 0.2, 60.0
"""Seconds between two looks at pictures under way, in which a click counts; and to wait for them at most."""
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


Later = Callable[[], None]
"""Shows what was not there when its place on the page was drawn; called last."""


def choose(spec: SourceSpec | None) -> tuple[dict[str, int], str, Later]:
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
        below = st.empty()
    return given, fit, functools.partial(_show_source, below, spec, given, fit)


def _show_source(below: DeltaGenerator, spec: SourceSpec | None, given: dict[str, int], fit: str) -> None:
    if spec is not None:
        space = projects.workspace()
        key = json.dumps([str(space.root), spec.to_json()])
        _show(below, look(key, lambda: preview.preview_source(space, spec)), functools.partial(_of_source, given, fit))


def _show(below: DeltaGenerator, future: Future[Preview], draw: Callable[[Preview], None]) -> None:
    """What was made, in its place; before that, and where it cannot be had, words that say so."""
    for _ in range(round(LONGEST / EVERY)):
        if future.done():
            break
        below.caption("Making training copies of a few images")  # and a click gets its turn
        wait([future], EVERY)
    if not future.done():
        below.caption("The training copies take too long to be shown here.")
        return
    with below.container():
        try:
            draw(future.result())
        except SemiPruneError as error:
            st.caption(f"No pictures to show: {literal(str(error), 300)}")


def _of_source(given: dict[str, int], fit: str, made: Preview) -> None:
    """The copies of a chosen source with what *Auto* takes."""
    suggested = made.suggested(fit)
    settings = suggested.replace(**given)
    components.training_copies(made.pictures(settings), key="new_copies")
    auto = "" if len(given) == 2 else f"Auto: {suggested.size} px, {COLOURS[suggested.channels].lower()}."
    _advise(made.shapes, settings, suggested.size, auto)


def of_pool(project: Project, everything: Pool) -> Later:
    """The tab of the Pool page: the copies as they are, and as they would be."""
    pool, present = everything.split("pool"), project.pool_settings
    if present is None or not len(pool):
        st.info("There are no images to train on.", icon=":material/info:")
        return lambda: None
    left, right = st.columns(2)
    size = left.selectbox("Size", SIZES, SIZES.index(present.size), format_func=_pixels, key="net_size")
    fits = list(FITS)
    fit = right.selectbox("Non-square images", fits, fits.index(present.fit), format_func=FITS.get, key="net_fit")
    settings = present.replace(size=int(size), fit=str(fit))
    below = st.empty()
    _advise(_shapes(pool), settings, present.size)
    st.caption(EXPLAIN)
    if settings != present:
        other_copies(project, present, settings)
    return functools.partial(_show_pool, below, project, pool, settings)


def _show_pool(below: DeltaGenerator, project: Project, pool: Pool, settings: PoolSettings) -> None:
    if settings == project.pool_settings:
        with below:
            components.training_copies(_present(pool), key="net_copies")
        return
    future = look(f"{project.folder} {pool.hash}", lambda: preview.preview_pool(project))
    _show(below, future, lambda made: components.training_copies(made.pictures(settings), key="net_copies"))


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
