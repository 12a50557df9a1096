"""The artifact ``scan``: pairs of near-duplicates and what was measured of each image, over all splits together.

    left.npy, right.npy, likeness.npy    pairs of positions, the better of fingerprints and features
    sharpness.npy, brightness.npy, ...   what was measured, float32 (N,) each

Positions are those of all images in the order of their imports. The same images and features are not looked at twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from semiprune_core.checks import check_range
from semiprune_core.errors import MissingStepError
from semiprune_core.learning.frozen.duplicates import Pairs
from semiprune_core.progress import Progress
from semiprune_core.project.artifacts import Artifact, open_artifact
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import FloatArray, IntArray
from semiprune_core.results.features import FILES, FeatureRun, latest_features
from semiprune_core.scan import near, oddities

KIND = "scan"
RULE = 2
"""Of how images are looked at; another one is another scan."""
PAIRS = ("left", "right", "likeness")


@dataclass(frozen=True, eq=False)
class ScanRun:
    """A finished scan, opened lazily."""

    artifact: Artifact

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScanRun) and other.artifact.folder == self.artifact.folder

    def __hash__(self) -> int:
        return hash(self.artifact.folder)

    @property
    def has_features(self) -> bool:
        return "features" in self.artifact.inputs

    @property
    def n_images(self) -> int:
        return int(self.artifact.facts["n_images"])

    @cached_property
    def pairs(self) -> Pairs:
        return Pairs(self._array("left"), self._array("right"), self._array("likeness"))

    @cached_property
    def measures(self) -> Mapping[str, FloatArray]:
        """(N,) by name; ``nearness`` is missing where there were no features."""
        return {name: self._array(name) for name in self.artifact.facts["measures"]}

    def groups(self, everything: Pool, threshold: float = near.THRESHOLD) -> IntArray:
        """(N,) near-duplicates among all images, copies of the same pixels among them: their smallest position."""
        check_range("threshold", threshold, low=near.LEAST, high=1)
        return near.groups_at(self.n_images, self.pairs, threshold, everything.duplicate_of)

    def odd(self) -> dict[str, IntArray]:
        """Positions of the odd images of each kind, the oddest first."""
        found: dict[str, IntArray] = {}
        for kind, oddity in oddities.ODDITIES.items():
            if oddity.measure not in self.measures:
                continue
            positions = np.flatnonzero(oddities.odd(kind, self.measures))
            values = self.measures[oddity.measure][positions]
            found[kind] = positions[np.argsort(values if oddity.low else -values, kind="stable")]
        return found

    def _array(self, name: str) -> np.ndarray:
        return np.load(self.artifact.path(f"{name}.npy"), allow_pickle=False)


def scan(project: Project, progress: Progress) -> ScanRun:
    """Look at every image of the project; what was found for the same images and features is found again."""
    if not project.has_pool():
        raise MissingStepError(f"Project '{project.name}' has no images yet. Import some on the Pool page first.")
    everything, run = project.everything(), _features(project)
    inputs = {"pool": everything.hash, **({"features": run.artifact.hash} if run else {})}
    for known in reversed(project.artifacts(KIND)):
        if dict(known.inputs) == inputs and known.settings == {"rule": RULE}:
            return ScanRun(known)
    measures = oddities.measure(everything, progress)
    features = None if run is None else features_of(run, everything)
    if features is not None:
        measures["nearness"] = oddities.nearness(features, progress)
    pairs = near.find_pairs(everything.images(), features, progress=progress)
    with project.draft(KIND, settings={"rule": RULE}, inputs=inputs) as draft:
        for name, values in [*zip(PAIRS, pairs, strict=True), *measures.items()]:
            np.save(draft.path(f"{name}.npy"), values, allow_pickle=False)
        draft.facts.update(n_images=len(everything), n_pairs=len(pairs.left), measures=list(measures))
    return ScanRun(open_artifact(draft.folder))


def latest_scan(project: Project) -> ScanRun | None:
    """The newest scan of the images as they are now; None where there is none."""
    current = project.everything().hash
    runs = [ScanRun(artifact) for artifact in project.artifacts(KIND) if artifact.inputs["pool"] == current]
    return next((run for run in reversed(runs) if run.has_features), runs[-1] if runs else None)


def needed_scan(project: Project) -> ScanRun:
    """The newest scan; refused with what to do where there is none."""
    found = latest_scan(project)
    if found is None:
        raise MissingStepError(
            f"The images of '{project.name}' were not scanned yet. Scan them on the Pool page, or run: "
            f"semiprune scan {project.name}"
        )
    return found


def sees_more_again(project: Project, run: ScanRun) -> bool:
    """Whether another scan would find more than ``run``: features came after it, or images are looked at anew now."""
    is_older = run.artifact.settings != {"rule": RULE}
    return is_older or (not run.has_features and _features(project) is not None)


def groups_of_pool(pool: Pool, run: ScanRun) -> IntArray:
    """(N,) near-duplicates among the images of ``pool``: the smallest position of each group there."""
    everything = Pool(pool.segments, np.arange(run.n_images), pool.starts)
    _, first, which = np.unique(run.groups(everything)[pool.rows], return_index=True, return_inverse=True)
    return first[which]


def features_of(run: FeatureRun, everything: Pool) -> FloatArray:
    """(N, D) features of all images and of their mirrored ones together, in the order of ``everything``."""
    found = np.zeros((len(everything), run.n_dimensions), np.float32)
    for split, (own, mirrored) in FILES.items():
        if run.artifact.path(own).is_file():
            values, path = (
                np.load(run.artifact.path(own), mmap_mode="r", allow_pickle=False),
                run.artifact.path(mirrored),
            )
            other = np.load(path, mmap_mode="r", allow_pickle=False) if path.is_file() else None
            found[everything.split(split).rows] = near.both_views(values, other)
    return found


def _features(project: Project) -> FeatureRun | None:
    try:
        return latest_features(project)
    except MissingStepError:
        return None
