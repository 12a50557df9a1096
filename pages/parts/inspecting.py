"""Elements of the inspecting pages: the map and the confusion matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.parts.components import FRONTEND

_map = st.components.v2.component(
    "studio_map",
    html=(FRONTEND / "map.html").read_text("utf-8"),
    css=(FRONTEND / "map.css").read_text("utf-8"),
    js=(FRONTEND / "map.js").read_text("utf-8"),
)
_matrix = st.components.v2.component(
    "studio_matrix",
    html='<div class="scroll"><div class="matrix" role="grid"></div></div>',
    css=(FRONTEND / "matrix.css").read_text("utf-8"),
    js=(FRONTEND / "matrix.js").read_text("utf-8"),
)


def _ignore() -> None:
    """A component value is only sent when somebody listens; we read it from the result."""


def point_map(data: Mapping[str, Any], *, key: str) -> tuple[dict[str, Any] | None, str | None]:
    """The map; returns the line that was drawn around points, if any, and the id of the image just opened."""
    state = st.session_state.get(key)
    line = state.get("line") if state else None
    result = _map(key=key, data={**data, "line": line}, on_line_change=_ignore, on_opened_change=_ignore)
    return result.line, result.opened


def confusion(
    names: Sequence[str], counts: Sequence[Sequence[int]], *, key: str, chosen: tuple[int, int] | None
) -> tuple[int, int] | None:
    """A confusion matrix whose cells can be clicked; returns (true class, model's class) of the chosen one."""
    data = {"names": list(names), "counts": [list(row) for row in counts], "chosen": chosen}
    cell = _matrix(key=key, data=data, on_cell_change=_ignore).cell
    return (int(cell[0]), int(cell[1])) if cell else None
