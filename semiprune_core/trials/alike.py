"""Images that are nearly alike, as the project's features see them: the pool and its test images looked at together.

The groups are found once for each set of features and kept in the project's folder, so that a page may ask for them.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from semiprune_core import files
from semiprune_core.errors import MissingStepError
from semiprune_core.learning.frozen import near_duplicates
from semiprune_core.progress import InnerProgress, Progress
from semiprune_core.project.workspace import Project
from semiprune_core.records import IntArray
from semiprune_core.results.features import FeatureRun, latest_features
from semiprune_core.trials.kinds import FEATURES, pinned_features

FOLDER = "alike"
LARGEST_GROUP = 0.05
"""A group that holds more than this part of all images is a kind of image, not one image several times."""


def pin_features(project: Project) -> dict[str, str]:
    """The features that a job is to go by, as a pin; nothing where there are none of the present images."""
    try:
        return {FEATURES: latest_features(project).artifact.hash}
    except MissingStepError:
        return {}


def alike(project: Project, pins: Mapping[str, str], progress: Progress) -> IntArray | None:
    """(N + M,) one number for the images of a group, of the pool and then of the tests: its first position.

    None where the job was queued without features.
    """
    if FEATURES not in pins:
        return None
    path = _path(project, pins[FEATURES])
    if not path.is_file():
        _keep(path, _groups(pinned_features(project, pins), progress))
    return _small_groups(np.load(path, allow_pickle=False))


def known_alike(project: Project) -> IntArray | None:
    """The same for the present features where a job has looked for them; None elsewhere."""
    path = _path(project, pin_features(project).get(FEATURES, ""))
    return _small_groups(np.load(path, allow_pickle=False)) if path.is_file() else None


@dataclass(frozen=True)
class _Looking(InnerProgress):
    """Says what is being done and moves nothing."""

    def report(self, done: int, total: int, /, **facts: Any) -> None:
        self.whole.report(0, 1, trial=f"Looking for near-copies of test images ({done / max(total, 1):.0%})")


def _path(project: Project, features_hash: str) -> Path:
    return project.folder / FOLDER / f"{features_hash}.npy"


def _groups(run: FeatureRun, progress: Progress) -> IntArray:
    features = np.concatenate([run.features(), run.test_features()])
    return near_duplicates(features, progress=_Looking(progress))


def _keep(path: Path, groups: IntArray) -> None:
    data = io.BytesIO()
    np.save(data, groups, allow_pickle=False)
    with files.named_disk_errors(path):
        path.parent.mkdir(exist_ok=True)
    files.write_bytes(path, data.getvalue())


def _small_groups(groups: IntArray) -> IntArray:
    """The groups, but for large ones, whose images stand alone.

    >>> _small_groups(np.array([0, 0, *[2] * 10, *range(12, 100)]))[:4].tolist()
    [0, 0, 2, 3]
    """
    size = np.bincount(groups, minlength=len(groups))[groups]
    return np.where(size > max(2, LARGEST_GROUP * len(groups)), np.arange(len(groups)), groups)
