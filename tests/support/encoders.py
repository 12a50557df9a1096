"""A small net that plays a pretrained encoder."""

import torch
from torch import nn

from semiprune_core.learning.pretrained import Pretrained


def tiny_encoder(digest="tiny"):
    """A small convolutional net with normalisation that plays the pretrained one; the same weights every time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        stem = nn.Sequential(nn.Conv2d(3, 8, 5, 4, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        blocks = nn.Sequential(*(nn.Sequential(nn.Conv2d(8, 8, 3, 2), nn.ReLU()) for _ in range(2)))
        net = nn.Sequential()
        net.add_module("stem", stem)
        net.add_module("blocks", blocks)
        net.add_module("pool", nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten()))
    return Pretrained(net, 48, (0.5, 0.5, 0.5), (0.2, 0.2, 0.2), digest)
