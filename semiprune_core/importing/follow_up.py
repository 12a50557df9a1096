"""What follows an import: the source's labels as a person's where that was chosen, and the features of the new images,
computed in the background unless switched off."""

from __future__ import annotations

import os

from semiprune_core import jobs
from semiprune_core.project.workspace import Project

VARIABLE = "SEMIPRUNE_FEATURES"
OFF = ("off", "no", "false", "0")


def features_are_on(project: Project) -> bool:
    """Whether features follow an import: unless the environment or the project says no."""
    return os.environ.get(VARIABLE, "").strip().lower() not in OFF and bool(project.config.get("features", True))


def queue_features(project: Project, wanted: bool | None = None) -> jobs.Job | None:
    """Queue the features job of the default encoder, or none where it is switched off.

    ``wanted`` is a choice made with this import; the project keeps it for the next one.
    """
    if wanted is not None and wanted != project.config.get("features", True):
        project = project.update(features=wanted)
    if not features_are_on(project):
        return None
    return jobs.submit(project, "features", {})


def queue_labels(project: Project, annotator: str) -> jobs.Job | None:
    """Queue the job that takes the source's labels as given by ``annotator``; none where they stay a reference."""
    if not annotator:
        return None
    return jobs.submit(project, "adopt", {"annotator": annotator})
