"""Reports on pseudo-labels, computed once: a page's own code runs anew at every click."""

from __future__ import annotations

from semiprune_core.labeling import LabelStore
from semiprune_core.project.cache import LRUCache
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.results import PseudoRun
from semiprune_core.trust import quality_report
from semiprune_core.trust.quality_report import Report

_REPORTS: LRUCache[Report] = LRUCache(16)


def report_of(project: Project, pool: Pool, store: LabelStore, run: PseudoRun, subset: str | None) -> Report:
    """The report, computed once per state of labels and pool."""
    key = (project.folder, run.artifact.hash, pool.hash, store.last_seq, subset)
    return _REPORTS.get(key, lambda: quality_report.report(pool, run, store=store, subset=subset))
