"""How long a run will take and how much memory it needs, from a few real batches on this machine."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from semiprune_core.learning import ssl_run, supervised_run
from semiprune_core.learning.distributed import World
from semiprune_core.learning.images import Images
from semiprune_core.learning.pretrained import Pretrained
from semiprune_core.learning.settings import SSLSettings, SupervisedSettings
from semiprune_core.progress import Collected, Progress, Stopped
from semiprune_core.records import IntArray

WARM_UP = 2


@dataclass(frozen=True)
class Estimate:
    """``seconds`` for the whole run, from ``step_seconds`` (median of the timed steps) times ``n_steps``.

    ``memory_mb`` is the device's peak on CUDA, else the peak of this process so far.
    """

    seconds: float
    step_seconds: float
    n_steps: int
    images_per_s: float
    memory_mb: float


def estimate_ssl(
    images: np.ndarray,
    labels: IntArray,
    *,
    n_classes: int,
    settings: SSLSettings,
    device: torch.device | str = "cpu",
    timed_steps: int = 5,
    progress: Progress | None = None,
    pretrained: Pretrained | None = None,
) -> Estimate:
    """Time steps of a semi-supervised run (past its warm-up, where steps are dearest). Nothing is written.

    A ``progress`` is told of every step and may ask for a stop, which raises :class:`Stopped`.
    """
    settings = settings.on_pool(len(images))
    n_rounds = settings.cross_fit if settings.cross_fit > 1 else 2 if settings.refit else 1
    human = np.flatnonzero(np.asarray(labels) >= 0)
    run = ssl_run.SSLRun(
        Images(images, torch.device(device)),
        np.asarray(labels),
        human,
        human[:0],
        n_classes=n_classes,
        settings=settings.replace(warm_up=0.0),
        seed=0,
        progress=Collected(),
        folder=None,
        reference=None,
        world=World(),
        pretrained=pretrained,
    )
    n_steps = n_rounds * settings.n_steps
    return _estimate(run.one_step, run.images_in(0), n_steps, run.images.device, timed_steps, progress or Collected())


def estimate_supervised(
    images: np.ndarray,
    labels: IntArray,
    *,
    n_classes: int,
    settings: SupervisedSettings,
    device: torch.device | str = "cpu",
    timed_steps: int = 5,
) -> Estimate:
    """Time steps of a supervised run. Nothing is written."""
    run = supervised_run.SupervisedRun(
        Images(images, torch.device(device)),
        np.asarray(labels).astype(np.int64),
        n_classes=n_classes,
        settings=settings,
        seed=0,
        progress=Collected(),
        folder=None,
        record=None,
        world=World(),
    )
    per_step = -(-len(images) // run.steps_per_epoch)
    return _estimate(run.one_step, per_step, run.n_steps, run.images.device, timed_steps, Collected())


def _estimate(
    step: Callable[[], object],
    per_step: int,
    n_steps: int,
    device: torch.device,
    timed_steps: int,
    progress: Progress,
) -> Estimate:
    taken: list[float] = []
    for number in range(WARM_UP + timed_steps):
        progress.report(number, WARM_UP + timed_steps)
        if progress.should_stop():
            raise Stopped
        started = time.perf_counter()
        step()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        taken.append(time.perf_counter() - started)
    seconds = statistics.median(taken[WARM_UP:])
    return Estimate(seconds * n_steps, seconds, n_steps, per_step / seconds, _peak_mb(device))


def _peak_mb(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    try:
        import resource
    except ImportError:  # not on Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3
