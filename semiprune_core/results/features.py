"""The artifact ``features``: every image as an encoder sees its original.

    features.npy         (N, D) float32, the pool in its order
    mirrored.npy         (N, D) float16, the same of the mirrored images; absent where they were not shown
    test_features.npy, test_mirrored.npy    the same of the M test images; absent where there are none

``settings`` say what looked: encoder, hash of its weights, side and fit of the images, normalisation. ``inputs`` name
the pool; ``facts["segments"]`` its imports, so that after a further one only the new images are computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiprune_core.errors import MissingStepError
from semiprune_core.project.artifacts import Artifact
from semiprune_core.project.workspace import Project
from semiprune_core.records import FloatArray

KIND = "features"
POOL_FILE, TEST_FILE = "features.npy", "test_features.npy"
FILES = {"pool": (POOL_FILE, "mirrored.npy"), "test": (TEST_FILE, "test_mirrored.npy")}


@dataclass(frozen=True, eq=False)
class FeatureRun:
    """Finished features, opened lazily."""

    artifact: Artifact

    @property
    def encoder(self) -> str:
        return str(self.artifact.settings["encoder"])

    @property
    def segments(self) -> tuple[str, ...]:
        """The imports it covers, by content hash."""
        return tuple(self.artifact.facts["segments"])

    @property
    def n_dimensions(self) -> int:
        return int(self.artifact.facts["n_dimensions"])

    def features(self) -> FloatArray:
        """(N, D) float32 of the pool, memory-mapped."""
        return np.load(self.artifact.path(POOL_FILE), mmap_mode="r", allow_pickle=False)

    def test_features(self) -> FloatArray:
        """(M, D) float32 of the test images, memory-mapped; M is 0 where there are none."""
        path = self.artifact.path(TEST_FILE)
        if not path.is_file():
            return np.empty((0, self.n_dimensions), np.float32)
        return np.load(path, mmap_mode="r", allow_pickle=False)

    def parts(self) -> list[tuple[FloatArray, FloatArray | None]]:
        """For each encoder whose features are here side by side: (N, width) of the images and of the mirrored ones.

        Features that are older than this know one encoder and no mirrored images.
        """
        widths = self.artifact.facts.get("widths", [self.n_dimensions])
        edges = np.cumsum(widths)[:-1]
        own = np.split(self.features(), edges, axis=1)
        path = self.artifact.path(FILES["pool"][1])
        if not path.is_file():
            return [(part, None) for part in own]
        mirrored = np.split(np.load(path, mmap_mode="r", allow_pickle=False), edges, axis=1)
        return list(zip(own, mirrored, strict=True))

    def is_current(self, project: Project) -> bool:
        """Whether it covers the project's images as they are now."""
        return self.segments == segments_of(project)


def segments_of(project: Project) -> tuple[str, ...]:
    """The project's imports by content hash, in their order."""
    return tuple(artifact.hash for artifact in project.artifacts("pool"))


def feature_runs(project: Project, encoder: str | None = None) -> list[FeatureRun]:
    """All features of a project (of one encoder, where given), oldest first."""
    runs = [FeatureRun(artifact) for artifact in project.artifacts(KIND)]
    return [run for run in runs if encoder is None or run.encoder == encoder]


def find_features(project: Project, settings: Mapping[str, Any]) -> FeatureRun | None:
    """The newest features made with exactly these settings, whichever images they cover."""
    matching = [run for run in feature_runs(project) if dict(run.artifact.settings) == dict(settings)]
    return matching[-1] if matching else None


def latest_features(project: Project, encoder: str | None = None) -> FeatureRun:
    """The newest features of the pool as it is now; refused with what to do where there are none."""
    current = segments_of(project)
    for run in reversed(feature_runs(project, encoder)):
        if run.segments == current:
            return run
    named = f" --encoder {encoder}" if encoder else ""
    raise MissingStepError(
        f"Project '{project.name}' has no features of its images{f' from {encoder}' if encoder else ''} yet. "
        f"They are computed in the background after an import; or run: semiprune embed {project.name}{named}"
    )
