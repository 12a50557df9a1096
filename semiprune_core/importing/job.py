"""The job kind ``import``."""

from __future__ import annotations

from typing import Any

from semiprune_core.errors import SourceError, UnsafePathError
from semiprune_core.importing.follow_up import queue_features, queue_labels
from semiprune_core.importing.run import ImportSettings, import_source, remove_upload
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.jobs import JOB_KINDS, JobContext


@JOB_KINDS.register("import", title="Import", device="io")
def run(context: JobContext) -> dict[str, Any]:
    settings = ImportSettings.from_json(context.settings)
    try:
        artifact = import_source(context.project, settings, context)
    except (SourceError, UnsafePathError):  # refused for good: what was uploaded is of no further use
        remove_upload(context.project.workspace, SourceSpec.from_json(settings.source))
        raise
    project = context.project.workspace.project(context.project.name)
    labels = queue_labels(project, settings.annotator)
    features = queue_features(project, settings.features)
    context.log.info(
        "%s: %d images, %d problems", artifact.id, artifact.facts["n_images"], artifact.facts["n_problems"]
    )
    return {
        "artifact": artifact.id,
        **{key: artifact.facts[key] for key in ("n_images", "n_problems")},
        "labels_job": labels.id if labels else None,
        "features_job": features.id if features else None,
    }
