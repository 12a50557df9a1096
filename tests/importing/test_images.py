"""Decoding: stated conversions, named errors, and what is made of the pixels."""

from __future__ import annotations

import io
import struct
import warnings
import zlib

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_images

from semiprune_core.errors import InvalidSettingError, SourceError
from semiprune_core.importing import images
from semiprune_core.importing.corruptions import CORRUPTIONS, apply, of_severity
from tests.hostile_inputs.cases import encoded, picture
from tests.hostile_inputs.images import png_chunk

RAMP = np.arange(16 * 16, dtype=np.uint8).reshape(16, 16)


def saved(image: Image.Image, kind: str = "PNG", **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def with_alpha(alpha: int) -> Image.Image:
    return Image.fromarray(np.dstack([picture(0, (8, 8, 3)), np.full((8, 8), alpha, np.uint8)]))


def test_a_photograph_of_60_megapixels_is_decoded_where_it_is_a_jpeg():
    wide = Image.new("L", (10_000, 6_000), 90)
    assert images.decode(saved(wide, "JPEG"), name="x").pixels.shape == (6_000, 10_000)
    with pytest.raises(SourceError, match="60.0 megapixels, more than the 50 allowed"):
        images.decode(saved(wide, "PNG"), name="x")


def test_a_damaged_avif_is_named():
    data = saved(Image.fromarray(picture()), "AVIF")
    assert images.decode(data, name="x").format == "AVIF"
    rng = np.random.default_rng(0)
    for cut in rng.integers(20, len(data), 20):
        with pytest.raises(SourceError):
            images.decode(data[:cut], name="x")


def test_a_heic_is_read_with_its_package_and_named_without():
    head = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"
    with pytest.raises(SourceError) as caught:
        images.decode(head, name="x")
    if "HEIF" in images.FORMATS:
        assert caught.value.code == "IMAGE_DAMAGED"
        data = saved(Image.fromarray(np.kron(picture(), np.ones((8, 8, 1), np.uint8))), "HEIF")
        assert images.decode(data, name="x").format == "HEIF"
    else:
        assert "a HEIC photograph (pip install pillow-heif" in str(caught.value)


def test_plain_pictures_come_back_bit_by_bit():
    for pixels in (picture(), RAMP):
        for kind in ("PNG", "BMP", "TIFF", "PPM"):
            decoded = images.decode(encoded(kind, pixels), name="x")
            assert np.array_equal(decoded.pixels, pixels)
            assert (decoded.converted, decoded.format) == (None, kind)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "JPEG", "WEBP", "AVIF"])
def test_exif_orientation_is_applied(kind, orientation):
    image = Image.fromarray(np.kron(picture(3, (2, 3)), np.ones((16, 16), np.uint8)).repeat(3).reshape(32, 48, 3))
    exif = Image.Exif()
    exif[0x0112] = orientation
    plain = images.decode(saved(image, kind), name="x").pixels.astype(int)
    turned = images.decode(saved(image, kind, exif=exif), name="x")
    turns = {
        1: lambda a: a,
        2: np.fliplr,
        3: lambda a: np.rot90(a, 2),
        4: np.flipud,
        5: lambda a: a.swapaxes(0, 1),
        6: lambda a: np.rot90(a, -1),
        7: lambda a: np.rot90(a, 2).swapaxes(0, 1),
        8: lambda a: np.rot90(a, 1),
    }
    expected = turns[orientation](plain)
    assert turned.pixels.shape == expected.shape
    assert np.abs(turned.pixels - expected).max() <= 2
    assert turned.converted == (None if orientation == 1 else "EXIF rotated")


def test_damaged_exif_says_nothing():
    data = saved(Image.fromarray(picture()), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    assert images.decode(data, name="x").converted is None


def test_alpha_is_put_on_white():
    clear = images.decode(saved(with_alpha(0)), name="x")
    assert (clear.pixels == 255).all() and clear.converted == "alpha on white"
    assert images.decode(saved(with_alpha(255)), name="x").converted is None
    half = images.decode(saved(with_alpha(128)), name="x").pixels
    assert np.abs(half - (picture(0, (8, 8, 3)) * 0.502 + 255 * 0.498)).max() <= 1.5


def test_transparent_colours_of_palettes_and_plain_pictures_are_white():
    palette = Image.fromarray(RAMP).convert("RGB").quantize(16)
    decoded = images.decode(saved(palette, "PNG", transparency=0), name="x")
    assert decoded.converted == "palette to RGB; alpha on white"
    grey = images.decode(saved(Image.fromarray(RAMP), "PNG", transparency=7), name="x")
    assert grey.pixels.shape == (16, 16) and grey.pixels[0, 7] == 255 and grey.pixels[0, 8] == 8


@pytest.mark.parametrize(
    ("image", "kind", "words", "shape"),
    [
        (Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG", "CMYK to RGB", (8, 8, 3)),
        (Image.new("P", (8, 8)), "PNG", "palette to RGB", (8, 8, 3)),
        (Image.new("1", (8, 8), 1), "PNG", "1-bit to grey", (8, 8)),
        (Image.new("LA", (8, 8), (9, 255)), "PNG", None, (8, 8)),
        (Image.new("F", (8, 8)), "TIFF", "float stretched to 8 bits", (8, 8)),
        (Image.new("I", (8, 8)), "TIFF", "32-bit stretched to 8 bits", (8, 8)),
        (Image.new("YCbCr", (8, 8)), "TIFF", "YCbCr to RGB", (8, 8, 3)),
    ],
)
def test_odd_modes_are_converted_and_said(image, kind, words, shape):
    decoded = images.decode(saved(image, kind), name="x")
    assert (decoded.converted, decoded.pixels.shape, decoded.pixels.dtype) == (words, shape, np.uint8)


def test_cmyk_red_is_red():
    red = images.decode(saved(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG", quality=100), name="x").pixels
    assert red[..., 0].min() > 245 and red[..., 1:].max() < 10


def test_sixteen_bits_keep_their_upper_eight():
    values = np.linspace(0, 65535, 64, dtype=np.uint16).reshape(8, 8)
    for kind in ("PNG", "TIFF"):
        decoded = images.decode(saved(Image.fromarray(values), kind), name="x")
        assert np.array_equal(decoded.pixels, values >> 8)
        assert decoded.converted == "16 to 8 bits"


def test_sixteen_bits_of_colour_are_said_and_a_stride_is_not_mistaken_for_them():
    header = png_chunk(b"IHDR", struct.pack(">2I5B", 8, 8, 16, 2, 0, 0, 0))
    rows = b"".join(b"\0" + b"\x80\xff" * 24 for _ in range(8))
    data = b"\x89PNG\r\n\x1a\n" + header + png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b"")
    decoded = images.decode(data, name="x")
    assert decoded.converted == "16 to 8 bits" and (decoded.pixels == 0x80).all()
    for width in range(50, 60):  # rows of 150 to 180 bytes
        assert images.decode(encoded("BMP", picture(0, (8, width, 3))), name="x").converted is None


def test_floats_are_stretched_and_survive_what_is_not_finite():
    values = np.linspace(-3, 5, 64, dtype=np.float32).reshape(8, 8)
    values[0, 0], values[0, 1], values[7, 7] = np.nan, -np.inf, np.inf
    pixels = images.decode(saved(Image.fromarray(values), "TIFF"), name="x").pixels
    assert pixels[0, 0] == pixels[0, 1] == 0 and pixels[7, 7] == 255
    extreme = np.full((8, 8), np.finfo(np.float32).max, dtype=np.float32)
    extreme[0] *= -1
    assert set(images.decode(saved(Image.fromarray(extreme), "TIFF"), name="x").pixels.ravel()) == {0, 255}


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_of_several_frames_the_first_is_taken(kind):
    first, second = Image.new("RGB", (8, 8), "red"), Image.new("RGB", (8, 8), "blue")
    options = {"lossless": True} if kind == "WEBP" else {}
    decoded = images.decode(saved(first, kind, save_all=True, append_images=[second] * 3, **options), name="x")
    assert decoded.pixels[0, 0].tolist() == [255, 0, 0]
    assert "first frame of several" in (decoded.converted or "")


def test_the_pixel_limit_names_both_numbers():
    side = 8_000
    with pytest.raises(SourceError, match=r"64.0 megapixels, more than the 50") as caught:
        images.decode(saved(Image.new("1", (side, side)), "PNG"), name="big.png")
    assert caught.value.code == "IMAGE_TOO_MANY_PIXELS"


def test_hostile_names_are_shown_safely():
    with pytest.raises(SourceError) as caught:
        images.decode(b"", name="a\u202egnp.\n" + "x" * 300)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 300


def test_mutated_files_never_escape_with_another_error(capfd):
    rng = np.random.default_rng(7)
    samples = [encoded(kind) for kind in ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for turn in range(700):
            data = bytearray(samples[turn % len(samples)])
            for place in rng.integers(len(data), size=rng.integers(1, 6)):
                data[place] = rng.integers(256)
            try:
                images.decode(bytes(data[: rng.integers(1, len(data) + 1)]), name="x")
            except SourceError as error:
                assert error.code.startswith(("IMAGE_", "NOT_AN_IMAGE"))
    assert said == []


def test_arrays_become_pictures():
    assert images.from_array(RAMP).pixels.shape == (16, 16)
    assert images.from_array(RAMP[:, :, None]).pixels.shape == (16, 16)
    assert images.from_array(picture()).pixels.shape == picture().shape
    clear = images.from_array(np.asarray(with_alpha(0)))
    assert (clear.pixels == 255).all() and clear.mode == "RGBA"
    for bad in (RAMP.astype(float), np.zeros((8, 8, 2), np.uint8), np.zeros(9, np.uint8)):
        with pytest.raises(SourceError):
            images.from_array(bad)


def test_the_content_hash_knows_shape_and_channels():
    flat = np.zeros((8, 6, 3), np.uint8)
    hashes = {images.content_hash(p) for p in (flat, flat.reshape(6, 8, 3), flat.reshape(12, 12), flat.reshape(8, 18))}
    assert len(hashes) == 4 and all(len(value) == 16 for value in hashes)
    assert images.content_hash(RAMP) == images.content_hash(RAMP[:, :, None])
    assert images.content_hash(picture()[::-1]) == images.content_hash(picture()[::-1].copy())


@pytest.mark.parametrize("how", images.FITS)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("shape", [(4, 4), (10, 40), (300, 20, 3), (257, 255, 3), (4, 2000, 3)])
def test_fit_gives_the_asked_form(how, channels, shape):
    fitted = images.fit(picture(0, shape), 28, channels, how)
    assert fitted.shape == (28, 28, channels) and fitted.dtype == np.uint8


def test_fit_leaves_a_fitting_picture_alone_and_places_others():
    assert np.array_equal(images.fit(RAMP, 16, 1, "crop")[:, :, 0], RAMP)
    wide = np.zeros((8, 24), np.uint8)
    wide[:, 8:16] = 200
    assert (images.fit(wide, 8, 1, "crop") == 200).all()
    padded = images.fit(np.full((8, 16), 200, np.uint8), 16, 1, "pad")[:, :, 0]
    assert (padded[4:12] == 200).all() and (padded[:4] == 0).all() and (padded[12:] == 0).all()
    with pytest.raises(InvalidSettingError):
        images.fit(RAMP, 16, 1, "squash")


def test_fit_takes_pixels_and_images_alike():
    decoded = images.decode(encoded("JPEG", picture(2, (100, 80, 3))), name="x")
    assert np.array_equal(images.fit(decoded.image, 32, 3, "crop"), images.fit(decoded.pixels, 32, 3, "crop"))


def test_small_thumbnails_are_lossless_and_large_ones_small():
    small = Image.open(io.BytesIO(images.thumbnail(picture(0, (64, 20, 3)))))
    assert small.format == "PNG" and np.array_equal(np.asarray(small), picture(0, (64, 20, 3)))
    large = Image.open(io.BytesIO(images.thumbnail(picture(0, (400, 100, 3)))))
    assert large.format == "JPEG" and large.size == (48, 192)
    middle = Image.open(io.BytesIO(images.thumbnail(picture(0, (100, 90)))))
    assert middle.size == (90, 100) and middle.mode == "L"
    line = Image.open(io.BytesIO(images.thumbnail(np.zeros((4, 5000), np.uint8))))
    assert line.size == (192, 1)


def test_encoded_pixels_decode_to_themselves_and_carry_no_notes():
    for pixels in (RAMP, picture()):
        assert np.array_equal(images.decode(images.encode_png(pixels), name="x").pixels, pixels)
    exif = Image.Exif()
    exif[0x010E] = "secret place"
    decoded = images.decode(saved(Image.fromarray(picture()), "PNG", exif=exif), name="x")
    assert b"secret" not in images.encode_png(decoded.image) + images.thumbnail(decoded.image)


@pytest.mark.parametrize("name", list(CORRUPTIONS))
@pytest.mark.parametrize("shape", [(4, 4), (28, 28), (32, 32, 3), (90, 400, 3)])
def test_a_corruption_keeps_the_form_changes_the_picture_and_repeats(name, shape):
    pixels = picture(5, shape)
    before = pixels.copy()
    corrupted = apply(name, pixels, seed=3)
    assert corrupted.shape == shape and corrupted.dtype == np.uint8
    assert np.array_equal(pixels, before)
    assert np.array_equal(corrupted, apply(name, pixels, seed=3))
    assert not np.array_equal(corrupted, pixels)


def test_there_are_the_five_corruptions_of_the_paper():
    five = ["fog", "gaussian_noise", "low_resolution", "motion_blur", "occlusion"]
    assert of_severity("mild") == five and of_severity("paper") == [f"paper_{name}" for name in five]


def test_the_papers_corruptions_leave_as_little_of_the_picture_as_its_code_does():
    """Means over pieces of a photograph of the correlation with the clean picture."""
    photo = load_sample_images().images[0]
    pieces = [np.asarray(Image.fromarray(photo[:, left : left + 400]).resize((32, 32))) for left in range(0, 240, 12)]

    def correlation(name):
        pairs = [(piece.ravel() / 1.0, apply(name, piece, seed).ravel() / 1.0) for seed, piece in enumerate(pieces)]
        return np.mean([np.corrcoef(*pair)[0, 1] for pair in pairs])

    assert 0.1 < correlation("paper_gaussian_noise") < 0.3 < 0.7 < correlation("gaussian_noise")
    assert correlation("paper_occlusion") < correlation("occlusion") + 0.1
    assert correlation("paper_motion_blur") < correlation("motion_blur")
    assert not apply("paper_fog", pieces[0], 0).any() and correlation("fog") > 0.7


def test_the_papers_occlusion_is_a_black_square_from_pixel_5_to_20():
    pixels = np.full((32, 32, 3), 200, np.uint8)
    black = (apply("paper_occlusion", pixels, 0) == 0).all(axis=2)
    assert black[5:21, 5:21].all() and black.sum() == 16 * 16


def test_the_papers_noise_is_cut_at_one_and_wraps_around_below_zero():
    pixels = np.full((64, 64), 128, np.uint8)
    noise = np.random.default_rng(3).normal(0.2, 1.0, pixels.shape)
    expected = [int(max(-1.0, min(1.0, 128 / 255 + one)) * 255) % 256 for one in noise.ravel()]
    assert apply("paper_gaussian_noise", pixels, seed=3).ravel().tolist() == expected
