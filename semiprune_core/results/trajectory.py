"""The artifact ``trajectory``: (T, N) columns of the dynamics run of one seed, its history, the model's features."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from semiprune_core import files
from semiprune_core.project.artifacts import Artifact, Draft
from semiprune_core.records import Trajectory
from semiprune_core.results.trajectory_store import open_trajectory

FEATURES = "features.npy"


@dataclass(frozen=True, eq=False)
class TrajectoryRun:
    """A finished dynamics run of one seed."""

    artifact: Artifact

    @property
    def start(self) -> str:
        """Where it began: "frozen" for a head on pretrained features, "finetuned" or "scratch" for a net."""
        return str(self.artifact.settings.get("start", "scratch"))

    @property
    def n_epochs(self) -> int:
        return int(self.artifact.facts["n_epochs"])

    def trajectory(self, n_epochs: int | None = None) -> Trajectory:
        """Its (T, N) columns, memory-mapped; with ``n_epochs`` the first of them."""
        return open_trajectory(self.artifact.folder, n_epochs)

    def features(self) -> np.ndarray | None:
        """(N, D) float16 of the trained model, memory-mapped; None in runs from before they were kept."""
        path = self.artifact.path(FEATURES)
        return np.load(path, mmap_mode="r", allow_pickle=False) if path.is_file() else None

    def history(self) -> list[dict[str, Any]]:
        """One entry per epoch: loss, accuracy against the pseudo-labels, and on the test images where tested."""
        return files.read_json(self.artifact.path("history.json"))


def write_trajectory(
    draft: Draft, recorded: Path, history: list[dict[str, Any]], *, features: Path | None = None
) -> None:
    """Fill the draft of a ``trajectory`` artifact with what a TrajectoryWriter left in the folder ``recorded``.

    ``features`` is the file of the model's features, where they were kept. Files are linked, not moved: a crash before
    the artifact is complete leaves the run as it was.
    """
    for path in [*sorted(recorded.iterdir()), *([features] if features else [])]:
        try:
            os.link(path, draft.path(path.name))
        except OSError:  # another disk, or one that knows no links
            shutil.copyfile(path, draft.path(path.name))
    files.write_json(draft.path("history.json"), history)
    shape = open_trajectory(draft.folder).target_prob.shape
    draft.facts.update(n_epochs=int(shape[0]), n_images=int(shape[1]), last=history[-1] if history else None)
