"""A net that learns from the labels and the unlabeled rest: from scratch, or from an encoder's weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from semiprune_core.embeddings.start import open_pretrained
from semiprune_core.learning.device import choose_device
from semiprune_core.learning.distributed import joined_world
from semiprune_core.learning.pretrained import Pretrained
from semiprune_core.learning.ssl_run import train_ssl
from semiprune_core.progress import Progress
from semiprune_core.records import UNLABELED
from semiprune_core.training.answers import Answers
from semiprune_core.training.task import Task


def learn_net(task: Task, progress: Progress | None = None) -> Answers | None:
    """Answers that speak of all classes, by a net of those that have a label; None on every process but the first."""
    labels, class_names = task.labels, task.class_names
    labeled = np.unique(labels.learned[labels.learned != UNLABELED])  # (K,) the classes of the net
    number = np.full(len(class_names) + 1, UNLABELED)  # the last one is for images without a label
    number[labeled] = np.arange(len(labeled))
    known = number[task.reference]
    with joined_world(choose_device(task.context.device.split(",")[0])) as (world, device):
        result = train_ssl(
            task.pool.images(),
            number[labels.learned],
            class_names=tuple(class_names[label] for label in labeled),
            settings=task.settings.training,
            seed=task.settings.seed,
            progress=progress or task.context,
            device=device,
            folder=task.folder,
            reference=known if (known >= 0).any() else None,
            measurable_mask=labels.measurable_mask,
            world=world,
            pretrained=pretrained_start(task),
        )
        if not world.is_first:
            return None
    return Answers.of_net(result, labeled, len(class_names))


def pretrained_start(task: Task) -> Callable[[], Pretrained] | None:
    """Opens the encoder with whose weights the task's nets begin; None from scratch."""
    settings, project = task.settings, task.context.project
    if not settings.is_finetuned:
        return None
    size = int(task.pool.images().shape[1])
    return lambda: open_pretrained(settings.encoder, size, guard=project.workspace.guard)
