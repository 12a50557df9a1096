"""Reports and confusions of pseudo-labels, computed once: a page's own code runs anew at every click."""

from __future__ import annotations

from semiprune_core.labeling import LabelStore
from semiprune_core.project.cache import LRUCache
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.results import PseudoRun
from semiprune_core.trust import confusion, quality_report
from semiprune_core.trust.confusion import Confusion
from semiprune_core.trust.quality_report import Report

_REPORTS: LRUCache[Report] = LRUCache(16)
_CONFUSIONS: LRUCache[Confusion | None] = LRUCache(4)


def report_of(project: Project, pool: Pool, store: LabelStore, run: PseudoRun, subset: str | None) -> Report:
    """The report, computed once per state of labels and pool."""
    key = (project.folder, run.artifact.hash, pool.hash, store.last_seq, subset)
    return _REPORTS.get(key, lambda: quality_report.report(pool, run, store=store, subset=subset))


def confusion_of(
    project: Project, pool: Pool, store: LabelStore, run: PseudoRun, subset: str | None
) -> Confusion | None:
    """Which classes are taken for which, computed once per state of labels and pool."""
    key = (project.folder, run.artifact.hash, pool.hash, store.last_seq, subset)
    return _CONFUSIONS.get(key, lambda: confusion.confusion_of(pool, run, store.uniform_labels(), subset))
