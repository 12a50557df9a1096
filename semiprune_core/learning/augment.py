"""Augmentation of whole batches on the training device, with a different draw for every image.

Images are (B, C, H, W) with values 0..255. *Weak* is a shifted crop of the reflected image and a flip; *strong* is
weak, then RandAugment (``n_ops`` of 14 operations), then cutout. For ImageNet-style data a random part of the image,
enlarged, may take the place of the shifted crop. The arithmetic follows Pillow's, operation by
operation, so that a published recipe means the same here. Ranges as in FixMatch (arXiv:2001.07685) and the USB code.

A draw is made apart from its use and for the whole (global) batch: any part of a batch, on any device, is augmented as
the whole would have been.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

OPERATIONS = (
    "identity",
    "autocontrast",
    "equalize",
    "brightness",
    "color",
    "contrast",
    "sharpness",
    "posterize",
    "solarize",
    "rotate",
    "shear_x",
    "shear_y",
    "translate_x",
    "translate_y",
)
AFFINE = OPERATIONS.index("rotate")
"""From here on the operations are affine maps and share one pass."""
AREA, ASPECT, TRIES = (0.08, 1.0), 4 / 3, 10
"""Of a random part of the image: shares of its area, how far its sides are apart at most, draws until one fits."""


@dataclass(frozen=True)
class WeakDraw:
    """``shift`` (B, 2) rows and columns in pixels, ``flip`` (B,).

    ``box`` (B, 4) top, left, height and width as shares of the image: the part that is enlarged to the whole, instead
    of a shift.
    """

    shift: Tensor
    flip: Tensor
    box: Tensor | None = None

    def part(self, rows: slice) -> WeakDraw:
        return WeakDraw(self.shift[rows], self.flip[rows], None if self.box is None else self.box[rows])


@dataclass(frozen=True)
class StrongDraw:
    """``weak`` first; ``ops`` (B, n) operation numbers, ``level`` (B, n) in [-1, 1], ``cut`` (B, 3) in [0, 1]."""

    weak: WeakDraw
    ops: Tensor
    level: Tensor
    cut: Tensor

    def part(self, rows: slice) -> StrongDraw:
        return StrongDraw(self.weak.part(rows), self.ops[rows], self.level[rows], self.cut[rows])


def draw_weak(n: int, *, pad: int, flip: bool, generator: torch.Generator, resized: bool = False) -> WeakDraw:
    """Draws for ``n`` images: shifts of at most ``pad`` pixels, and flips of half of them where ``flip`` is on.

    ``resized``: random parts of the image instead of shifts.
    """
    shift = torch.randint(-pad, pad + 1, (n, 2), generator=generator)
    coin = torch.rand(n, generator=generator) < 0.5
    return WeakDraw(shift, coin if flip else torch.zeros_like(coin), draw_boxes(n, generator) if resized else None)


def draw_boxes(n: int, generator: torch.Generator) -> Tensor:
    """(n, 4) parts of a square image of ``AREA`` of its area and sides up to ``ASPECT`` apart (Szegedy et al. 2015).

    Of ``TRIES`` draws the first that fits counts, else the whole image.
    """
    area = torch.empty(n, TRIES).uniform_(*AREA, generator=generator)
    aspect = torch.empty(n, TRIES).uniform_(-math.log(ASPECT), math.log(ASPECT), generator=generator).exp()
    sides = torch.stack([(area / aspect).sqrt(), (area * aspect).sqrt()], dim=-1)  # (n, TRIES, 2) height and width
    fits = (sides <= 1).all(-1)
    chosen = sides[torch.arange(n), fits.int().argmax(1)]
    chosen = torch.where(fits.any(1)[:, None], chosen, torch.ones_like(chosen))
    corner = torch.rand(n, 2, generator=generator) * (1 - chosen)
    return torch.cat([corner, chosen], dim=1)


def draw_strong(
    n: int,
    *,
    pad: int,
    flip: bool,
    n_ops: int,
    strength: float,
    generator: torch.Generator,
    resized: bool = False,
) -> StrongDraw:
    """Draws for ``n`` images; levels are uniform up to ``strength`` (1 = the full published range)."""
    weak = draw_weak(n, pad=pad, flip=flip, generator=generator, resized=resized)
    ops = torch.randint(0, len(OPERATIONS), (n, n_ops), generator=generator)
    level = (2 * torch.rand(n, n_ops, generator=generator) - 1) * strength
    return StrongDraw(weak, ops, level, torch.rand(n, 3, generator=generator))


def weak(images: Tensor, draw: WeakDraw) -> Tensor:
    """Shift each image over its own reflection, or enlarge its box, and flip it. (B, C, H, W) of any type, same out."""
    if draw.box is not None:
        return _enlarged(images, draw.box.to(images.device), draw.flip.to(images.device))
    height, width = images.shape[2:]
    device = images.device
    shift = draw.shift.to(device)
    rows = _reflect(torch.arange(height, device=device) + shift[:, :1], height)
    columns = torch.arange(width, device=device).expand(len(images), width)
    columns = torch.where(draw.flip.to(device)[:, None], columns.flip(1), columns)
    columns = _reflect(columns + shift[:, 1:], width)
    picture = torch.arange(len(images), device=device)[:, None, None]
    return images.permute(0, 2, 3, 1)[picture, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def _enlarged(images: Tensor, box: Tensor, flip: Tensor) -> Tensor:
    """The boxes of the images at full size, between the pixels (bilinear)."""
    height, width = images.shape[2:]
    sign = torch.where(flip, -1.0, 1.0)
    zero = torch.zeros_like(sign)
    top, left, tall, wide = box.unbind(1)
    across = torch.stack([wide * sign, zero, 2 * left + wide - 1], dim=1)
    down = torch.stack([zero, tall, 2 * top + tall - 1], dim=1)
    grid = F.affine_grid(torch.stack([across, down], dim=1), [len(images), 1, height, width], align_corners=False)
    seen = F.grid_sample(images.float(), grid, padding_mode="reflection", align_corners=False)
    return seen if images.is_floating_point() else seen.round().clamp(0, 255).to(images.dtype)


def _reflect(index: Tensor, size: int) -> Tensor:
    """Positions beyond an edge fold back inside; the edge itself is not repeated."""
    index = index.abs()
    return torch.where(index >= size, 2 * size - 2 - index, index)


def strong(images: Tensor, draw: StrongDraw, *, cutout: float, fill: Tensor) -> Tensor:
    """Weak, then ``n_ops`` operations each, then cutout. (B, C, H, W) 0..255 in, float out, ``fill`` (C,) 0..255."""
    x = weak(images, draw.weak).float().contiguous()
    for slot in range(draw.ops.shape[1]):
        x = apply_operations(x, draw.ops[:, slot], draw.level[:, slot])
    return cut_out(x, draw.cut, largest=cutout, fill=fill)


def apply_operations(x: Tensor, ops: Tensor, level: Tensor) -> Tensor:
    """Apply operation ``ops[i]`` at ``level[i]`` to image i; ``x`` (B, C, H, W) float is overwritten."""
    for number, name in enumerate(OPERATIONS[1:AFFINE], start=1):
        chosen = torch.nonzero(ops == number)[:, 0]
        if len(chosen):
            rows = chosen.to(x.device)
            x[rows] = POINTWISE[name](x[rows], magnitude(name, level[chosen]).to(x.device))
    chosen = torch.nonzero(ops >= AFFINE)[:, 0]
    if len(chosen):
        rows = chosen.to(x.device)
        x[rows] = affine(x[rows], matrices(ops[chosen], level[chosen], x.shape[2], x.shape[3]).to(x.device))
    return x


def magnitude(name: str, level: Tensor) -> Tensor:
    """The operation's own parameter for levels in [-1, 1]; one-sided operations use the absolute value."""
    size = level.abs()
    if name in ("brightness", "color", "contrast", "sharpness"):
        return 0.95 - 0.9 * size
    if name == "posterize":
        return (8 - 4 * size).floor()
    if name == "solarize":
        return 256 * (1 - size)
    return size


def matrices(ops: Tensor, level: Tensor, height: int, width: int) -> Tensor:
    """(B, 6) rows (a, b, c, d, e, f): pixel (x, y) of the result comes from (ax + by + c, dx + ey + f)."""
    name = {operation: number for number, operation in enumerate(OPERATIONS)}
    zero = torch.zeros_like(level)
    angle = torch.where(ops == name["rotate"], -math.radians(30) * level, zero)
    cos, sin = angle.cos(), angle.sin()
    middle_x, middle_y = width / 2, height / 2
    b = sin + torch.where(ops == name["shear_x"], 0.3 * level, zero)
    d = -sin + torch.where(ops == name["shear_y"], 0.3 * level, zero)
    c = middle_x - cos * middle_x - sin * middle_y + torch.where(ops == name["translate_x"], 0.3 * width * level, zero)
    f = middle_y + sin * middle_x - cos * middle_y + torch.where(ops == name["translate_y"], 0.3 * height * level, zero)
    return torch.stack([cos, b, c, d, cos, f], dim=1)


def affine(x: Tensor, matrix: Tensor) -> Tensor:
    """Map each image by its own matrix (B, 6), nearest pixel, black outside (Pillow's ``transform(AFFINE)``)."""
    n, channels, height, width = x.shape
    column = torch.arange(width, device=x.device) + 0.5
    row = (torch.arange(height, device=x.device) + 0.5)[:, None]
    a, b, c, d, e, f = (matrix[:, i, None, None] for i in range(6))
    from_x = (a * column + b * row + c).floor().long()
    from_y = (d * column + e * row + f).floor().long()
    inside = (from_x >= 0) & (from_x < width) & (from_y >= 0) & (from_y < height)
    place = (from_y.clamp(0, height - 1) * width + from_x.clamp(0, width - 1)).view(n, 1, -1)
    moved = x.reshape(n, channels, -1).gather(2, place.expand(n, channels, -1)).view_as(x)
    return moved * inside[:, None]


def _blend(base: Tensor, x: Tensor, factor: Tensor) -> Tensor:
    """Pillow's blend: ``base`` at factor 0, ``x`` at factor 1; whole numbers, cut off."""
    return torch.lerp(base.expand_as(x), x, factor[:, None, None, None]).clamp(0, 255).floor()


def _grey(x: Tensor) -> Tensor:
    """(B, 1, H, W) luminance, ITU-R 601 in Pillow's 16-bit integers."""
    if x.shape[1] == 1:
        return x
    weights = x.new_tensor([19595.0, 38470.0, 7471.0]).view(1, 3, 1, 1) / 65536
    return ((x * weights).sum(1, keepdim=True) + 0.5).floor()


def brightness(x: Tensor, factor: Tensor) -> Tensor:
    return _blend(torch.zeros_like(x), x, factor)


def color(x: Tensor, factor: Tensor) -> Tensor:
    return x if x.shape[1] == 1 else _blend(_grey(x), x, factor)


def contrast(x: Tensor, factor: Tensor) -> Tensor:
    mean = (_grey(x).mean((1, 2, 3), keepdim=True) + 0.5).floor()
    return _blend(mean, x, factor)


def sharpness(x: Tensor, factor: Tensor) -> Tensor:
    """Blend with the smoothed image (kernel 1 1 1 / 1 5 1 / 1 1 1, the border left as it is)."""
    smooth = x.clone()
    inner = x[:, :, 1:-1, 1:-1]
    total = F.avg_pool2d(x, 3, 1) * 9 + 4 * inner
    smooth[:, :, 1:-1, 1:-1] = (total / 13 + 0.5).floor()
    return _blend(smooth, x, factor)


def posterize(x: Tensor, bits: Tensor) -> Tensor:
    step = torch.exp2(8 - bits)[:, None, None, None]
    return (x / step).floor() * step


def solarize(x: Tensor, threshold: Tensor) -> Tensor:
    return torch.where(x < threshold[:, None, None, None], x, 255 - x)


def autocontrast(x: Tensor, _: Tensor) -> Tensor:
    """Stretch each channel to 0..255; a channel of one value stays."""
    low, high = x.amin((2, 3), keepdim=True), x.amax((2, 3), keepdim=True)
    span = high - low
    scale = 255 / span.clamp(min=1)
    return torch.where(span > 0, (x * scale - low * scale).clamp(0, 255).floor(), x)


def equalize(x: Tensor, _: Tensor) -> Tensor:
    """Flatten the histogram of each channel by a table of 256 entries (Pillow's ``ImageOps.equalize``)."""
    n, channels, height, width = x.shape
    value = x.reshape(n * channels, -1).long()
    count = torch.zeros(n * channels, 256, device=x.device).scatter_add_(
        1, value, torch.ones_like(value, dtype=x.dtype)
    )
    last = count.gather(1, value.amax(1, keepdim=True))
    step = ((height * width - last) / 255).floor()
    before = count.cumsum(1) - count
    table = ((before + (step / 2).floor()) / step.clamp(min=1)).floor().clamp(max=255)
    table = torch.where(step > 0, table, torch.arange(256.0, device=x.device))
    return table.gather(1, value).view_as(x)


POINTWISE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "autocontrast": autocontrast,
    "equalize": equalize,
    "brightness": brightness,
    "color": color,
    "contrast": contrast,
    "sharpness": sharpness,
    "posterize": posterize,
    "solarize": solarize,
}


def cut_out(x: Tensor, cut: Tensor, *, largest: float, fill: Tensor) -> Tensor:
    """Cover a square of up to ``largest`` times the side, around a random point, with ``fill`` (C,)."""
    if largest <= 0:
        return x
    height, width = x.shape[2:]
    cut = cut.to(x.device)
    half = cut[:, :1] * largest * min(height, width) / 2
    row = torch.arange(height, device=x.device) + 0.5
    column = torch.arange(width, device=x.device) + 0.5
    tall = (row - cut[:, 1:2] * height).abs() < half
    wide = (column - cut[:, 2:3] * width).abs() < half
    covered = (tall[:, :, None] & wide[:, None, :])[:, None]
    return torch.where(covered, fill.to(x).view(1, -1, 1, 1), x)
