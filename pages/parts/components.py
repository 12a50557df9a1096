"""Our Components-v2 elements. Their code is ours and constant; user text only ever travels as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import streamlit as st

FRONTEND = Path(__file__).parent / "frontend"


def _read(name: str) -> str:
    return (FRONTEND / name).read_text("utf-8")


def _ignore() -> None:
    """A component value is only sent when somebody listens; we read it from the result."""


_gallery = st.components.v2.component(
    "studio_gallery", html='<div class="grid"></div>', css=_read("gallery.css"), js=_read("gallery.js")
)
_picture = st.components.v2.component(
    "studio_picture", html='<div class="picture"></div>', css=_read("picture.css"), js=_read("picture.js")
)
_uploader = st.components.v2.component(
    "studio_uploader", html=_read("uploader.html"), css=_read("uploader.css"), js=_read("uploader.js")
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
    return _gallery(key=key, data=data, on_opened_change=_ignore).opened


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
    result = _gallery(key=key, data=data, on_opened_change=_ignore, on_selected_change=_ignore)
    shown = {item.id for item in items}
    return Chosen(tuple(one for one in result.selected or () if one in shown), result.opened)


def picture(src: str, *, key: str, alt: str = "", fallback: str = "") -> None:
    """One picture, large."""
    _picture(key=key, data={"src": src, "alt": alt, "fallback": fallback})


def uploader(base: str, token: str, *, key: str, words: str = "") -> dict[str, Any] | None:
    """A drop zone that streams to our upload route; returns what has just arrived. ``words`` ask for one file."""
    data = {"base": f"{base}/uploads", "token": token, "words": words}
    return _uploader(key=key, data=data, on_uploaded_change=_ignore).uploaded
