"""The job kind ``adopt``: a source's labels as labels by a person, once its images are in."""

from __future__ import annotations

from typing import Any

from semiprune_core.jobs import JOB_KINDS, JobContext
from semiprune_core.labeling.import_labels import adopt_reference
from semiprune_core.labeling.store import open_store


@JOB_KINDS.register("adopt", title="Take the source's labels", device="io")
def run(context: JobContext) -> dict[str, Any]:
    pool = context.project.pool()
    if not (pool.reference_labels >= 0).any():
        context.log.info("The source brought no labels.")
        return {"n_saved": 0}
    result = adopt_reference(
        open_store(context.project), pool, annotator=str(context.settings["annotator"]), progress=context
    )
    context.log.info("%d labels taken as given by %s", result.n_saved, context.settings["annotator"])
    return {"n_saved": result.n_saved}
