"""The five corruptions of the paper's hard data: noise, occlusion, low resolution, fog, motion blur.

Each takes pixels (H, W) or (H, W, 3) uint8 and a generator, and returns new pixels of the same shape; sizes scale with
the image, so that 28 and 400 pixels suffer alike. Each kind has two severities. *Mild*: strengths are drawn per image,
and a person still recognises the picture. *Paper*: what Xia et al. (2023), whom the paper follows, do to CIFAR in
their published code, the overflow in its noise and the black images of its fog included, since results stand on them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image

from semiprune_core.registry import Registry

Corrupt = Callable[[np.ndarray, np.random.Generator], np.ndarray]
CORRUPTIONS: Registry[Corrupt] = Registry("corruption")
MILD, PAPER = "mild", "paper"
SEVERITIES = {MILD: "Mild", PAPER: "As in the paper"}


def of_severity(severity: str) -> list[str]:
    """The names of the corruptions of one severity, in order."""
    return sorted(name for name in CORRUPTIONS if CORRUPTIONS.facts(name)["severity"] == severity)


def apply(name: str, pixels: np.ndarray, seed: int) -> np.ndarray:
    """The corruption ``name`` with the seed that is kept for this image: same pixels and seed, same result."""
    return CORRUPTIONS[name](pixels, np.random.default_rng(seed))


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.rint(values).clip(0, 255).astype(np.uint8)


@CORRUPTIONS.register("gaussian_noise", title="Gaussian noise", severity=MILD)
def gaussian_noise(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Independent noise on every value, standard deviation 25 to 50 of 255."""
    sigma = rng.uniform(25, 50)
    return _bytes(pixels + sigma * rng.standard_normal(pixels.shape, dtype=np.float32))


@CORRUPTIONS.register("occlusion", title="Random occlusion", severity=MILD)
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


@CORRUPTIONS.register("low_resolution", title="Lower resolution", severity=MILD)
def low_resolution(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Reduced to between a quarter and two fifths of its sides, and enlarged again."""
    scale = rng.uniform(0.25, 0.4)
    image = Image.fromarray(pixels)
    small = image.resize(
        (max(1, round(image.width * scale)), max(1, round(image.height * scale))), Image.Resampling.BOX
    )
    return np.asarray(small.resize(image.size, Image.Resampling.BILINEAR)).copy()


@CORRUPTIONS.register("fog", title="Fog", severity=MILD)
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


@CORRUPTIONS.register("motion_blur", title="Motion blur", severity=MILD)
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


# --- as in the published code of Xia et al. (2023), at 32 pixels ----------------------------------------------------


@CORRUPTIONS.register("paper_gaussian_noise", title="Gaussian noise (paper)", severity=PAPER)
def paper_gaussian_noise(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Noise of mean 0.2 and deviation 1 on values from 0 to 1, cut off at -1 and 1; below 0 the bytes wrap around."""
    noisy = np.clip(pixels / 255.0 + rng.normal(0.2, 1.0, pixels.shape), -1.0, 1.0)
    return (np.trunc(noisy * 255).astype(np.int64) % 256).astype(np.uint8)


@CORRUPTIONS.register("paper_occlusion", title="Occlusion (paper)", severity=PAPER)
def paper_occlusion(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A black square over half of each side, always at the same place: pixels 5 to 20 of 32."""
    top, bottom = (round(pixels.shape[0] * place / 32) for place in (5, 21))
    left, right = (round(pixels.shape[1] * place / 32) for place in (5, 21))
    covered = pixels.copy()
    covered[top : max(bottom, top + 1), left : max(right, left + 1)] = 0
    return covered


@CORRUPTIONS.register("paper_low_resolution", title="Lower resolution (paper)", severity=PAPER)
def paper_low_resolution(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Reduced to a quarter of its sides and enlarged again, both bicubic."""
    image = Image.fromarray(pixels)
    small = image.resize((max(1, image.width // 4), max(1, image.height // 4)), Image.Resampling.BICUBIC)
    return np.asarray(small.resize(image.size, Image.Resampling.BICUBIC)).copy()


@CORRUPTIONS.register("paper_fog", title="Fog (paper)", severity=PAPER)
def paper_fog(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Black: the published code blends with grey on values from 0 to 1 and stores them as whole numbers."""
    return np.zeros_like(pixels)


@CORRUPTIONS.register("paper_motion_blur", title="Motion blur (paper)", severity=PAPER)
def paper_motion_blur(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The mean over 15 of 32 pixels in a row and in the one below, mirrored at the border, stretched to full range."""
    height, width = pixels.shape[:2]
    reach = max(1, round(width * 7 / 32))
    borders = [(0, 1), (reach, reach), *[(0, 0)] * (pixels.ndim - 2)]
    padded = np.pad(pixels.astype(np.float32), borders, mode="reflect" if min(height, width - reach) > 1 else "edge")
    rows = (padded[:-1] + padded[1:]) / 2
    blurred = np.mean([rows[:, step : step + width] for step in range(2 * reach + 1)], axis=0)
    low, high = float(blurred.min()), float(blurred.max())
    return _bytes((blurred - low) * (255 / (high - low)) if high > low else blurred)
