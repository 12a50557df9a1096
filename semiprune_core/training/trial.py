"""A few real steps of a run, timed, and what a whole one would take by them. Only the timing itself loads torch."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass

from semiprune_core.learning.settings import SSLSettings
from semiprune_core.progress import Progress
from semiprune_core.training.data import TrainingData
from semiprune_core.training.task import Task

TIMED_STEPS = 3
CHECKED_IMAGES = 256
REFERENCE_IMAGES = 2000  # as many are compared after every epoch, at most


@dataclass(frozen=True)
class Trial:
    """What a few steps took. Bytes of memory are the peak of the whole process."""

    seconds_per_step: float
    seconds_per_image: float
    images_per_step: int
    ram_bytes: int
    vram_bytes: int
    checkpoint_bytes: int
    n_features: int
    n_weights: int
    precision: str
    n_steps: int


@dataclass(frozen=True)
class Estimate:
    """What a run would take."""

    seconds: float
    images_per_s: float
    ram_bytes: int
    vram_bytes: int
    disk_bytes: int
    n_rounds: int
    n_steps: int


def n_rounds(settings: SSLSettings) -> int:
    """How many nets a run trains."""
    if settings.cross_fit > 1:
        return settings.cross_fit
    return 2 if settings.refit and settings.held_out else 1


def estimate(trial: Trial, settings: SSLSettings, data: TrainingData, *, nproc: int = 1) -> Estimate:
    """From a trial to a whole run; several processes are taken to share a step evenly."""
    rounds, settings = n_rounds(settings), settings.on_pool(data.n_images)
    per_step = trial.seconds_per_step / nproc
    looked_at = data.n_held_out(settings) + min(REFERENCE_IMAGES, data.n_reference)
    checks = rounds * settings.epochs * looked_at * trial.seconds_per_image
    final = data.n_images * trial.seconds_per_image * (rounds if settings.cross_fit > 1 else 1)
    return Estimate(
        seconds=rounds * settings.n_steps * per_step + (checks + final) / nproc,
        images_per_s=trial.images_per_step / per_step,
        ram_bytes=trial.ram_bytes * nproc,
        vram_bytes=trial.vram_bytes,
        disk_bytes=2 * rounds * trial.checkpoint_bytes + 4 * data.n_images * trial.n_features,
        n_rounds=rounds,
        n_steps=rounds * settings.n_steps,
    )


def time_steps(task: Task, *, device: str, progress: Progress) -> Trial:
    """Train for a few steps as the run of this task would."""
    import torch

    from semiprune_core.learning import device as devices
    from semiprune_core.learning.estimate import estimate_ssl
    from semiprune_core.learning.images import Images
    from semiprune_core.learning.nets import build_net
    from semiprune_core.learning.predict import predict
    from semiprune_core.learning.pretrained import finetuned_net
    from semiprune_core.training.net import pretrained_start

    pool, settings, n_classes = task.pool, task.settings.training, len(task.class_names)
    start = pretrained_start(task)
    place = devices.choose_device(device)
    steps = estimate_ssl(
        pool.images(),
        task.labels.learned,
        n_classes=n_classes,
        settings=settings,
        device=place,
        timed_steps=TIMED_STEPS,
        progress=progress,
        pretrained=start() if start is not None else None,
    )
    images = Images(pool.images()[:CHECKED_IMAGES], place)
    net = (
        build_net(settings.net, image_size=images.size, channels=images.channels, n_classes=n_classes)
        if start is None
        else finetuned_net(start(), images, n_classes)
    )
    net = devices.channels_last(net, place).eval()
    precision = devices.choose_precision(settings.precision, place)
    predict(net, images, precision=precision)
    begun = time.perf_counter()
    predict(net, images, precision=precision)
    n_weights = sum(weight.numel() for weight in net.parameters())
    state_bytes = sum(tensor.numel() * tensor.element_size() for tensor in net.state_dict().values())
    return Trial(
        seconds_per_step=steps.step_seconds,
        seconds_per_image=(time.perf_counter() - begun) / len(images),
        images_per_step=round(steps.images_per_s * steps.step_seconds),
        ram_bytes=_peak_ram(),
        vram_bytes=int(torch.cuda.max_memory_allocated(place)) if place.type == "cuda" else 0,
        checkpoint_bytes=2 * state_bytes + 4 * n_weights,  # net, its average, and the momentum
        n_features=net.n_features,
        n_weights=n_weights,
        precision=precision,
        n_steps=TIMED_STEPS,
    )


def _peak_ram() -> int:
    """The most memory this process has held; ru_maxrss counts kilobytes, on a Mac bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
