"""The pool's images as batches on the training device."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from semiprune_core.errors import InvalidDataError
from semiprune_core.records import IntArray

RESIDENT_BYTES = 2 << 30
"""Pools up to this size are kept on the GPU as they are."""
SAMPLE = 10_000
"""Images looked at for the mean and deviation of the channels."""


class Images:
    """Reads batches from an uint8 array (N, H, W, C) or (N, H, W), in memory or memory-mapped.

    They are normalised by their own channels' mean and deviation, or by the ``moments`` of others: (C,) and (C,).
    """

    def __init__(
        self, pixels: np.ndarray, device: torch.device, moments: tuple[np.ndarray, np.ndarray] | None = None
    ) -> None:
        if pixels.dtype != np.uint8 or pixels.ndim not in (3, 4):
            raise InvalidDataError(
                f"Images must be uint8 of shape (N, H, W) or (N, H, W, C), got {pixels.dtype} {pixels.shape}."
            )
        self.pixels = pixels if pixels.ndim == 4 else pixels[..., None]
        self.device = device
        mean, std = moments or channel_moments(self.pixels)
        self.mean, self.std = torch.from_numpy(mean).to(device), torch.from_numpy(std).to(device)
        self._resident: Tensor | None = None
        if device.type != "cpu" and self.pixels.nbytes <= RESIDENT_BYTES:
            self._resident = torch.from_numpy(np.array(self.pixels)).to(device)

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def size(self) -> int:
        return int(self.pixels.shape[1])

    @property
    def channels(self) -> int:
        return int(self.pixels.shape[3])

    def take(self, idx: IntArray) -> Tensor:
        """(B, C, H, W) uint8 on the device, for positions (B,)."""
        if self._resident is not None:
            batch = self._resident[torch.from_numpy(np.asarray(idx)).to(self.device)]
        else:
            batch = torch.from_numpy(self.pixels[idx]).to(self.device, non_blocking=True)
        return batch.permute(0, 3, 1, 2)

    def normalise(self, batch: Tensor) -> Tensor:
        """Values 0..255 to zero mean and unit deviation per channel, float, channels last."""
        scale = (1 / self.std).view(1, -1, 1, 1)
        shifted = torch.addcmul(-self.mean.view(1, -1, 1, 1) * scale, batch.float(), scale)
        return shifted.contiguous(memory_format=torch.channels_last)


def channel_moments(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation (C,) of the channels in 0..255, from at most SAMPLE evenly spread images."""
    rows = np.linspace(0, len(pixels) - 1, min(len(pixels), SAMPLE)).astype(np.int64)
    channels = pixels.shape[3]
    counts = np.zeros((channels, 256), dtype=np.int64)
    for block in np.array_split(rows, max(1, len(rows) // 500)):
        part = pixels[block]
        for channel in range(channels):
            counts[channel] += np.bincount(part[..., channel].ravel(), minlength=256)
    share = counts / counts.sum(axis=1, keepdims=True)
    values = np.arange(256)
    mean = share @ values
    std = np.sqrt(np.maximum(share @ values**2 - mean**2, 1.0))
    return mean.astype(np.float32), std.astype(np.float32)
