"""What the inspecting pages share: the map, the confusion matrix, reports that are kept (a page's own code is not)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.parts.components import FRONTEND
from semiprune_core.labeling import LabelStore
from semiprune_core.project.cache import LRUCache
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.results import PseudoRun
from semiprune_core.trust import quality_report
from semiprune_core.trust.quality_report import Report

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


_REPORTS: LRUCache[Report] = LRUCache(16)


def report_of(project: Project, pool: Pool, store: LabelStore, run: PseudoRun, subset: str | None) -> Report:
    """The report, computed once per state of labels and pool."""
    key = (project.folder, run.artifact.hash, pool.hash, store.last_seq, subset)
    return _REPORTS.get(key, lambda: quality_report.report(pool, run, store=store, subset=subset))


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
