"""The five corruptions of the paper's hard data: noise, occlusion, low resolution, fog, motion blur.

Each takes pixels (H, W) or (H, W, 3) uint8 and a generator, and returns new pixels of the same shape. Strengths are
drawn per image and scale with the image's short side, so that 28 and 400 pixels suffer alike.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image

from semiprune_core.registry import Registry

Corrupt = Callable[[np.ndarray, np.random.Generator], np.ndarray]
CORRUPTIONS: Registry[Corrupt] = Registry("corruption")


def apply(name: str, pixels: np.ndarray, seed: int) -> np.ndarray:
    """The corruption ``name`` with its own seed: same pixels and seed, same result."""
    return CORRUPTIONS[name](pixels, np.random.default_rng(seed))


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.rint(values).clip(0, 255).astype(np.uint8)


@CORRUPTIONS.register("gaussian_noise", title="Gaussian noise")
def gaussian_noise(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Independent noise on every value, standard deviation 25 to 50 of 255."""
    sigma = rng.uniform(25, 50)
    return _bytes(pixels + sigma * rng.standard_normal(pixels.shape, dtype=np.float32))


@CORRUPTIONS.register("occlusion", title="Random occlusion")
def occlusion(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A rectangle of one random colour over 15% to 35% of the picture, wholly inside it."""
    height, width = pixels.shape[:2]
    share = rng.uniform(0.15, 0.35)
    tall = np.sqrt(share) * rng.uniform(0.8, 1.25)
    rows = int(np.clip(round(height * tall), 1, height))
    columns = int(np.clip(round(width * share / tall), 1, width))
    top, left = rng.integers(height - rows + 1), rng.integers(width - columns + 1)
    covered = pixels.copy()
    covered[top : top + rows, left : left + columns] = rng.integers(0, 256, size=pixels.shape[2:])
    return covered


@CORRUPTIONS.register("low_resolution", title="Lower resolution")
def low_resolution(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Reduced to between a quarter and two fifths of its sides, and enlarged again."""
    scale = rng.uniform(0.25, 0.4)
    image = Image.fromarray(pixels)
    small = image.resize(
        (max(1, round(image.width * scale)), max(1, round(image.height * scale))), Image.Resampling.BOX
    )
    return np.asarray(small.resize(image.size, Image.Resampling.BILINEAR)).copy()


@CORRUPTIONS.register("fog", title="Fog")
def fog(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Blended with a bright cloud of noise at four scales; contrast falls by 45% to 75%."""
    height, width = pixels.shape[:2]
    cloud = np.zeros((height, width), dtype=np.float32)
    for octave in range(4):
        cells = 2 ** (octave + 1)
        coarse = Image.fromarray(rng.random((cells, cells), dtype=np.float32))
        cloud += np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC)) / 2**octave
    cloud = (cloud - cloud.min()) / max(float(np.ptp(cloud)), 1e-6)
    density = rng.uniform(0.45, 0.75) * (0.6 + 0.4 * cloud)
    density = density[..., None] if pixels.ndim == 3 else density
    return _bytes(pixels * (1 - density) + 235 * density)


@CORRUPTIONS.register("motion_blur", title="Motion blur")
def motion_blur(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The mean of copies shifted along a line of random direction, 15% to 30% of the short side long."""
    length = max(3, round(min(pixels.shape[:2]) * rng.uniform(0.15, 0.3)))
    angle = rng.uniform(0, np.pi)
    steps = np.linspace(-(length - 1) / 2, (length - 1) / 2, length)
    shifts = np.unique(np.rint(np.stack([steps * np.sin(angle), steps * np.cos(angle)], axis=1)).astype(int), axis=0)
    reach = int(np.abs(shifts).max())
    height, width = pixels.shape[:2]
    borders = [(reach, reach), (reach, reach), *[(0, 0)] * (pixels.ndim - 2)]
    padded = np.pad(pixels, borders, mode="edge").astype(np.uint16)
    total = np.zeros(pixels.shape, dtype=np.float32)
    for down, right in shifts:
        total += padded[reach + down : reach + down + height, reach + right : reach + right + width]
    return _bytes(total / len(shifts))
