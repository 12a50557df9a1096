"""Networks by name, built for a given image size, channel count and class count.

Every net is a :class:`Net`: ``features`` gives the penultimate layer (B, D), ``classify`` the logits (B, C).
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semiprune_core.checks import check_choice, check_range
from semiprune_core.errors import SemiPruneError
from semiprune_core.learning.sampling import fresh_weights
from semiprune_core.registry import Registry

Backbone = tuple[nn.Module, int]
NETS: Registry[Callable[[int, int], Backbone]] = Registry("network")


class Net(nn.Module):
    """A backbone that ends in pooled features, and a linear classifier on them."""

    def __init__(self, backbone: nn.Module, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(n_features, n_classes)
        self.n_features = n_features

    def features(self, x: Tensor) -> Tensor:
        """(B, C, H, W) normalised images to (B, D) features."""
        return self.backbone(x)

    def classify(self, features: Tensor) -> Tensor:
        """(B, D) features to (B, n_classes) logits, always in full precision: thresholds and scores live from them."""
        with torch.autocast(features.device.type, enabled=False):
            return self.head(features.float())

    def forward(self, x: Tensor) -> Tensor:
        return self.classify(self.features(x))


def build_net(name: str, *, image_size: int, channels: int, n_classes: int, seed: int = 0) -> Net:
    """The net ``name`` with fresh weights; the same seed gives the same weights, and no global state is used up."""
    check_range("image_size", image_size, low=8)
    check_choice("channels", channels, (1, 3))
    check_range("n_classes", n_classes, low=2)
    build = NETS[name]
    with fresh_weights(seed):
        backbone, n_features = build(image_size, channels)
        net = Net(backbone, n_features, n_classes)
        for module in net.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        nn.init.normal_(net.head.weight, std=n_features**-0.5)
        nn.init.zeros_(net.head.bias)
    return net


def conv(n_in: int, n_out: int, kernel: int = 3, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(n_in, n_out, kernel, stride, kernel // 2, bias=False)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with a shortcut, normalised after each one (He et al. 2016, arXiv:1512.03385)."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = conv(n_in, n_out, stride=stride), nn.BatchNorm2d(n_out)
        self.conv2, self.norm2 = conv(n_out, n_out), nn.BatchNorm2d(n_out)
        same = stride == 1 and n_in == n_out
        self.shortcut: nn.Module = (
            nn.Identity() if same else nn.Sequential(conv(n_in, n_out, 1, stride), nn.BatchNorm2d(n_out))
        )

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.norm1(self.conv1(x)), inplace=True)
        return F.relu(self.norm2(self.conv2(out)) + self.shortcut(x), inplace=True)


class WideBlock(nn.Module):
    """Normalise, activate, convolve, twice (Zagoruyko and Komodakis 2016, arXiv:1605.07146), leaky as in FixMatch."""

    def __init__(self, n_in: int, n_out: int, stride: int, *, activate_first: bool) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(n_in), conv(n_in, n_out, stride=stride)
        self.norm2, self.conv2 = nn.BatchNorm2d(n_out), conv(n_out, n_out)
        self.shortcut = None if stride == 1 and n_in == n_out else conv(n_in, n_out, 1, stride)
        self.activate_first = activate_first

    def forward(self, x: Tensor) -> Tensor:
        active = F.leaky_relu(self.norm1(x), 0.1, inplace=True)
        out = self.conv2(F.leaky_relu(self.norm2(self.conv1(active)), 0.1, inplace=True))
        x = active if self.activate_first else x
        return out + (x if self.shortcut is None else self.shortcut(x))


def _pooled(*layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


@NETS.register("compact", title="Compact residual net", about="Small and fast on a CPU; the quick preset's.")
def compact(image_size: int, channels: int) -> Backbone:
    """Two residual stages behind a strided stem, so that most work happens on maps of 8 x 8 and smaller."""
    stem_stride = 2 if image_size <= 40 else 4 if image_size <= 100 else 8
    stem_kernel = 3 if stem_stride == 2 else 2 * stem_stride - 1
    stem = [conv(channels, 32, stem_kernel, stem_stride), nn.BatchNorm2d(32), nn.ReLU(inplace=True)]
    return _pooled(*stem, BasicBlock(32, 64, 2), BasicBlock(64, 128, 2)), 128


def _wide(channels: int, image_size: int, width: int, blocks: int = 4) -> Backbone:
    widths = [16, 16 * width, 32 * width, 64 * width]
    layers: list[nn.Module] = [conv(channels, widths[0], stride=1 if image_size <= 40 else 2)]
    for stage in range(3):
        n_in, n_out, stride = widths[stage], widths[stage + 1], 1 if stage == 0 else 2
        for block in range(blocks):
            start = block == 0
            first = stage == 0 and start
            layers.append(WideBlock(n_in if start else n_out, n_out, stride if start else 1, activate_first=first))
    return _pooled(*layers, nn.BatchNorm2d(widths[-1]), nn.LeakyReLU(0.1, inplace=True)), widths[-1]


@NETS.register("wrn_28_2", title="WideResNet-28-2", about="The paper's net for CIFAR-10.")
def wrn_28_2(image_size: int, channels: int) -> Backbone:
    return _wide(channels, image_size, 2)


@NETS.register("wrn_28_8", title="WideResNet-28-8", about="The paper's net for CIFAR-100; needs a GPU.")
def wrn_28_8(image_size: int, channels: int) -> Backbone:
    return _wide(channels, image_size, 8)


@NETS.register("resnet18_cifar", title="ResNet-18, CIFAR style", about="The paper's scoring net for small images.")
def resnet18_cifar(image_size: int, channels: int) -> Backbone:
    """ResNet-18 with a 3x3 stem and no pooling in front."""
    layers: list[nn.Module] = [conv(channels, 64), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    n_in = 64
    for n_out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [BasicBlock(n_in, n_out, stride), BasicBlock(n_out, n_out, 1)]
        n_in = n_out
    return _pooled(*layers), 512


def _torchvision_models() -> ModuleType:
    try:
        from torchvision import models
    except (
        ImportError,
        RuntimeError,
        OSError,
    ) as error:  # a torchvision built for another torch fails in all three ways
        raise SemiPruneError(
            f"This network needs torchvision, which cannot be loaded ({error}). Install the torchvision release that "
            "belongs to the installed torch, or choose compact, wrn_28_2, wrn_28_8 or resnet18_cifar.",
            code="TORCHVISION_BROKEN",
        ) from error
    return models


def _imagenet_style(name: str, channels: int) -> Backbone:
    net = getattr(_torchvision_models(), name)(weights=None)
    n_features = net.fc.in_features
    net.fc = nn.Identity()
    if channels != 3:
        net.conv1 = nn.Conv2d(channels, 64, 7, 2, 3, bias=False)
    return net, n_features


@NETS.register("resnet18", title="ResNet-18", about="ImageNet style, for images of at least 64 pixels.")
def resnet18(image_size: int, channels: int) -> Backbone:
    return _imagenet_style("resnet18", channels)


@NETS.register("resnet34", title="ResNet-34", about="ImageNet style, for images of at least 64 pixels.")
def resnet34(image_size: int, channels: int) -> Backbone:
    return _imagenet_style("resnet34", channels)


@NETS.register("resnet50", title="ResNet-50", about="ImageNet style, for images of at least 64 pixels.")
def resnet50(image_size: int, channels: int) -> Backbone:
    return _imagenet_style("resnet50", channels)
