"""The job kind ``scan``."""

from __future__ import annotations

from typing import Any

from semiprune_core.jobs import JOB_KINDS, JobContext
from semiprune_core.scan.run import scan


@JOB_KINDS.register("scan", title="Scan", device="scan")
def run(context: JobContext) -> dict[str, Any]:
    made = scan(context.project, context)
    context.log.info("%s: %d images, %d pairs", made.artifact.id, made.n_images, len(made.pairs.left))
    return {"artifact": made.artifact.id, "n_pairs": len(made.pairs.left)}
