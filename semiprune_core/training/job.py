"""The job kind ``ssl``: from a pool and the labels it was started on to the artifact ``pseudo``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from semiprune_core.jobs import JOB_KINDS, JobContext, job_behind, list_jobs
from semiprune_core.learning.quality import wilson
from semiprune_core.project.artifacts import Artifact, note_facts, open_artifact
from semiprune_core.results import write_pseudo
from semiprune_core.training import auto
from semiprune_core.training.answers import Answers
from semiprune_core.training.runs import trained_seconds
from semiprune_core.training.settings import ARTIFACT, title_of
from semiprune_core.training.task import LABELS, Task


@JOB_KINDS.register("ssl", title="Train", tracked=True)
def run(context: JobContext) -> dict[str, Any] | None:
    finished = context.finished(ARTIFACT)
    if finished is not None:  # ended between its artifact and its last status
        return _outcome(finished)
    _begin_anew_on_other_streams(context)
    task = Task.of(context)
    context.log.info(
        "%d labels (%s), %d images, %s",
        len(task.snapshot),
        task.snapshot.hash[:12],
        len(task.pool),
        title_of(task.settings),
    )
    answers = _learn(task)
    if answers is None:  # another process of the same run writes it down
        return None
    for note in answers.notes:
        context.log.info(note)
    artifact = _keep(task, answers)
    _tidy(context)
    return _outcome(artifact)


def _begin_anew_on_other_streams(context: JobContext) -> None:
    """Leave nothing of an attempt by a version that drew otherwise, its first candidate included."""
    if context.drop_older_streams(keep=(LABELS,)) and (first := _provisional(context)) is not None:
        _retire(context, first)


def _learn(task: Task) -> Answers | None:
    if task.settings.is_auto:
        return auto.learn(task, lambda answers: _publish(task, answers))
    if task.settings.is_frozen:
        from semiprune_core.training.frozen import learn_on_features

        return learn_on_features(task.context, task.settings, len(task.class_names), task.labels)
    from semiprune_core.training.net import learn_net

    return learn_net(task)


def _publish(task: Task, answers: Answers) -> None:
    """Write the first candidate down while the run goes on: pages show it, and a stop does not lose it."""
    if _provisional(task.context) is None:
        _write(task, answers, {"provisional": True})


def _provisional(context: JobContext) -> Artifact | None:
    """The artifact of this job's first candidate, where it is there."""
    return next((past for past in context.project.artifacts(ARTIFACT) if job_behind(past) == context.job.id), None)


def _keep(task: Task, answers: Answers) -> Artifact:
    """Write the run's answers down, or say of the first candidate that it was taken."""
    first = _provisional(task.context)
    if first is not None and first.facts["start"] == answers.facts["start"]:
        return note_facts(first, {**answers.facts, "seconds": _seconds(task), "provisional": False})
    artifact = _write(task, answers)
    if first is not None:
        _retire(task.context, first)
    return artifact


def _retire(context: JobContext, first: Artifact) -> None:
    """Remove the candidate that was not taken, unless something was or is being made from it."""
    users = [other for other in context.project.artifacts() if first.hash in other.inputs.values()]
    waiting = [job for job in list_jobs(context.project) if first.hash in job.pins.values()]
    if users or any(not job.status().is_over for job in waiting):
        return
    aside = first.folder.with_name(f".{first.id}.deleted")
    os.replace(first.folder, aside)  # nobody sees half an artifact
    shutil.rmtree(aside)


def _seconds(task: Task) -> float:
    return round(trained_seconds(task.context.job), 1)


def _write(task: Task, answers: Answers, facts: Mapping[str, Any] | None = None) -> Artifact:
    settings, labels, reference = task.settings, task.labels, task.reference
    human_mask = labels.human >= 0
    with task.context.project.draft(
        ARTIFACT,
        settings=settings.flat(),
        inputs={"pool": task.pool.hash, "labels": task.snapshot.hash},
        seed=settings.seed,
    ) as draft:
        write_pseudo(
            draft,
            labels=np.where(human_mask, labels.human, answers.predicted),
            predicted=answers.predicted,
            confidence=answers.confidence,
            margin=answers.margin,
            probs=answers.probs,
            human_mask=human_mask,
            held_out_mask=answers.held_out_mask,
            features=answers.features,
            class_names=task.class_names,
            class_ids=task.snapshot.class_ids,
            quality=answers.quality.to_json() if answers.quality else None,
            history=list(answers.history),
        )
        if answers.weights:
            save_file(dict(answers.weights), draft.path("model.safetensors"))
        for name, array in answers.arrays.items():
            np.save(draft.path(f"{name}.npy"), array, allow_pickle=False)
        known = reference >= 0
        right = int((answers.predicted[known] == reference[known]).sum())
        draft.device = task.context.device
        draft.facts.update(
            job=task.context.job.id,
            n_labels=int((labels.learned >= 0).sum()),
            n_held_out=int(answers.held_out_mask.sum()),
            reference=asdict(wilson(right, int(known.sum()))) if known.any() else None,
            seconds=_seconds(task),
            notes=list(answers.notes),
            missing_classes=_missing_classes(task),
            **answers.facts,
            **(facts or {}),
        )
    return open_artifact(draft.folder)


def _missing_classes(task: Task) -> list[str]:
    """The names of classes without a label, which no image gets."""
    counts = np.bincount(task.labels.learned[task.labels.learned >= 0], minlength=len(task.class_names))
    return [name for name, count in zip(task.class_names, counts) if not count]


def _outcome(artifact: Artifact) -> dict[str, Any]:
    """What the job returns: the artifact and its numbers, and of Auto what it compared."""
    facts = artifact.facts
    compared = {name: facts[name] for name in ("start", "candidates", "comparison", "decision") if name in facts}
    return {
        "artifact": artifact.id,
        "accuracy": facts["quality"] and facts["quality"]["accuracy"],
        "measured_on": facts["quality"] and facts["quality"]["measured_on"],
        "reference": facts["reference"],
        "class_counts": dict(zip(facts["class_names"], facts["class_counts"])),
        "n_labels": facts["n_labels"],
        "missing_classes": facts.get("missing_classes", []),
        "n_images": facts["n_images"],
        "seconds": facts["seconds"],
        **compared,
    }


def _tidy(context: JobContext) -> None:
    """A finished run needs neither its checkpoints nor its copy of the features."""
    for path in context.folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LABELS:
            path.unlink()
