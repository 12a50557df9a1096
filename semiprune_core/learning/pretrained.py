"""An encoder's weights as the start of a net: what it sees, how its layers are trained, and the head it begins with.

Three rules, the same in every training:

- Steps grow with depth. The first layer moves ``EARLIEST`` times as far as the last one, those between them by even
  factors, and the head as far as the last layer: what early layers have learned holds for most pictures.
- Normalisation keeps the encoder's statistics; its scale and shift are trained. A batch mixes weak and strong views of
  a few images, whose own statistics would move the features away from those that the head was fitted on, and they would
  differ between one process and several.
- The head begins as a logistic regression fitted on the labels. A flat softmax would let no unlabeled image past a
  threshold of 0.95.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import log_softmax
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from semiprune_core.learning.frozen.logistic import Linear, fit_logistic
from semiprune_core.learning.images import Images
from semiprune_core.learning.nets import Net
from semiprune_core.learning.predict import predict
from semiprune_core.records import FloatArray, IntArray

EARLIEST = 0.1
STRIDE, LEAST_SIDE, ENLARGED = 32, 96, 2.5
PENALTIES = (3e-2, 1e-2, 3e-3, 1e-3)
"""Strengths of the regularisation of the first head, strongest first; held-out loss chooses."""
N_FOLDS = 4
MOST_LABELS = 2000
"""More are not needed for a head that is only a beginning."""
NEVER = -20.0
"""The bias of a class without a label."""


@dataclass(frozen=True, eq=False)
class Pretrained:
    """``backbone`` maps (n, 3, side, side), normalised by ``mean`` and ``std`` of values in 0..1, to (n, D) features.

    ``side`` is the size to which training images are enlarged. ``digest`` says which weights it holds.
    """

    backbone: nn.Module
    side: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    digest: str


def weights_of(pretrained: Pretrained | None) -> dict[str, str]:
    """What a checkpoint has to remember of the start: nothing from scratch."""
    return {} if pretrained is None else {"pretrained": pretrained.digest, "side": str(pretrained.side)}


def side_for(image_size: int, own: int) -> int:
    """The side in pixels at which a training image of ``image_size`` is shown to an encoder made for ``own``.

    A small copy is enlarged two and a half times and to 96 at least, in steps of 32, and never beyond ``own``: a
    pretrained net looks for details of several pixels and halves its picture five times.

    >>> [side_for(size, 224) for size in (28, 32, 64, 96, 224)]
    [96, 96, 160, 224, 224]
    """
    return min(own, max(LEAST_SIDE, STRIDE * math.ceil(ENLARGED * image_size / STRIDE)))


class FixedNorm(nn.Module):
    """A batch normalisation that keeps its statistics, in training too; scale and shift are learned."""

    def __init__(self, norm: _BatchNorm) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = norm.weight, norm.bias, norm.eps
        assert norm.running_mean is not None and norm.running_var is not None
        self.register_buffer("running_mean", norm.running_mean.clone())
        self.register_buffer("running_var", norm.running_var.clone())

    def forward(self, x: Tensor) -> Tensor:
        mean, var = self.get_buffer("running_mean"), self.get_buffer("running_var")
        return F.batch_norm(x, mean, var, self.weight, self.bias, False, 0.0, self.eps)


class Seeing(nn.Module):
    """The encoder behind the pool's own normalisation: images are enlarged and normalised as it was trained to see."""

    def __init__(self, pretrained: Pretrained, images: Images) -> None:
        super().__init__()
        self.net = fix_norms(pretrained.backbone)
        self.side = pretrained.side
        channels = (1, images.channels, 1, 1)
        std, mean = images.std.cpu() / 255, images.mean.cpu() / 255
        self.register_buffer("scale", std.expand(images.channels).reshape(channels).clone(), persistent=False)
        self.register_buffer("shift", mean.expand(images.channels).reshape(channels).clone(), persistent=False)
        for name, values in (("mean", pretrained.mean), ("std", pretrained.std)):
            self.register_buffer(name, torch.tensor(values).view(1, 3, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        pixels = x * self.get_buffer("scale") + self.get_buffer("shift")
        pixels = pixels.expand(-1, 3, -1, -1)
        if pixels.shape[-1] != self.side:
            pixels = F.interpolate(pixels, size=(self.side, self.side), mode="bilinear", antialias=True)
        seen = (pixels - self.get_buffer("mean")) / self.get_buffer("std")
        return self.net(seen.contiguous(memory_format=torch.channels_last)).flatten(1)


def fix_norms(net: nn.Module) -> nn.Module:
    """Replace every batch normalisation inside by one that keeps its statistics."""
    if isinstance(net, _BatchNorm):
        return FixedNorm(net)
    for name, child in net.named_children():
        setattr(net, name, fix_norms(child))
    return net


def finetuned_net(pretrained: Pretrained, images: Images, n_classes: int) -> Net:
    """The net that begins with the encoder's weights; its head is empty until :func:`begin_head`."""
    backbone = Seeing(pretrained, images).eval()
    with torch.inference_mode():
        n_features = backbone(torch.zeros(1, images.channels, images.size, images.size)).shape[1]
    net = Net(backbone, n_features, n_classes)
    nn.init.zeros_(net.head.weight)
    nn.init.zeros_(net.head.bias)
    return net


def step_scales(net: Net) -> dict[str, float]:
    """How far each parameter moves beside the head, by name; see the rules above."""
    layers = {name: _layer(name) for name, _ in net.backbone.named_parameters()}
    order = list(dict.fromkeys(layers.values()))
    last = max(len(order) - 1, 1)
    scale = {layer: EARLIEST ** (1 - place / last) for place, layer in enumerate(order)}
    return {f"backbone.{name}": scale[layer] for name, layer in layers.items()}


def _layer(name: str) -> str:
    """The layer of a parameter: its block where blocks are numbered, else its part of the net.

    >>> [_layer(name) for name in ("net.stem.0.weight", "net.blocks.3.expand.0.weight", "net.layer1.0.conv1.weight")]
    ['stem.0', 'blocks.3', 'layer1.0']
    """
    parts = name.removeprefix("net.").split(".")
    return ".".join(parts[:2]) if len(parts) > 2 and parts[1].isdigit() else parts[0]


def begin_head(
    net: Net,
    images: Images,
    idx: IntArray,
    labels: IntArray,
    image_weights: FloatArray | None = None,
    *,
    precision: str = "fp32",
) -> None:
    """Fit the head by logistic regression on the features of the images at ``idx`` (n,), whose ``labels`` are (n,)."""
    some = np.unique(np.linspace(0, len(idx) - 1, min(len(idx), MOST_LABELS)).astype(int))
    features = np.empty((len(some), net.n_features), np.float32)
    predict(net, images, np.asarray(idx)[some], precision=precision, features_out=features)
    weights = None if image_weights is None else image_weights[some]
    head = first_head(features, np.asarray(labels)[some], net.head.out_features, weights)
    with torch.no_grad():
        net.head.weight.copy_(torch.from_numpy(head.weights.T.astype(np.float32)))
        net.head.bias.copy_(torch.from_numpy(np.maximum(head.bias, NEVER).astype(np.float32)))


def first_head(
    features: FloatArray, labels: IntArray, n_classes: int, image_weights: FloatArray | None = None
) -> Linear:
    """A head on ``features`` (n, D) as they are, with the penalty of the least held-out loss."""
    share = np.ones(len(labels)) if image_weights is None else image_weights
    middle, spread = features.mean(0), features.std(0) + 1e-3 * features.std() + 1e-6
    rows = (features - middle) / spread
    folds = np.empty(len(labels), dtype=int)
    folds[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % N_FOLDS
    losses = [_held_out_loss(rows, labels, n_classes, folds, share, penalty) for penalty in PENALTIES]
    fitted = fit_logistic(rows, labels, n_classes, penalty=PENALTIES[int(np.argmin(losses))], image_weights=share)
    weights = fitted.weights / spread[:, None]
    return Linear(weights, fitted.bias - middle @ weights)


def _held_out_loss(
    rows: FloatArray, labels: IntArray, n_classes: int, folds: IntArray, share: FloatArray, penalty: float
) -> float:
    total = 0.0
    for fold in range(N_FOLDS):
        mine = folds == fold
        if not mine.any() or mine.all():
            continue
        head = fit_logistic(rows[~mine], labels[~mine], n_classes, penalty=penalty, image_weights=share[~mine])
        logits = np.maximum(head.logits(rows[mine]), NEVER)
        total -= float(share[mine] @ log_softmax(logits, axis=1)[np.arange(int(mine.sum())), labels[mine]])
    return total
