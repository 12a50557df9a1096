"""One net in training: the part that the semi-supervised and the supervised loop share."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from semiprune_core import files, streams
from semiprune_core.errors import OutOfMemoryError
from semiprune_core.learning import device as devices
from semiprune_core.learning.checkpoints import Checkpoint, with_prefix, without_prefix
from semiprune_core.learning.distributed import World
from semiprune_core.learning.images import Images
from semiprune_core.learning.nets import build_net
from semiprune_core.learning.optim import make_optimizer, momentum_tensors, restore_momentum, set_lr
from semiprune_core.learning.pretrained import Pretrained, begin_head, finetuned_net, step_scales
from semiprune_core.learning.settings import TrainingSettings
from semiprune_core.records import FloatArray, IntArray
from semiprune_core.settings import Settings

T = TypeVar("T")


class Trainer:
    """Net, optimizer, precision and micro-batches. ``net`` is the plain net, ``shared`` the one that DDP wraps."""

    def __init__(
        self,
        settings: TrainingSettings,
        images: Images,
        *,
        n_classes: int,
        seed: int,
        world: World,
        pretrained: Pretrained | None = None,
    ) -> None:
        self.settings, self.world, self.device = settings, world, images.device
        self.precision = devices.choose_precision(settings.precision, self.device)
        if pretrained is None:
            net = build_net(
                settings.net, image_size=images.size, channels=images.channels, n_classes=n_classes, seed=seed
            )
        else:
            net = finetuned_net(pretrained, images, n_classes)
        scales = None if pretrained is None else step_scales(net)
        net = devices.channels_last(net, self.device)
        self.net = world.sync_norms(net, self.device).train()
        self.shared = world.wrap(self.net, self.device)
        self.optimizer = make_optimizer(self.net, settings, self.device, scales)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision == "fp16")
        self.micro_batches = 1

    def begin_head(
        self, images: Images, idx: IntArray, labels: np.ndarray, image_weights: FloatArray | None = None
    ) -> None:
        """Fit the head of a pretrained net on the images at ``idx`` (n,) with their ``labels`` (n,)."""
        begin_head(self.net, images, idx, labels, image_weights, precision=self.precision)
        self.world.share(self.net.head.parameters())

    def autocast(self) -> contextlib.AbstractContextManager[object]:
        return devices.autocast(self.precision, self.device)

    def parts(self, n: int) -> list[slice]:
        """This process's share of a global batch of ``n``, cut into micro-batches of nearly equal length."""
        return cut(self.world.part(n), self.micro_batches)

    @contextlib.contextmanager
    def part_of_step(self, *, last: bool) -> Iterator[None]:
        """Autocast; and gradients are exchanged between processes only in the last micro-batch."""
        quiet = self.world.size > 1 and not last
        alone = self.shared.no_sync() if quiet and isinstance(self.shared, DistributedDataParallel) else None
        with alone or contextlib.nullcontext(), self.autocast():
            yield

    def backward(self, loss: Tensor, weight: float) -> None:
        self.scaler.scale(loss * weight).backward()

    def update(self, lr: float) -> None:
        """Move the weights along the collected gradients."""
        set_lr(self.optimizer, lr)
        if self.settings.clip_norm:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.settings.clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)

    def with_enough_memory(self, attempt: Callable[[], T], *, n_images: int, most_parts: int) -> T:
        """Run ``attempt``; when memory runs out, run it again in twice as many micro-batches.

        A step of ``n_images`` can be cut into ``most_parts``. Its gradient stays that of the whole batch, but for terms
        that are not means over images (FreeMatch's fairness). Normalisation sees the smaller parts, and its running
        statistics keep what the failed attempt added to them.
        """
        while True:
            try:
                return attempt()
            except (RuntimeError, MemoryError) as error:
                if not devices.is_out_of_memory(error):
                    raise
                self.optimizer.zero_grad(set_to_none=True)
                if self.device.type == "cuda":
                    torch.cuda.empty_cache()
                if self.world.size > 1 or 2 * self.micro_batches > most_parts:
                    raise OutOfMemoryError(
                        f"The {self.device.type.upper()} has too little memory for a batch of {n_images} images with "
                        f"{self.settings.net}. Set batch_size to {max(2, self.settings.batch_size // 2)}, or choose a "
                        "smaller network."
                    ) from error
                self.micro_batches *= 2

    def tensors(self) -> dict[str, Tensor]:
        """Everything that a checkpoint must hold of this trainer, besides :meth:`facts`."""
        return {
            **with_prefix("net", self.net.state_dict()),
            **with_prefix("momentum", momentum_tensors(self.net, self.optimizer)),
        }

    def facts(self) -> dict[str, Any]:
        return {"scaler": self.scaler.state_dict(), "micro_batches": self.micro_batches, "precision": self.precision}

    def restore(self, saved: Checkpoint) -> None:
        self.net.load_state_dict(without_prefix("net", saved.tensors))
        restore_momentum(self.net, self.optimizer, without_prefix("momentum", saved.tensors))
        if saved.facts["scaler"]:
            self.scaler.load_state_dict(saved.facts["scaler"])
        self.micro_batches = saved.facts["micro_batches"]


def cut(whole: slice, n_parts: int) -> list[slice]:
    """``whole`` in ``n_parts`` pieces of nearly equal length, empty ones left out."""
    edges = np.linspace(whole.start, whole.stop, n_parts + 1).round().astype(int)
    return [slice(int(a), int(b)) for a, b in zip(edges, edges[1:]) if b > a]


def fingerprint(settings: Settings, images: Images, labels: np.ndarray, **more: Any) -> str:
    """Which run this is: settings, seed, how it draws, labels and the images (their shape and a few of them)."""
    rows = np.unique(np.linspace(0, len(images) - 1, 16).astype(int))
    return files.sha256_json(
        {
            "settings": settings.to_json(),
            "streams": streams.RULE,
            "labels": digest(labels.astype(np.int64)),
            "shape": list(images.pixels.shape),
            "sample": digest(images.pixels[rows]),
            **more,
        }
    )


def digest(array: np.ndarray) -> str:
    """SHA-256 of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
