"""A trained net's answers for images as they are, without augmentation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from semiprune_core import files
from semiprune_core.learning import device as devices
from semiprune_core.learning.distributed import World
from semiprune_core.learning.images import Images
from semiprune_core.learning.nets import Net
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import ClassProbs, FloatArray, IntArray

BATCH = 512
SETTLE_BATCH, SETTLE_IMAGES = 250, 2000
FEATURES_AT_ONCE = 16
"""Batches per process between two looks at the stop button while features are written."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """For n images: ``labels`` (n,), ``confidence`` (n,) the largest probability, ``margin`` (n,) how far it leads
    the second largest, and where asked for ``probs`` (n, C), ``features`` (n, D).
    """

    labels: IntArray
    confidence: FloatArray
    margin: FloatArray
    probs: FloatArray | None = None
    features: FloatArray | None = None


@torch.inference_mode()
def predict(
    net: Net,
    images: Images,
    idx: IntArray | None = None,
    *,
    precision: str = "fp32",
    world: World | None = None,
    keep_probs: bool = False,
    features_out: np.ndarray | None = None,
    probs_out: ClassProbs | None = None,
) -> Predictions:
    """Predictions for the images at ``idx`` (all by default), in that order, complete on every process.

    ``features_out`` (n, D) is filled with the penultimate layer; it may be memory-mapped. ``probs_out`` is filled with
    what is kept of the probabilities.
    """
    world = world or World()
    idx = np.arange(len(images)) if idx is None else np.asarray(idx)
    n = len(idx)
    labels, confidence, margin = np.empty(n, np.int64), np.empty(n, np.float32), np.empty(n, np.float32)
    probs = np.empty((n, net.head.out_features), np.float32) if keep_probs else None
    world.share_buffers(net)
    was_training = net.training
    net.eval()
    block = BATCH * world.size
    for start in range(0, n, block):
        wanted = idx[start : start + block]
        padded = np.resize(wanted, -(-len(wanted) // world.size) * world.size)  # equal parts; surplus is cut off below
        with devices.autocast(precision, images.device):
            features = net.features(images.normalise(images.take(padded[world.part(len(padded))])))
            logits = net.classify(features)
        place = slice(start, start + len(wanted))
        answer = world.gather(logits.float().softmax(-1))[: len(wanted)]
        top, label = answer.max(dim=-1)
        two = answer.topk(2, dim=-1).values
        labels[place], confidence[place], margin[place] = _array(label), _array(top), _array(two[:, 0] - two[:, 1])
        if probs is not None:
            probs[place] = _array(answer)
        if probs_out is not None:
            probs_out.put(place, _array(answer))
        if features_out is not None:
            features_out[place] = _array(world.gather(features.float())[: len(wanted)])
    net.train(was_training)
    return Predictions(labels, confidence, margin, probs, features_out)


def write_features(
    path: Path, net: Net, images: Images, *, precision: str, progress: Progress, world: World | None = None
) -> None:
    """Write the penultimate layer of all images, (N, D) float16, to the ``.npy`` file ``path``; it appears whole.

    All processes compute, the first one writes, and no more than a few batches are in memory. Raises
    :class:`Stopped` where ``progress`` asks for it; what was written until then is gone.
    """
    world = world or World()
    if not world.is_first:
        for _ in _feature_blocks(net, images, precision, progress, world):
            pass
        return
    shape = (len(images), net.n_features)
    with files.open_atomic(path) as file:
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.float16)), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for block in _feature_blocks(net, images, precision, progress, world):
            file.write(block.tobytes())


def _feature_blocks(net: Net, images: Images, precision: str, progress: Progress, world: World) -> Iterator[np.ndarray]:
    """(b, D) float16 block after block, the same ones on every process."""
    n, step = len(images), BATCH * world.size * FEATURES_AT_ONCE
    for start in range(0, n, step):
        if world.first_says(progress.should_stop(), images.device):
            raise Stopped("Stopped while features were being written.")
        idx = np.arange(start, min(start + step, n))
        block = np.empty((len(idx), net.n_features), np.float16)
        predict(net, images, idx, precision=precision, world=world, features_out=block)
        yield block


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.cpu().numpy()


@torch.no_grad()
def settle_norms(net: Net, images: Images, idx: IntArray, *, precision: str = "fp32") -> None:
    """Set the running statistics of all normalisation layers to those of the images at ``idx``, as they are.

    Averaged weights have no statistics of their own, and those of the net in training come from augmented views and
    its last few batches; with these, accuracy swings by points from step to step.
    """
    norms = [module for module in net.modules() if isinstance(module, _BatchNorm)]
    momenta = [module.momentum for module in norms]
    for module in norms:
        module.reset_running_stats()
        module.momentum = None  # a plain mean over the batches
    was_training = net.training
    net.train()
    for block in np.array_split(idx, max(1, len(idx) // SETTLE_BATCH)):
        with devices.autocast(precision, images.device):
            net.features(images.normalise(images.take(block)))
    net.train(was_training)
    for module, momentum in zip(norms, momenta):
        module.momentum = momentum
