"""Whether the knobs of an evaluation were tuned on its test images: which searches they came from, counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from semiprune_core import files
from semiprune_core.errors import SemiPruneError
from semiprune_core.jobs import Job
from semiprune_core.methods import METHODS
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.results.search import SearchRun
from semiprune_core.trials.apart import hold_out

OWN_SEARCHES = "own_searches.json"
"""In a job's own folder: the searches behind the knobs of methods that look at evidence of their own, by cell."""


def compared_ids(run: SearchRun, pool: Pool) -> np.ndarray:
    """(n,) the images that a search on this pool compared on; for older ones by the rule of their time."""
    stored = run.compared_ids()
    if stored is not None:
        return stored
    settings, every = run.settings, np.arange(len(pool))
    return pool.ids[hold_out(every, pool.duplicate_of, settings.validation, settings.split_seed)]


def searches_behind(job: Job) -> dict[str, str]:
    """The search behind each cell of an evaluation whose knobs were searched."""
    path = job.work_folder / OWN_SEARCHES
    return {**job.settings.get("searches", {}), **(files.read_json(path) if path.is_file() else {})}


def search_facts(project: Project, pool: Pool, searches: Mapping[str, str], tested_ids: np.ndarray) -> dict[str, Any]:
    """For the manifest: every search behind a cell, and how many of its images are tested on too: none, as a rule."""
    facts = []
    for search in sorted(set(searches.values())):
        run = _opened(project, search)
        if run is not None:
            ids = compared_ids(run, pool)
            shared = int(np.isin(ids, tested_ids).sum())
            facts.append({"search": search, "sha256": run.artifact.hash, "n_compared": len(ids), "n_tested": shared})
    return {"searches": facts, "search_words": overlap_words(facts, searches)}


def _opened(project: Project, search: str) -> SearchRun | None:
    try:
        return SearchRun(project.artifact(search))
    except SemiPruneError:  # deleted since
        return None


def overlap_words(facts: Iterable[Mapping[str, Any]], searches: Mapping[str, str]) -> str:
    """A warning where a search compared on test images; else nothing."""
    return " ".join(_tuned_on(search, searches) for search in facts if search["n_tested"])


def _tuned_on(search: Mapping[str, Any], searches: Mapping[str, str]) -> str:
    cells = [cell for cell, behind in searches.items() if behind == search["search"]]
    methods = dict.fromkeys(cell.rsplit(" ", 1)[0] for cell in cells)
    titles = ", ".join(METHODS.title(method) if method in METHODS else method for method in methods)
    return (
        f"The knobs of {titles} were tuned on {search['n_tested']:,} of the test images, by {search['search']} of an "
        "earlier version: these numbers are too good. Search again, then evaluate again."
    )
