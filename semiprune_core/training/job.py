"""The job kind ``ssl``: from a pool and the labels it was started on to the artifact ``pseudo``."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from semiprune_core import files
from semiprune_core.jobs import JOB_KINDS, JobContext
from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.learning.quality import wilson
from semiprune_core.project.artifacts import Artifact, open_artifact
from semiprune_core.project.pool import Pool
from semiprune_core.records import UNLABELED, IntArray
from semiprune_core.results import write_pseudo
from semiprune_core.training.answers import Answers
from semiprune_core.training.data import PoolLabels, check_pool, labels_on_pool, reference_on
from semiprune_core.training.runs import trained_seconds
from semiprune_core.training.settings import ARTIFACT, TrainSettings, title_of
from semiprune_core.training.snapshots import read_snapshot, snapshot_bytes, snapshot_path

LABELS = "labels.npz"


@JOB_KINDS.register("ssl", title="Train")
def run(context: JobContext) -> dict[str, Any] | None:
    finished = context.finished(ARTIFACT)
    if finished is not None:  # ended between its artifact and its last status
        return _outcome(finished)
    settings = TrainSettings.from_json(context.settings)
    pool = context.project.pool()
    check_pool(pool, context.pins["pool"])
    snapshot = pinned_labels(context)
    labels = labels_on_pool(snapshot, pool)
    reference = np.where(labels.human < 0, reference_on(snapshot.class_names, pool), UNLABELED)
    context.log.info("%d labels (%s), %d images, %s", len(snapshot), snapshot.hash[:12], len(pool), title_of(settings))
    learn = _on_features if settings.is_frozen else _from_scratch
    answers = learn(context, settings, pool, snapshot.class_names, labels, reference)
    if answers is None:  # another process of the same run writes it down
        return None
    for note in answers.notes:
        context.log.info(note)
    artifact = _write(context, settings, pool, snapshot, labels, reference, answers)
    _tidy(context)
    return _outcome(artifact)


def _on_features(
    context: JobContext,
    settings: TrainSettings,
    pool: Pool,
    class_names: tuple[str, ...],
    labels: PoolLabels,
    reference: IntArray,
) -> Answers:
    from semiprune_core.training.frozen import learn_on_features

    return learn_on_features(context, settings, len(class_names), labels)


def _from_scratch(
    context: JobContext,
    settings: TrainSettings,
    pool: Pool,
    class_names: tuple[str, ...],
    labels: PoolLabels,
    reference: IntArray,
) -> Answers | None:
    """A net trained on the classes that have a label; its answers speak of all classes again."""
    from semiprune_core.learning.device import choose_device
    from semiprune_core.learning.distributed import joined_world
    from semiprune_core.learning.ssl_run import train_ssl

    labeled = np.unique(labels.learned[labels.learned != UNLABELED])  # (K,) the classes of the net
    number = np.full(len(class_names) + 1, UNLABELED)  # the last one is for images without a label
    number[labeled] = np.arange(len(labeled))
    known = number[reference]
    with joined_world(choose_device(context.device.split(",")[0])) as (world, device):
        result = train_ssl(
            pool.images(),
            number[labels.learned],
            class_names=tuple(class_names[label] for label in labeled),
            settings=settings.training,
            seed=settings.seed,
            progress=context,
            device=device,
            folder=context.folder,
            reference=known if (known >= 0).any() else None,
            measurable_mask=labels.measurable_mask,
            world=world,
        )
        if not world.is_first:
            return None
    return Answers.of_net(result, labeled, len(class_names))


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


def _write(
    context: JobContext,
    settings: TrainSettings,
    pool: Pool,
    snapshot: LabelsSnapshot,
    labels: PoolLabels,
    reference: np.ndarray,
    answers: Answers,
) -> Artifact:
    human_mask = labels.human >= 0
    with context.project.draft(
        ARTIFACT,
        settings=settings.flat(),
        inputs={"pool": pool.hash, "labels": snapshot.hash},
        seed=settings.seed,
    ) as draft:
        write_pseudo(
            draft,
            labels=np.where(human_mask, labels.human, answers.predicted),
            predicted=answers.predicted,
            confidence=answers.confidence,
            margin=answers.margin,
            human_mask=human_mask,
            held_out_mask=answers.held_out_mask,
            features=answers.features,
            class_names=snapshot.class_names,
            quality=answers.quality.to_json() if answers.quality else None,
            history=list(answers.history),
        )
        if answers.weights:
            save_file(dict(answers.weights), draft.path("model.safetensors"))
        for name, array in answers.arrays.items():
            np.save(draft.path(f"{name}.npy"), array, allow_pickle=False)
        known = reference >= 0
        right = int((answers.predicted[known] == reference[known]).sum())
        draft.device = context.device
        draft.facts.update(
            job=context.job.id,
            n_labels=int((labels.learned >= 0).sum()),
            n_held_out=int(answers.held_out_mask.sum()),
            reference=asdict(wilson(right, int(known.sum()))) if known.any() else None,
            seconds=round(trained_seconds(context.job), 1),
            notes=list(answers.notes),
            **answers.facts,
        )
    return open_artifact(draft.folder)


def _outcome(artifact: Artifact) -> dict[str, Any]:
    """What the job returns: the artifact and its numbers."""
    facts = artifact.facts
    return {
        "artifact": artifact.id,
        "accuracy": facts["quality"] and facts["quality"]["accuracy"],
        "measured_on": facts["quality"] and facts["quality"]["measured_on"],
        "reference": facts["reference"],
        "class_counts": dict(zip(facts["class_names"], facts["class_counts"])),
        "n_labels": facts["n_labels"],
        "n_images": facts["n_images"],
        "seconds": facts["seconds"],
    }


def _tidy(context: JobContext) -> None:
    """A finished run needs neither its checkpoints nor its copy of the features."""
    for path in context.folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LABELS:
            path.unlink()
