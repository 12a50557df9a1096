"""The labeling elements: deck, grid, and a word the browser remembers. Deck and grid share one way for their events."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import quote

import streamlit as st

from pages.parts import project as projects
from pages.parts import urls
from pages.parts.components import ignore, read
from semiprune_core.labeling import LabelStore
from semiprune_core.project import rights
from semiprune_core.project.workspace import Project
from semiprune_core.server import browser_token


def _labeling(name: str) -> Any:
    """The deck or the grid: its own left side and behaviour in the frame both share."""
    return st.components.v2.component(
        f"studio_{name}",
        html=read("labeling.html").replace("<!-- left -->", read(f"{name}.html")),
        css=read("labeling.css", f"{name}.css"),
        js=read("label_pipe.js", "live.js", "labeling.js", f"{name}.js"),
    )


_deck = _labeling("deck")
_grid = _labeling("grid")
_remember = st.components.v2.component("studio_remember", html="<span></span>", js=read("remember.js"))


def remembered(name: str, value: str | None) -> str | None:
    """Keep ``value`` in the browser under ``name``; without one, what the browser kept from an earlier visit."""
    result = _remember(key=f"remember_{name}", data={"name": name, "value": value or ""}, on_value_change=ignore)
    text = result.value
    return text if isinstance(text, str) and text else None


def deck(project: Project, store: LabelStore, *, annotator: str, queue: str = "drawn") -> bool:
    """The deck; True when it has just come to the end of a complete subset."""
    data = _data(project, store, annotator, queue)
    return bool(_deck(key=f"deck_{queue}", data=data, on_finished_change=ignore).finished)


def grid(project: Project, store: LabelStore, *, annotator: str, n: int) -> None:
    """Up to ``n`` open images at once."""
    _grid(key=f"grid_{n}", data={**_data(project, store, annotator, "drawn"), "n": n})


def _data(project: Project, store: LabelStore, annotator: str, queue: str) -> dict[str, Any]:
    token = browser_token(projects.workspace())
    place = f"{urls.base()}/projects/{quote(project.name)}"
    latest = store.drawings.latest()
    # Unsent events wait in the browser under this name: never to be sent to another project of the same name.
    # With accounts, each has events of its own there.
    identity = "\n".join([token, project.name, project.config["created"], *filter(None, [rights.account()])])
    return {
        "store": hashlib.sha256(identity.encode()).hexdigest()[:20],
        "base": f"{place}/labels",
        "pictures": f"{place}/images",
        "token": token,
        "annotator": annotator,
        "may_add": rights.allows("classes", project.name),
        "queue": queue,
        "drawing": latest.drawing_id if latest else 0,
        "classes": [label_class.to_json() for label_class in store.classes.all()],
    }
