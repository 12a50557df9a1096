"""What one run of training works on: its job, its settings, the pool and the labels it was started on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from semiprune_core import files
from semiprune_core.jobs import JobContext
from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.progress import InnerProgress, Progress
from semiprune_core.project.pool import Pool
from semiprune_core.records import UNLABELED, IntArray
from semiprune_core.training.data import PoolLabels, check_pool, labels_on_pool, reference_on
from semiprune_core.training.settings import TrainSettings
from semiprune_core.training.snapshots import read_snapshot, snapshot_bytes, snapshot_path

LABELS = "labels.npz"


@dataclass(frozen=True, eq=False)
class Task:
    """``reference`` (N,) are reference labels of images that nobody labeled, -1 elsewhere: only ever compared with."""

    context: JobContext
    settings: TrainSettings
    pool: Pool
    snapshot: LabelsSnapshot
    labels: PoolLabels
    reference: IntArray

    @classmethod
    def of(cls, context: JobContext) -> Task:
        """The task of a job, on the pool and the labels that it pinned; refused where these are gone."""
        pool = context.project.pool()
        check_pool(pool, context.pins["pool"])
        snapshot = pinned_labels(context)
        labels = labels_on_pool(snapshot, pool)
        reference = np.where(labels.human < 0, reference_on(snapshot, pool), UNLABELED)
        return cls(context, TrainSettings.from_job(context.settings), pool, snapshot, labels, reference)

    def starting(self, start: str) -> Task:
        """The same task from a certain start."""
        return dataclasses.replace(self, settings=self.settings.replace(start=start))

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.snapshot.class_names

    @property
    def folder(self) -> Path:
        return self.context.folder


@dataclass(frozen=True)
class Told(InnerProgress):
    """A progress that adds the same facts to every report."""

    whole: Progress
    facts: Mapping[str, Any] = field(default_factory=dict)

    def report(self, done: int, total: int, /, **facts: Any) -> None:
        self.whole.report(done, total, **{**facts, **self.facts})


def pinned_labels(context: JobContext) -> LabelsSnapshot:
    """The labels the run was started on, whatever people did since: from its own folder, where it keeps a copy."""
    wanted = context.pins["labels"]
    own = context.folder / LABELS
    if own.is_file():
        return read_snapshot(own, wanted)
    snapshot = read_snapshot(snapshot_path(context.project, wanted), wanted)
    if context.rank == 0:
        files.write_bytes(own, snapshot_bytes(snapshot))
    return snapshot
