"""Projects from a script: what the app shows as frames, and its steps as calls that wait until they are done."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from semiprune_core import jobs, steps
from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.dynamics import submit_dynamics
from semiprune_core.exporting import ExportOptions, export_coreset
from semiprune_core.finish import FinishSettings, submit_finish
from semiprune_core.jobs import Job
from semiprune_core.labeling import open_store
from semiprune_core.library.outcomes import Coreset, Scores
from semiprune_core.progress import Progress, Silent
from semiprune_core.project.pool import show_id
from semiprune_core.project.workspace import Project as Folder
from semiprune_core.project.workspace import Workspace
from semiprune_core.results import CoresetRun, latest_pseudo, latest_scores
from semiprune_core.results.coreset import open_coreset
from semiprune_core.training import start_training
from semiprune_core.training.settings import asked_settings

POOL_COLUMNS = ("path", "width", "height", "label", "split")


@dataclass(frozen=True)
class Project:
    """One project of the workspace. Frames are read anew each time; steps wait for their job and return its results."""

    folder: Folder

    @property
    def name(self) -> str:
        return self.folder.name

    def __repr__(self) -> str:
        done = [place.step.title for place in steps.standing(self.folder) if place.state == "done"]
        n = len(self.folder.pool()) if self.folder.has_pool() else 0
        return f"Project('{self.name}', {n:,} images, done: {', '.join(done) or 'nothing'})"

    @property
    def pool(self) -> pd.DataFrame:
        """A row for each image, in the pool's order: image_id, path, size, reference label (``label``), split."""
        pool = self.folder.pool()
        ids = {"image_id": [show_id(number) for number in pool.ids.tolist()]}
        return pd.DataFrame({**ids, **{name: pool.column(name).to_pandas() for name in POOL_COLUMNS}})

    @property
    def images(self) -> np.ndarray:
        """(N, size, size, channels) uint8: the training copies of the pool."""
        return self.folder.pool().images()

    @property
    def labels(self) -> pd.DataFrame:
        """A row for each image that people have labeled: image_id, path, label, and its position in the pool."""
        store, pool = open_store(self.folder), self.folder.pool()
        names = {label_class.class_id: label_class.name for label_class in store.classes.all()}
        settled = store.labels()
        positions = pool.positions(settled.ids)
        here = positions >= 0
        return pd.DataFrame(
            {
                "image_id": [show_id(number) for number in settled.ids[here].tolist()],
                "path": pool.column("path").take(positions[here]).to_pandas().to_numpy(),
                "label": [names.get(number) for number in settled.class_ids[here].tolist()],
                "position": positions[here],
            }
        )

    @property
    def pseudo_labels(self) -> pd.DataFrame:
        """The newest pseudo-labels, a row for each image of the pool: label, confidence, human."""
        labels = latest_pseudo(self.folder).labels()
        names = np.array(labels.class_names, dtype=object)[labels.labels]
        return pd.DataFrame({"label": names, "confidence": labels.confidence, "human": labels.human_mask})

    @property
    def scores(self) -> Scores:
        """The newest scores of every image."""
        run = latest_scores(self.folder)
        return Scores(run.table(), run.n_epochs, run.start)

    @property
    def runs(self) -> pd.DataFrame:
        """A row for each result, oldest first: id, kind, when it was made, how long that took, held-out accuracy."""
        rows = []
        for artifact in self.folder.artifacts():
            quality = artifact.facts.get("quality") or {}
            rows.append(
                {
                    "id": artifact.id,
                    "kind": artifact.kind,
                    "created": pd.Timestamp(artifact.manifest["created"]),
                    "seconds": artifact.facts.get("seconds", artifact.manifest.get("duration_s")),
                    "accuracy": (quality.get("accuracy") or {}).get("value"),
                }
            )
        return pd.DataFrame(rows, columns=["id", "kind", "created", "seconds", "accuracy"])

    @property
    def coresets(self) -> dict[str, Coreset]:
        """All coresets by id, oldest first."""
        return {artifact.id: _coreset(CoresetRun(artifact)) for artifact in self.folder.artifacts("coreset")}

    def train(
        self,
        *,
        start: str | None = None,
        algorithm: str | None = None,
        preset: str | None = None,
        encoder: str | None = None,
        seed: int = 0,
        device: str = "auto",
        progress: Progress | None = None,
        **settings: Any,
    ) -> pd.DataFrame:
        """Train on the labels, as ``semiprune train`` does with the same words; returns the pseudo-labels."""
        wanted = asked_settings(
            start=start, algorithm=algorithm, preset=preset, encoder=encoder, seed=seed, changes=settings
        )
        self._done(lambda: start_training(self.folder, wanted, device=device), progress)
        return self.pseudo_labels

    def train_dynamics(
        self,
        *,
        preset: str = "quick",
        seed: int = 0,
        device: str = "auto",
        progress: Progress | None = None,
        **training: Any,
    ) -> Scores:
        """Train on the pseudo-labels and score every image, as ``semiprune dynamics``; returns the scores."""
        self._done(
            lambda: submit_dynamics(self.folder, preset=preset, seeds=(seed,), device=device, **training), progress
        )
        return self.scores

    def select(
        self,
        ratio: float = 0.7,
        *,
        method: str = CoresetRequest.method,
        seed: int = 0,
        progress: Progress | None = None,
        **knobs: Any,
    ) -> Coreset:
        """Choose and save a coreset, as ``semiprune select``; ``knobs`` are its options too."""
        request = CoresetRequest.from_json({"method": method, "pruning_ratio": ratio, "seed": seed, **knobs})
        return _coreset(build_coreset(self.folder, request, progress=progress))

    def finish(self, *, seed: int = 0, device: str = "auto", progress: Progress | None = None) -> dict[str, Coreset]:
        """From the labels to coresets, a map and a report, as ``semiprune finish``; returns the coresets it made."""
        job = self._done(lambda: submit_finish(self.folder, FinishSettings(seed=seed, device=device)), progress)
        made = (job.result() or {})["artifacts"]["select"]
        return {name: _coreset(open_coreset(self.folder, name)) for name in made}

    def export(
        self,
        coreset: str | None = None,
        *,
        format: str = "csv",
        images: str | None = None,
        exact: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Path]:
        """Write a coreset (the newest by default) to files, as ``semiprune export``; returns them by role."""
        options = ExportOptions(exact=exact, images=images)
        made = export_coreset(self.folder, open_coreset(self.folder, coreset), format, options, progress=progress)
        return dict(made.files)

    def _done(self, submit: Callable[[], Job], progress: Progress | None) -> Job:
        job = submit()
        jobs.follow(job, progress or Silent())
        return job


def _coreset(run: CoresetRun) -> Coreset:
    return Coreset(**vars(run.coreset()))


def open(name: str, *, home: str | os.PathLike[str] | None = None) -> Project:
    """Open a project of the workspace: ``home``, else ``SEMIPRUNE_HOME``, else ``./workspace``."""
    workspace = Workspace.open(None if home is None else os.fspath(home), make=False)
    return Project(workspace.project(name))
