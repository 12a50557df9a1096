"""Our Components-v2 elements. Their code is ours and constant; user text only ever travels as data."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import streamlit as st

FRONTEND = Path(__file__).parent / "frontend"


def read(*names: str) -> str:
    """Files of ``frontend/`` joined into one text."""
    return "\n".join((FRONTEND / name).read_text("utf-8") for name in names)


def ignore() -> None:
    """A component value is only sent when somebody listens; we read it from the result."""


_gallery = st.components.v2.component(
    "studio_gallery", html='<div class="grid"></div>', css=read("gallery.css"), js=read("dom.js", "gallery.js")
)
_picture = st.components.v2.component(
    "studio_picture", html='<div class="picture"></div>', css=read("picture.css"), js=read("picture.js")
)
_copies = st.components.v2.component(
    "studio_copies", html='<div class="copies"></div>', css=read("copies.css"), js=read("copies.js")
)
_uploader = st.components.v2.component(
    "studio_uploader", html=read("uploader.html"), css=read("uploader.css"), js=read("uploader.js")
)
_map = st.components.v2.component("studio_map", html=read("map.html"), css=read("map.css"), js=read("dom.js", "map.js"))
_teller = st.components.v2.component("studio_jobs", html=read("jobs.html"), css=read("jobs.css"), js=read("jobs.js"))
_frame = st.components.v2.component("studio_frame", html="<span></span>", js=read("frame.js"))
_keys = st.components.v2.component("studio_keys", html="<span></span>", js=read("keys.js"))
_matrix = st.components.v2.component(
    "studio_matrix",
    html='<div class="scroll"><div class="matrix" role="group" aria-label="Confusion matrix"></div></div>',
    css=read("matrix.css"),
    js=read("dom.js", "matrix.js"),
)


@dataclass(frozen=True)
class Item:
    """One picture of a gallery."""

    id: str
    src: str
    title: str = ""
    note: str = ""
    badge: str = ""
    color: str = ""
    hint: str = ""
    value: float | None = None
    """A share in [0, 1], drawn as a thin bar below the picture: the confidence."""
    badges: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chosen:
    """What a choosing gallery says: the ids that are selected, and the one that was just opened."""

    ids: tuple[str, ...]
    opened: str | None


def gallery(items: Sequence[Item], *, key: str, cell: int = 120, one_row: bool = False) -> str | None:
    """A grid of pictures (``one_row``: as many as fit); returns the id of the one that was just opened."""
    data = {"items": [asdict(item) for item in items], "cell": cell, "mode": "open", "one_row": one_row}
    return _gallery(key=key, data=data, on_opened_change=ignore).opened


def chooser(items: Sequence[Item], *, key: str, cell: int = 120, round: str = "") -> Chosen:
    """A grid of pictures to select from: click or space selects, shift extends, double click or Enter opens.

    A new ``round`` begins with nothing selected.
    """
    data = {
        "items": [asdict(item) for item in items],
        "cell": cell,
        "mode": "select",
        "one_row": False,
        "round": round,
    }
    result = _gallery(key=key, data=data, on_opened_change=ignore, on_selected_change=ignore)
    shown = {item.id for item in items}
    return Chosen(tuple(image_id for image_id in result.selected or () if image_id in shown), result.opened)


def picture(src: str, *, key: str, alt: str = "", fallback: str = "") -> None:
    """One picture, large."""
    _picture(key=key, data={"src": src, "alt": alt, "fallback": fallback})


def training_copies(pictures: Sequence[bytes], *, key: str) -> None:
    """A row of small PNG files, each pixel as it is."""
    sources = [f"data:image/png;base64,{base64.b64encode(png).decode()}" for png in pictures]
    _copies(key=key, data={"pictures": sources})


def uploader(base: str, token: str, *, key: str, words: str = "") -> dict[str, Any] | None:
    """A drop zone that streams to our upload route; returns what has just arrived. ``words`` ask for one file."""
    data = {"base": f"{base}/uploads", "token": token, "words": words}
    return _uploader(key=key, data=data, on_uploaded_change=ignore).uploaded


def point_map(data: Mapping[str, Any], *, key: str) -> tuple[dict[str, Any] | None, str | None]:
    """The map; returns the line that was drawn around points, if any, and the id of the image just opened."""
    state = st.session_state.get(key)
    line = state.get("line") if state else None
    result = _map(key=key, data={**data, "line": line}, on_line_change=ignore, on_opened_change=ignore)
    return result.line, result.opened


def confusion_matrix(
    names: Sequence[str], counts: Sequence[Sequence[int]], *, key: str, chosen: tuple[int, int] | None
) -> tuple[int, int] | None:
    """A confusion matrix whose cells can be clicked; returns (true class, model's class) of the chosen one."""
    data = {"names": list(names), "counts": [list(row) for row in counts], "chosen": chosen}
    cell = _matrix(key=key, data=data, on_cell_change=ignore).cell
    return (int(cell[0]), int(cell[1])) if cell else None


def job_teller(under_way: Sequence[str], ended: Mapping[str, str], *, key: str) -> None:
    """Tell a person who is elsewhere, by the tab's title and the browser, of each ``ended`` job (words by id) once."""
    over = [{"id": job_id, "words": words} for job_id, words in ended.items()]
    _teller(key=key, data={"under_way": list(under_way), "ended": over})


def slide_keys(*, arrows: bool) -> int:
    """1 or -1 when somebody has just pressed a key that turns the slide on or back, else 0."""
    return int(_keys(key="studio_keys", data={"arrows": arrows}, on_turn_change=ignore).turn or 0)


def frame() -> None:
    """What every page needs in the browser, once: one step back is one page, and a server that is gone is named."""
    _frame(key="studio_frame")
