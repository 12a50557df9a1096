"""A net that learns from the labels and the unlabeled rest: from scratch, or from an encoder's weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from semiprune_core.embeddings.start import open_pretrained
from semiprune_core.learning.device import choose_device
from semiprune_core.learning.distributed import World, joined_world
from semiprune_core.learning.pretrained import Pretrained
from semiprune_core.learning.settings import SSLSettings
from semiprune_core.learning.ssl_run import train_ssl
from semiprune_core.progress import Progress
from semiprune_core.records import UNLABELED, IntArray
from semiprune_core.training.answers import Answers
from semiprune_core.training.data import PoolLabels
from semiprune_core.training.task import Task


def learn_net(task: Task, progress: Progress | None = None, *, folder: Path | None = None) -> Answers | None:
    """Answers that speak of all classes, by a net of those that have a label; None on every process but the first.

    Its checkpoints lie in ``folder``, the task's own where none is given.
    """
    with joined_world(choose_device(task.context.device.split(",")[0])) as (world, device):
        return answers_of_net(
            task.pool.images(),
            task.labels,
            class_names=task.class_names,
            settings=task.settings.training,
            seed=task.settings.seed,
            progress=progress or task.context,
            device=device,
            folder=folder or task.folder,
            reference=task.reference,
            world=world,
            pretrained=pretrained_start(task),
        )


def answers_of_net(
    images: np.ndarray,
    labels: PoolLabels,
    *,
    class_names: tuple[str, ...],
    settings: SSLSettings,
    seed: int,
    progress: Progress,
    device: torch.device | str,
    folder: Path | None = None,
    reference: IntArray | None = None,
    world: World | None = None,
    pretrained: Callable[[], Pretrained] | None = None,
) -> Answers | None:
    """:func:`train_ssl` on ``images`` (N, H, W, C) uint8 with the classes that have a label; the answers name all."""
    labeled = np.unique(labels.learned[labels.learned != UNLABELED])  # (K,) the classes of the net
    number = np.full(len(class_names) + 1, UNLABELED)  # the last one is for images without a label
    number[labeled] = np.arange(len(labeled))
    known = None if reference is None else number[reference]
    world = world or World()
    result = train_ssl(
        images,
        number[labels.learned],
        class_names=tuple(class_names[label] for label in labeled),
        settings=settings,
        seed=seed,
        progress=progress,
        device=device,
        folder=folder,
        reference=known if known is not None and (known >= 0).any() else None,
        measurable_mask=labels.measurable_mask,
        world=world,
        pretrained=pretrained,
    )
    return Answers.of_net(result, labeled, len(class_names)) if world.is_first else None


def pretrained_start(task: Task) -> Callable[[], Pretrained] | None:
    """Opens the encoder with whose weights the task's nets begin; None from scratch."""
    settings, project = task.settings, task.context.project
    if not settings.is_finetuned:
        return None
    size = int(task.pool.images().shape[1])
    return lambda: open_pretrained(settings.encoder, size, guard=project.workspace.guard)
