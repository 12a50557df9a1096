"""Perceptual fingerprints of training copies: what stays of a picture when it is resized, recompressed or mirrored.

The low frequencies of its brightness (a cosine transform over a grid of 16 x 16) and a little of its colour, each
less its mean over the pool and divided by its spread there: what all images of a pool share says nothing. A mirrored
picture has the same numbers, those of odd horizontal frequencies with the other sign.
"""

from __future__ import annotations

import numpy as np

from semiprune_core.learning.frozen.neighbours import unit_rows
from semiprune_core.records import FloatArray

GRID = 16
FREQUENCIES, COLOURS = 8, 3
"""Frequencies a side: of the brightness, and of each of the two differences of colour."""
LUMA = np.array([0.299, 0.587, 0.114], np.float32)
BLOCK = 1024
FAINT = 1e-3
"""A number that changes less than this, beside the liveliest, is left out."""


def fingerprints(images: np.ndarray) -> tuple[FloatArray, FloatArray]:
    """(N, D) float32 of images (N, S, S, C) uint8, rows of length 1; and (D,) what mirroring multiplies numbers with.

    A blank image has a row of zeros: it is like nothing.
    """
    transform = _transform(images.shape[1])
    rows = np.concatenate([_low(images[start : start + BLOCK], transform) for start in range(0, len(images), BLOCK)])
    signs, blank = _signs(images.shape[3]), ~rows.any(axis=1)
    rows -= rows.mean(0, dtype=np.float64) * (signs > 0)
    rows[blank] = 0
    spread = np.sqrt((rows.astype(np.float64) ** 2).mean(0))
    alive = spread > FAINT * spread.max(initial=0)
    rows *= np.where(alive, 1 / np.where(alive, spread, 1), 0)
    rows = unit_rows(rows)
    return rows, signs


def _transform(side: int) -> FloatArray:
    """(FREQUENCIES, side): mean over the cells of a grid, then the cosine transform along it."""
    edges = np.linspace(0, side, GRID + 1)
    pixels = np.arange(side)
    cells = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    cells = np.maximum(cells, 0) / (side / GRID)
    waves = np.cos(np.pi * np.arange(FREQUENCIES)[:, None] * (np.arange(GRID) + 0.5) / GRID)
    waves[0] /= np.sqrt(2)
    return (waves @ cells * np.sqrt(2 / GRID)).astype(np.float32)


def _low(images: np.ndarray, transform: FloatArray) -> FloatArray:
    """(n, D) low frequencies of brightness and colour, of length 1 for each image; of a blank one nothing."""
    pixels = images.astype(np.float32)
    grey = pixels[..., 0] if pixels.shape[3] == 1 else pixels @ LUMA
    parts = [_waves(grey, transform)[:, 1:]]
    if pixels.shape[3] == 3:
        few = transform[:COLOURS]
        parts += [_waves(pixels[..., channel] - grey, few) for channel in (2, 0)]
    low = np.concatenate(parts, axis=1)
    length = np.linalg.norm(low, axis=1, keepdims=True)
    return low / np.where(length > 1, length, np.inf)


def _waves(plane: FloatArray, transform: FloatArray) -> FloatArray:
    """(n, k * k) of planes (n, S, S), rows of vertical frequencies."""
    return (transform @ plane @ transform.T).reshape(len(plane), -1)


def _signs(channels: int) -> FloatArray:
    """(D,) what mirroring multiplies each number with."""
    brightness = np.tile((-1.0) ** np.arange(FREQUENCIES), FREQUENCIES)[1:]
    colour = np.tile((-1.0) ** np.arange(COLOURS), COLOURS)
    return np.concatenate([brightness, colour, colour] if channels == 3 else [brightness]).astype(np.float32)
