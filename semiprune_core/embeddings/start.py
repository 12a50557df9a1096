"""A pretrained encoder as the start of a net that is trained further."""

from __future__ import annotations

from semiprune_core.embeddings.encoders import open_encoder, own_side, state_hash
from semiprune_core.learning.pretrained import Pretrained, side_for
from semiprune_core.paths import PathGuard

FIXED_SIZE = ("torchvision:vit", "torchvision:swin", "torchvision:maxvit", "vit_", "swin_", "maxvit_")
"""Nets that see images of one size alone."""


def open_pretrained(name: str, image_size: int, *, guard: PathGuard, weights: str = "") -> Pretrained:
    """The encoder of this name (the first of ``a+b``), opened anew, for training images of ``image_size`` pixels."""
    name = name.split("+")[0]
    encoder = open_encoder(name, weights, guard=guard)
    own = own_side(name)
    side = own if name.startswith(FIXED_SIZE) else side_for(image_size, own)
    return Pretrained(encoder.net, side, encoder.mean, encoder.std, state_hash(encoder.net))
