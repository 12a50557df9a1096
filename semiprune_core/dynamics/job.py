"""The job kind ``dynamics``: train on the pseudo-labeled pool, record the trajectory, score every image."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiprune_core import streams
from semiprune_core.dynamics.finetuned import finetuned_start
from semiprune_core.dynamics.frozen import FeatureLearner, features_for
from semiprune_core.dynamics.scoring import score_runs
from semiprune_core.dynamics.submit import DynamicsSettings, pinned_pseudo
from semiprune_core.jobs import JOB_KINDS, JobContext
from semiprune_core.labeling.class_names import Classes
from semiprune_core.learning.device import choose_device
from semiprune_core.learning.distributed import World, joined_world
from semiprune_core.learning.supervised_run import train_supervised
from semiprune_core.progress import InnerProgress, Progress
from semiprune_core.project.artifacts import Artifact, open_artifact
from semiprune_core.project.pool import Pool
from semiprune_core.records import IntArray
from semiprune_core.results import PseudoRun, TrajectoryRun, write_trajectory
from semiprune_core.results.pseudo import FINETUNED
from semiprune_core.results.trajectory import FEATURES
from semiprune_core.results.trajectory_store import TrajectoryWriter
from semiprune_core.streams import Purpose
from semiprune_core.training import check_pool, reference_on

TESTS_PER_RUN = 15


@dataclass(frozen=True)
class Share(InnerProgress):
    """The progress of one of several equally long parts."""

    part: int
    n_parts: int

    def report(self, done: int, total: int, /, **facts: Any) -> None:
        self.whole.report(self.part * total + done, self.n_parts * total, **facts)


@JOB_KINDS.register("dynamics", title="Training dynamics", tracked=True)
def run(context: JobContext) -> dict[str, Any] | None:
    settings = DynamicsSettings.from_json(context.settings)
    pseudo, pool = pinned_pseudo(context.project, settings), context.project.pool()
    check_pool(pool, context.pins["pool"])
    context.check_pin("pseudo", pseudo.artifact)
    context.drop_older_streams()
    if settings.is_frozen:
        return _scored(context, _on_features(context, settings, pseudo, pool), pool)
    with joined_world(choose_device(context.device.split(",")[0])) as (world, device):
        runs = []
        for part, seed in enumerate(settings.seeds):
            share = Share(context, part, len(settings.seeds))
            runs.append(_one_seed(context, settings, pseudo, pool, seed, share, world, str(device)))
    return _scored(context, runs, pool) if world.is_first else None


def _scored(context: JobContext, runs: Sequence[Artifact | None], pool: Pool) -> dict[str, Any]:
    scores = score_runs(context.project, [TrajectoryRun(run) for run in runs if run is not None], pool=pool)
    context.log.info("%s: %s", scores.artifact.id, ", ".join(scores.names))
    return {"trajectories": list(scores.trajectory_ids), "scores": scores.artifact.id}


def _on_features(context: JobContext, settings: DynamicsSettings, pseudo: PseudoRun, pool: Pool) -> list[Artifact]:
    """One ``trajectory`` artifact per seed, of a head on features."""
    features = features_for(context, settings)
    learner, runs = None, []
    for part, seed in enumerate(settings.seeds):
        finished = context.finished("trajectory", seed=seed)
        if finished is None:
            learner = learner or FeatureLearner.of(context.project, settings, pseudo, features)
            share = Share(context, part, len(settings.seeds))
            finished = learner.record(context, pool, seed, share, tests=TESTS_PER_RUN)
        runs.append(finished)
    return runs


def _one_seed(
    context: JobContext,
    settings: DynamicsSettings,
    pseudo: PseudoRun,
    pool: Pool,
    seed: int,
    progress: Progress,
    world: World,
    device: str,
) -> Artifact | None:
    """Train with one seed; on the first process its ``trajectory`` artifact, found again where it is there already."""
    folder = context.folder / f"seed-{seed}"
    training = settings.supervised()
    finished = context.finished("trajectory", seed=seed)
    if finished is not None:
        shutil.rmtree(folder, ignore_errors=True)
        return finished
    recorder = TrajectoryWriter(folder / "trajectory", training.epochs, len(pool)) if world.is_first else None
    test = labeled_tests(context.project.test_set(), pseudo)
    result = train_supervised(
        pool.images(),
        np.asarray(pseudo.labels().labels),
        n_classes=len(pseudo.class_names),
        settings=training,
        seed=streams.derived(seed, Purpose.SCORING_RUN),
        progress=progress,
        device=device,
        folder=folder / "checkpoints",
        record=recorder,
        eval_images=test[0] if test else None,
        eval_labels=test[1] if test else None,
        eval_every=max(1, training.epochs // TESTS_PER_RUN),
        world=world,
        features_path=folder / FEATURES,
        pretrained=finetuned_start(context.project, pool, settings.encoder)() if settings.start == FINETUNED else None,
    )
    if not world.is_first:
        return None
    inputs = {"pool": pool.hash, "pseudo": pseudo.artifact.hash}
    with context.project.draft("trajectory", settings=settings.made_with(), inputs=inputs, seed=seed) as draft:
        draft.device = device
        write_trajectory(draft, folder / "trajectory", result.history, features=folder / FEATURES)
        draft.facts["run"] = context.job.id
        if result.accuracy is not None:
            draft.facts["test_accuracy"] = {"value": result.accuracy.value, "n": result.accuracy.n}
    shutil.rmtree(folder, ignore_errors=True)  # what is worth keeping is in the artifact now
    return open_artifact(draft.folder)


def labeled_tests(tests: Pool, classes: Classes) -> tuple[np.ndarray, IntArray] | None:
    """Test images whose reference label is one of ``classes``, and those labels; None where there are none."""
    labels = reference_on(classes, tests)
    labeled = np.flatnonzero(labels >= 0)
    return (tests.take(labeled).images(), labels[labeled]) if len(labeled) else None
