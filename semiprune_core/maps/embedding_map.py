"""The artifact ``map``: one point per image, how it was made, and which images lie inside a drawn line.

``points.npy`` (N, 2) float32, NaN for images that were left out of a sample; settings are :class:`MapSettings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from semiprune_core import streams
from semiprune_core.checks import check_range
from semiprune_core.embeddings.features import FEATURES, Features, FeatureSettings, checked, describe
from semiprune_core.errors import InvalidDataError
from semiprune_core.maps.reduce import REDUCERS, reduce
from semiprune_core.progress import Progress
from semiprune_core.project.artifacts import Artifact, open_artifact
from semiprune_core.project.workspace import Project
from semiprune_core.records import BoolArray, FloatArray, IntArray
from semiprune_core.streams import Purpose

MOST_POINTS = 200_000
"""UMAP and t-SNE place a random sample of this many images in larger pools; PCA places all of them."""
MOST_CORNERS = 20_000


@dataclass(frozen=True, kw_only=True)
class MapSettings(FeatureSettings):
    """Which features, and how their two dimensions are found."""

    method: str = "umap"
    seed: int = 0

    def check(self) -> None:
        super().check()
        REDUCERS[self.method]
        check_range("seed", self.seed, low=0, high=2**32 - 1)


@dataclass(frozen=True, eq=False)
class EmbeddingMap:
    """A finished map, opened lazily."""

    artifact: Artifact

    def points(self) -> FloatArray:
        """(N, 2) float32, memory-mapped; NaN where an image has no place."""
        return np.load(self.artifact.path("points.npy"), mmap_mode="r", allow_pickle=False)

    @property
    def settings(self) -> MapSettings:
        return MapSettings.from_json(self.artifact.settings)

    @property
    def title(self) -> str:
        method = str(self.artifact.settings["method"])
        return f"{REDUCERS.title(method)} of {describe(self.artifact.settings)}"


def maps_of(project: Project) -> list[EmbeddingMap]:
    """Every map of a project, newest first."""
    return [EmbeddingMap(artifact) for artifact in reversed(project.artifacts("map"))]


def find_map(project: Project, settings: MapSettings, inputs: dict[str, str] | None = None) -> EmbeddingMap | None:
    """The newest map with these settings (and, where given, made from these inputs)."""
    for past in maps_of(project):
        if dict(past.artifact.settings) == settings.to_json() and (
            inputs is None or dict(past.artifact.inputs) == inputs
        ):
            return past
    return None


def make_maps(project: Project, settings: MapSettings, progress: Progress) -> list[EmbeddingMap]:
    """Compute the features once, publish PCA of them at once, then the method asked for. What exists is not redone."""
    features = FEATURES[settings.features](project, settings, progress)
    values = checked(features, len(project.pool()))
    quick = settings.replace(method="pca")
    wanted = [quick] if settings.method == "pca" else [quick, settings]
    return [
        find_map(project, asked, dict(features.inputs)) or _make(project, asked, features, values, progress)
        for asked in wanted
    ]


def _make(
    project: Project, settings: MapSettings, features: Features, values: np.ndarray, progress: Progress
) -> EmbeddingMap:
    n = len(values)
    chosen = np.arange(n)
    if settings.method != "pca" and n > MOST_POINTS:
        chosen = np.sort(streams.rng(settings.seed, Purpose.MAP_POINTS).choice(n, MOST_POINTS, replace=False))
    placed = reduce(
        settings.method, values[chosen] if len(chosen) < n else values, seed=settings.seed, progress=progress
    )
    points = np.full((n, 2), np.nan, dtype=np.float32)
    points[chosen] = placed
    with project.draft("map", settings=settings.to_json(), inputs=features.inputs, seed=settings.seed) as draft:
        np.save(draft.path("points.npy"), points, allow_pickle=False)
        draft.facts.update(
            n_images=n,
            n_placed=len(chosen),
            n_dimensions=int(values.shape[1]),
            low=[float(low) for low in placed.min(0)],
            high=[float(high) for high in placed.max(0)],
        )
    return EmbeddingMap(open_artifact(draft.folder))


def inside(points: FloatArray, corners: Sequence[Sequence[float]], mask: BoolArray | None = None) -> IntArray:
    """Positions of the points (N, 2) inside the closed line through ``corners``, by the even-odd rule.

    Only those in ``mask`` (N,) where given. Points without a place are never inside. The browser runs the same
    arithmetic in the same order on the same numbers, so both agree on every point.
    """
    line = np.asarray(corners, dtype=np.float64)
    if line.ndim != 2 or line.shape[1] != 2 or not 3 <= len(line) <= MOST_CORNERS or not np.isfinite(line).all():
        raise InvalidDataError(f"A selection is a line of 3 to {MOST_CORNERS} points on the map.")
    low, high = line.min(0), line.max(0)
    near = ((points >= low) & (points <= high)).all(1)
    candidates = np.flatnonzero(near if mask is None else near & mask)
    x, y = np.asarray(points[candidates], dtype=np.float64).T
    inside_mask = np.zeros(len(candidates), dtype=bool)
    x1, y1 = line[-1]
    for x2, y2 in line:
        if y1 != y2:
            crosses = (y2 > y) != (y1 > y)
            inside_mask ^= crosses & (x < (x1 - x2) * (y - y2) / (y1 - y2) + x2)
        x1, y1 = x2, y2
    return candidates[inside_mask]
