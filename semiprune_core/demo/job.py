"""The job kind ``finished_demo``: the shipped run into a project."""

from __future__ import annotations

from typing import Any

from semiprune_core.demo.finished import unpack
from semiprune_core.jobs import JOB_KINDS, JobContext


@JOB_KINDS.register("finished_demo", title="Opening the finished demo", device="io")
def run(context: JobContext) -> dict[str, Any]:
    unpack(context.project, context)
    return {"artifacts": [artifact.id for artifact in context.project.artifacts()]}
