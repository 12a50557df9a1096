"""The job kind ``map``."""

from __future__ import annotations

from typing import Any

from semiprune_core.jobs import JOB_KINDS, JobContext
from semiprune_core.maps.embedding_map import MapSettings, make_maps


@JOB_KINDS.register("map", title="Map", device="cpu")
def run(context: JobContext) -> dict[str, Any]:
    made = make_maps(context.project, MapSettings.from_json(context.settings), context)
    for made_map in made:
        context.log.info("%s: %s, %d images", made_map.artifact.id, made_map.title, made_map.artifact.facts["n_placed"])
    return {"artifact": made[-1].artifact.id, "artifacts": [made_map.artifact.id for made_map in made]}
