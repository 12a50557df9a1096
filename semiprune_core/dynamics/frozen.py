"""The dynamics run on pretrained features: a linear head is trained on them, epoch by epoch, in seconds."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semiprune_core import files
from semiprune_core.dynamics.submit import DynamicsSettings
from semiprune_core.errors import ConflictError
from semiprune_core.features import EmbedSettings
from semiprune_core.jobs import JobContext
from semiprune_core.labeling.class_names import Classes
from semiprune_core.learning.frozen.prepare import Scaling
from semiprune_core.learning.head_run import train_head
from semiprune_core.progress import Progress
from semiprune_core.project.artifacts import Artifact, open_artifact
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import FloatArray, IntArray
from semiprune_core.results import PseudoRun, write_trajectory
from semiprune_core.results.features import FeatureRun, feature_runs
from semiprune_core.results.trajectory import FEATURES
from semiprune_core.results.trajectory_store import TrajectoryWriter
from semiprune_core.training import reference_on

BLOCKS = "features"
"""Where blocks of features wait in the job's folder until all are there."""


def features_for(context: JobContext, settings: DynamicsSettings) -> FeatureRun:
    """The features that the job was queued with; computed first where there were none."""
    wanted = context.pins.get("features")
    if wanted is None:
        from semiprune_core.features.embed import embed

        folder = context.folder / BLOCKS
        folder.mkdir(exist_ok=True)
        return embed(context.project, EmbedSettings(encoder=settings.encoder), context, folder=folder)
    for run in feature_runs(context.project):
        if run.artifact.hash == wanted:
            return run
    raise ConflictError("The features that this run was queued with are gone. Start a new one.", code="PINS_CHANGED")


@dataclass(frozen=True, eq=False)
class FeatureLearner:
    """What the runs of all seeds share: the scaled features of the pool with their labels, and the test."""

    project: Project
    settings: DynamicsSettings
    pseudo: PseudoRun
    features: FeatureRun
    rows: FloatArray
    test: tuple[FloatArray, IntArray] | None

    @classmethod
    def of(
        cls, project: Project, settings: DynamicsSettings, pseudo: PseudoRun, features: FeatureRun
    ) -> FeatureLearner:
        seen = features.features()
        scaling = Scaling.of(seen)
        test = labeled_test_features(project.test_set(), features, pseudo)
        return cls(project, settings, pseudo, features, scaling(seen), (scaling(test[0]), test[1]) if test else None)

    def record(self, context: JobContext, pool: Pool, seed: int, progress: Progress, *, tests: int) -> Artifact:
        """The ``trajectory`` artifact of one seed. A run that was stopped or killed begins anew, to the same bits."""
        folder, head = context.folder / f"seed-{seed}", self.settings.head()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        result = train_head(
            self.rows,
            np.asarray(self.pseudo.labels().labels),
            n_classes=len(self.pseudo.class_names),
            settings=head,
            seed=seed,
            progress=progress,
            record=TrajectoryWriter(folder / "trajectory", head.epochs, len(pool)),
            test_rows=self.test[0] if self.test else None,
            test_labels=self.test[1] if self.test else None,
            test_every=max(1, head.epochs // tests),
        )
        _write_features(folder / FEATURES, self.features.features())
        inputs = {"pool": pool.hash, "pseudo": self.pseudo.artifact.hash, "features": self.features.artifact.hash}
        with self.project.draft("trajectory", settings=self.settings.made_with(), inputs=inputs, seed=seed) as draft:
            write_trajectory(draft, folder / "trajectory", result.history, features=folder / FEATURES)
            draft.facts["run"] = context.job.id
            if result.accuracy is not None:
                draft.facts["test_accuracy"] = {"value": result.accuracy.value, "n": result.accuracy.n}
        shutil.rmtree(folder, ignore_errors=True)
        return open_artifact(draft.folder)


def labeled_test_features(tests: Pool, features: FeatureRun, classes: Classes) -> tuple[FloatArray, IntArray] | None:
    """Features of the test images whose reference label is one of ``classes``, and those labels, if any."""
    labels = reference_on(classes, tests)
    labeled = np.flatnonzero(labels >= 0)
    return (np.asarray(features.test_features())[labeled], labels[labeled]) if len(labeled) else None


def _write_features(path: Path, features: FloatArray) -> None:
    with files.open_atomic(path) as file:
        np.save(file, np.asarray(features, dtype=np.float16), allow_pickle=False)
