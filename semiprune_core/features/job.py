"""The job kind ``features``."""

from __future__ import annotations

from typing import Any

from semiprune_core.features.embed import embed
from semiprune_core.features.submit import EmbedSettings
from semiprune_core.jobs import JOB_KINDS, JobContext


@JOB_KINDS.register("features", title="Features", device="features")
def run(context: JobContext) -> dict[str, Any]:
    made = embed(context.project, EmbedSettings.from_json(context.settings), context, folder=context.folder)
    facts = made.artifact.facts
    for message in facts["problems"]:
        context.log.warning("%s Its training copy was used.", message)
    context.log.info("%s: %d images, %s", made.artifact.id, facts["n_images"], facts["engine"])
    names = ("n_images", "n_test", "n_dimensions", "n_computed", "n_problems", "engine")
    return {"artifact": made.artifact.id, "encoder": made.encoder, **{name: facts[name] for name in names}}
