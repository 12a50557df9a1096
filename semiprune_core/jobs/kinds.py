"""What a job can do, and where it is written down.

A kind is a function ``run(context: JobContext) -> dict | None`` under a name in :data:`JOB_KINDS`. :data:`HOMES` says
which module registers it, so that a kind is imported by the worker that runs it and by nobody else: importing
``semiprune_core.jobs`` never imports torch. What a worker imports is decided here and never by a file of a job.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from semiprune_core.errors import UnknownNameError
from semiprune_core.registry import Registry

if TYPE_CHECKING:
    from semiprune_core.jobs.context import JobContext

JobFunction = Callable[["JobContext"], Mapping[str, Any] | None]

JOB_KINDS: Registry[JobFunction] = Registry("job kind")


class Home(NamedTuple):
    """The module that registers a kind, and what must be known of it before that is imported."""

    module: str
    title: str
    device: str = "cpu"


HOMES: dict[str, Home] = {
    "import": Home("semiprune_core.importing.job", "Import", device="io"),
    "ssl": Home("semiprune_core.training.job", "Train"),
    "preflight": Home("semiprune_core.training.preflight", "Pre-flight"),
    "dynamics": Home("semiprune_core.dynamics.job", "Training dynamics"),
    "search": Home("semiprune_core.search.job", "Search"),
    "evaluate": Home("semiprune_core.evaluation.job", "Evaluate"),
    "label_budget": Home("semiprune_core.evaluation.study_job", "Label-budget study"),
    "pool_size": Home("semiprune_core.evaluation.study_job", "Pool-size study"),
    "map": Home("semiprune_core.maps.job", "Map"),
    "refresh": Home("semiprune_core.refresh.job", "Bring up to date", device="refresh"),
    "export": Home("semiprune_core.exporting.job", "Export", device="io"),
    "verify": Home("semiprune_core.exporting.job", "Verify", device="io"),
    "finished_demo": Home("semiprune_core.demo.job", "Opening the finished demo", device="io"),
}


def home_of(kind: str) -> Home:
    """What is known of ``kind`` without importing it; an unknown name is refused with a suggestion."""
    if kind in JOB_KINDS:
        facts = JOB_KINDS.facts(kind)
        return Home("", str(facts["title"]), str(facts.get("device", "cpu")))
    if kind not in HOMES:
        known = Registry[Home]("job kind")
        for name in {*HOMES, *JOB_KINDS}:
            known.register(name)(Home("", name))
        known[kind]  # raises, with the known names
    return HOMES[kind]


def load_kind(kind: str) -> JobFunction:
    """The function of ``kind``, importing its home where that has not happened yet."""
    if kind not in JOB_KINDS:
        home = home_of(kind)
        importlib.import_module(home.module)
        if kind not in JOB_KINDS:
            raise UnknownNameError(f"The module {home.module} does not register the job kind '{kind}'.")
    return JOB_KINDS[kind]
