"""Every operation is held against Pillow's on single images."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from semiprune_core.learning import augment

NAMES = [name for name in augment.OPERATIONS if name != "identity"]
LEVELS = (-0.9, -0.35, 0.1, 0.6, 1.0)


def picture(kind, channels, size=32):
    rng = np.random.default_rng(3)
    if kind == "noise":
        pixels = rng.integers(0, 256, (size, size, channels))
    elif kind == "ramp":
        pixels = np.linspace(20, 200, size)[None, :, None] + 10 * np.arange(channels) + np.zeros((size, 1, 1))
    else:
        pixels = np.full((size, size, channels), 77)
    return pixels.astype(np.uint8)


def as_pillow(pixels):
    return Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)


def by_pillow(name, image, level):
    value = float(augment.magnitude(name, torch.tensor(level)))
    size = image.size[0]
    moves = {
        "shear_x": (1, 0.3 * level, 0, 0, 1, 0),
        "shear_y": (1, 0, 0, 0.3 * level, 1, 0),
        "translate_x": (1, 0, 0.3 * level * size, 0, 1, 0),
        "translate_y": (1, 0, 0, 0, 1, 0.3 * level * size),
    }
    if name in moves:
        return image.transform(image.size, Image.Transform.AFFINE, moves[name])
    if name == "sharpness":
        return ImageEnhance.Sharpness(image).enhance(value)
    return {
        "autocontrast": ImageOps.autocontrast,
        "equalize": ImageOps.equalize,
        "brightness": lambda im: ImageEnhance.Brightness(im).enhance(value),
        "color": lambda im: ImageEnhance.Color(im).enhance(value),
        "contrast": lambda im: ImageEnhance.Contrast(im).enhance(value),
        "posterize": lambda im: ImageOps.posterize(im, int(value)),
        "solarize": lambda im: ImageOps.solarize(im, value),
        "rotate": lambda im: im.rotate(30 * level),
    }[name](image)


def by_us(name, pixels, level):
    x = torch.from_numpy(pixels).permute(2, 0, 1)[None].float()
    number = torch.tensor([augment.OPERATIONS.index(name)])
    return augment.apply_operations(x, number, torch.tensor([level]))[0].permute(1, 2, 0).numpy()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", ["noise", "ramp", "flat"])
@pytest.mark.parametrize("name", NAMES)
def test_each_operation_equals_pillow(name, kind, channels):
    """Point operations within 1 of 255; moved images in 99% of the pixels (a tie may fall to either neighbour)."""
    pixels = picture(kind, channels)
    for level in LEVELS:
        wanted = np.asarray(by_pillow(name, as_pillow(pixels), level)).reshape(pixels.shape).astype(float)
        found = by_us(name, pixels, level)
        assert (found == found.round()).all() and found.min() >= 0 and found.max() <= 255
        if augment.OPERATIONS.index(name) >= augment.AFFINE:
            assert (found == wanted).mean() >= 0.99, level
        else:
            assert np.abs(found - wanted).max() <= 1, level


def test_smoothing_leaves_the_border_as_pillow_does():
    pixels = picture("noise", 1, size=9)
    wanted = np.asarray(as_pillow(pixels).filter(ImageFilter.SMOOTH))
    found = augment.sharpness(torch.from_numpy(pixels)[None, None, :, :, 0].float(), torch.zeros(1))[0, 0].numpy()
    assert np.abs(found - wanted).max() <= 1
    assert (found[0] == pixels[0, :, 0]).all()


def test_weak_crops_the_reflected_image_and_flips():
    x = torch.arange(16).view(1, 1, 4, 4)
    still = augment.WeakDraw(torch.tensor([[0, 0]]), torch.tensor([False]))
    assert torch.equal(augment.weak(x, still), x)
    moved = augment.weak(x, augment.WeakDraw(torch.tensor([[-1, 2]]), torch.tensor([False])))
    padded = torch.from_numpy(np.pad(x[0, 0].numpy(), 2, mode="reflect"))
    assert torch.equal(moved[0, 0], padded[1:5, 4:8])
    flipped = augment.weak(x, augment.WeakDraw(torch.tensor([[0, 0]]), torch.tensor([True])))
    assert torch.equal(flipped, x.flip(3))


def test_flip_can_be_switched_off():
    draw = augment.draw_weak(200, pad=0, flip=False, generator=torch.Generator().manual_seed(0))
    assert not draw.flip.any()
    assert augment.draw_weak(200, pad=0, flip=True, generator=torch.Generator().manual_seed(0)).flip.any()


@pytest.mark.parametrize("channels", [1, 3])
def test_a_part_of_a_batch_is_augmented_as_within_the_whole(channels):
    x = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (40, channels, 28, 28), dtype=np.uint8))
    rng = torch.Generator().manual_seed(5)
    draw = augment.draw_strong(40, pad=4, flip=True, n_ops=3, strength=1.0, generator=rng)
    fill = torch.full((channels,), 100.0)
    whole = augment.strong(x, draw, cutout=0.5, fill=fill)
    part = augment.strong(x[7:23], draw.part(slice(7, 23)), cutout=0.5, fill=fill)
    assert torch.equal(whole[7:23], part)
    assert whole.min() >= 0 and whole.max() <= 255 and torch.isfinite(whole).all()


def test_images_of_a_batch_get_different_draws():
    x = torch.from_numpy(picture("noise", 1)).permute(2, 0, 1).expand(64, 1, 32, 32)
    draw = augment.draw_strong(64, pad=4, flip=True, n_ops=2, strength=1.0, generator=torch.Generator().manual_seed(1))
    seen = augment.strong(x, draw, cutout=0.5, fill=torch.zeros(1))
    assert len({one.numpy().tobytes() for one in seen}) > 60


def test_zero_strength_and_no_cutout_change_geometry_only_by_the_weak_draw():
    x = torch.from_numpy(picture("noise", 3)).permute(2, 0, 1)[None]
    ops = torch.tensor([[augment.OPERATIONS.index(name)] for name in ("rotate", "shear_x", "translate_y", "solarize")])
    still = augment.WeakDraw(torch.zeros(4, 2, dtype=torch.long), torch.zeros(4, dtype=torch.bool))
    draw = augment.StrongDraw(still, ops, torch.zeros(4, 1), torch.rand(4, 3))
    out = augment.strong(x.expand(4, 3, 32, 32), draw, cutout=0.0, fill=torch.zeros(3))
    assert torch.equal(out, x.expand(4, 3, 32, 32).float())


def test_cutout_covers_a_square_of_the_drawn_size():
    x = torch.full((1, 1, 20, 20), 9.0)
    out = augment.cut_out(x, torch.tensor([[1.0, 0.5, 0.5]]), largest=0.5, fill=torch.tensor([0.0]))
    assert (out[0, 0] == 0).sum() == 100 and (out[0, 0, 5:15, 5:15] == 0).all()
    assert torch.equal(augment.cut_out(x, torch.tensor([[1.0, 0.5, 0.5]]), largest=0, fill=torch.zeros(1)), x)


def test_boxes_are_parts_of_the_image_of_all_sizes():
    boxes = augment.draw_boxes(2000, torch.Generator().manual_seed(0))
    top, left, tall, wide = boxes.unbind(1)
    assert (boxes >= 0).all() and (top + tall <= 1 + 1e-6).all() and (left + wide <= 1 + 1e-6).all()
    area, aspect = tall * wide, wide / tall
    assert area.min() >= 0.08 - 1e-6 and area.min() < 0.1 and area.max() > 0.9
    assert aspect.min() >= 0.75 - 1e-6 and aspect.max() <= 4 / 3 + 1e-6 and aspect.max() > 1.3
    assert 0.4 < area.mean() < 0.55


@pytest.mark.parametrize("kind", [torch.uint8, torch.float32])
def test_an_enlarged_box_is_what_pillow_makes_of_it(kind):
    pixels = picture("ramp", 3)
    x = torch.from_numpy(pixels).permute(2, 0, 1)[None].to(kind)
    still = torch.zeros(1, 2, dtype=torch.long)
    box = torch.tensor([[0.25, 0.5, 0.5, 0.25]])
    for flip in (False, True):
        seen = augment.weak(x, augment.WeakDraw(still, torch.tensor([flip]), box))
        part = Image.fromarray(pixels).resize((32, 32), Image.Resampling.BILINEAR, box=(16, 8, 24, 24))
        wanted = np.asarray(ImageOps.mirror(part) if flip else part).transpose(2, 0, 1)
        inner = np.s_[:, 2:-2, 2:-2]  # Pillow ends at the box's edge, here pixels beyond it are seen
        assert seen.dtype == kind and np.abs(seen[0].numpy()[inner].astype(float) - wanted[inner]).max() <= 1.01


def test_the_whole_image_as_a_box_changes_nothing():
    x = torch.from_numpy(picture("noise", 1)).permute(2, 0, 1)[None]
    whole = augment.WeakDraw(torch.zeros(1, 2, dtype=torch.long), torch.tensor([False]), torch.tensor([[0.0, 0, 1, 1]]))
    assert torch.equal(augment.weak(x, whole), x)


def test_a_part_of_a_batch_of_boxes_is_augmented_as_the_whole():
    x = torch.from_numpy(np.stack([picture("noise", 1)] * 12)).permute(0, 3, 1, 2)
    rng = torch.Generator().manual_seed(0)
    draw = augment.draw_strong(12, pad=4, flip=True, n_ops=2, strength=1.0, generator=rng, resized=True)
    whole = augment.strong(x, draw, cutout=0.5, fill=torch.zeros(1))
    part = augment.strong(x[3:9], draw.part(slice(3, 9)), cutout=0.5, fill=torch.zeros(1))
    assert torch.allclose(whole[3:9], part, atol=1e-3)
