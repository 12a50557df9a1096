"""A net that learns from the labels and the unlabeled rest: the classes that have a label, in one or more processes."""

from __future__ import annotations

import numpy as np

from semiprune_core.learning.device import choose_device
from semiprune_core.learning.distributed import joined_world
from semiprune_core.learning.ssl_run import train_ssl
from semiprune_core.progress import Progress
from semiprune_core.records import UNLABELED
from semiprune_core.training.answers import Answers
from semiprune_core.training.task import Task


def learn_from_scratch(task: Task, progress: Progress | None = None) -> Answers | None:
    """Answers that speak of all classes; None on every process but the first."""
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
        )
        if not world.is_first:
            return None
    return Answers.of_net(result, labeled, len(class_names))
