"""Before a run: how long it will take and how much memory and disk, from a few real steps on the real device.

The job kind ``preflight`` takes the steps in a process of its own; everything else here loads no torch. A trial is kept
as long as nothing changes that a step's cost depends on, so that other settings are estimated at once.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

from semiprune_core import files
from semiprune_core.errors import InvalidDataError
from semiprune_core.jobs import DONE, FAILED, JOB_KINDS, Job, JobContext, list_jobs, submit
from semiprune_core.learning import machine
from semiprune_core.learning.settings import SSLSettings
from semiprune_core.project.workspace import Project
from semiprune_core.training.data import TrainingData, check_pool, labels_on_pool
from semiprune_core.training.job import pinned_labels
from semiprune_core.training.settings import TRIAL, TrainSettings
from semiprune_core.training.snapshots import keep_snapshot

KIND = TRIAL
KEPT = 4
"""Trials kept per project."""
TIMED_STEPS = 3
CHECKED_IMAGES = 256
REFERENCE_IMAGES = 2000  # as many are compared after every epoch, at most
COSTLY = (
    "net",
    "batch_size",
    "unlabeled_ratio",
    "algorithm",
    "precision",
    "n_ops",
    "cutout",
    "distribution_alignment",
)
"""The settings that a step's cost depends on."""


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
    rounds = n_rounds(settings)
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


def trial_key(settings: TrainSettings, device: str, pool_hash: str, n_classes: int) -> str:
    """One name for all runs whose steps cost the same."""
    values = settings.training.to_json()
    costly = {name: values[name] for name in COSTLY if name in values}
    return files.sha256_json({**costly, "device": device, "pool": pool_hash, "classes": n_classes})


def find_trial(project: Project, key: str) -> Job | None:
    """The newest trial under this key, in whatever state."""
    return next((job for job in list_jobs(project, KIND) if job.pins.get("trial") == key), None)


def trial_of(job: Job) -> Trial | None:
    """What a trial found; None as long as it has not ended well."""
    if job.status().state != DONE:
        return None
    return Trial(**(job.result() or {}))


def start_trial(
    project: Project, settings: TrainSettings, data: TrainingData, *, device: str = "auto", immediate: bool = False
) -> Job:
    """Ask for a trial, or find the one that was asked for; others that still wait or run are given up."""
    if data.problem:
        raise InvalidDataError(data.problem, code="LABELS")
    pool = project.pool()
    place = machine.devices_for(device)
    key = trial_key(settings, place, pool.hash, len(data.per_class))
    trial = find_trial(project, key)
    if trial is not None and (trial.status().state == DONE or not trial.status().is_over):
        return trial
    _clear_away(project)
    keep_snapshot(project, data.snapshot)
    pins = {"trial": key, "pool": pool.hash, "labels": data.snapshot.hash}
    return submit(project, KIND, settings.to_json(), title="Pre-flight", device=place, pins=pins, immediate=immediate)


def _clear_away(project: Project) -> None:
    """Stop trials that nobody waits for any more, and delete old ones."""
    for number, job in enumerate(list_jobs(project, KIND)):
        if not job.status().is_over:
            job.stop()
        elif number >= KEPT - 1 or job.status().state == FAILED:
            job.delete()


@JOB_KINDS.register("preflight", title="Pre-flight")
def run(context: JobContext) -> dict[str, Any]:
    """Train for a few steps as the run would."""
    settings = TrainSettings.from_json(context.settings)
    pool = context.project.pool()
    check_pool(pool, context.pins["pool"])
    snapshot = pinned_labels(context)
    labels = labels_on_pool(snapshot, pool)

    import torch

    from semiprune_core.learning import device as devices
    from semiprune_core.learning.estimate import estimate_ssl
    from semiprune_core.learning.images import Images
    from semiprune_core.learning.nets import build_net
    from semiprune_core.learning.predict import predict

    wanted = settings.training
    n_classes = len(snapshot.class_names)
    device = devices.choose_device(context.device)
    steps = estimate_ssl(
        pool.images(),
        labels.learned,
        n_classes=n_classes,
        settings=wanted,
        device=device,
        timed_steps=TIMED_STEPS,
        progress=context,
    )
    images = Images(pool.images()[:CHECKED_IMAGES], device)
    net = build_net(wanted.net, image_size=images.size, channels=images.channels, n_classes=n_classes)
    net = devices.channels_last(net, device).eval()
    precision = devices.choose_precision(wanted.precision, device)
    predict(net, images, precision=precision)
    begun = time.perf_counter()
    predict(net, images, precision=precision)
    n_weights = sum(weight.numel() for weight in net.parameters())
    state_bytes = sum(tensor.numel() * tensor.element_size() for tensor in net.state_dict().values())
    return asdict(
        Trial(
            seconds_per_step=steps.step_seconds,
            seconds_per_image=(time.perf_counter() - begun) / len(images),
            images_per_step=round(steps.images_per_s * steps.step_seconds),
            ram_bytes=_peak_ram(),
            vram_bytes=int(torch.cuda.max_memory_allocated(device)) if device.type == "cuda" else 0,
            checkpoint_bytes=2 * state_bytes + 4 * n_weights,  # net, its average, and the momentum
            n_features=net.n_features,
            n_weights=n_weights,
            precision=precision,
            n_steps=TIMED_STEPS,
        )
    )


def _peak_ram() -> int:
    """The most memory this process has held; ru_maxrss counts kilobytes, on a Mac bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
