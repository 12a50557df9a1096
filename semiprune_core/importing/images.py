"""The one place that decodes images, and what is made of them: hashes, training images, thumbnails.

How a picture becomes pixels is stated here and recorded per image (``Decoded.converted``):

    EXIF orientation   applied
    alpha              composited on white (palette and colour-key transparency too); an opaque one is just dropped
    palette, CMYK, YCbCr   to RGB
    1-bit              to grey, 0 and 255
    16-bit             the upper eight bits (division by 256)
    32-bit and float   stretched from their own smallest to their own largest value, 0 to 255; NaN is black
    several frames     the first one

The content hash is taken over the pixels as decoded. A grey picture and an RGB copy of it differ in their channel
count and are two contents.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import io
import re
import struct
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from semiprune_core.checks import check_choice
from semiprune_core.errors import SourceError
from semiprune_core.paths import shown

FORMATS: tuple[str, ...] = ("JPEG", "PNG", "WEBP", "BMP", "DIB", "GIF", "TIFF", "PPM", "AVIF")
HEIF_PACKAGE = "pillow_heif"
"""Decodes what iPhones write; used where it is installed."""
if importlib.util.find_spec(HEIF_PACKAGE) is not None:
    importlib.import_module(HEIF_PACKAGE).register_heif_opener(thumbnails=False)
    FORMATS += ("HEIF",)
MAX_PIXELS = 50_000_000
JPEG_PIXELS = 120_000_000
"""Phones write JPEGs of 108 megapixels; a JPEG cannot claim as much for as few bytes as other formats can."""
Image.MAX_IMAGE_PIXELS = JPEG_PIXELS  # Pillow's own check, before ours
LARGE_PIXELS = 25_000_000
"""Pictures above this size are decoded one at a time, so that a few small files cannot fill the memory together."""
PART_PIXELS = 1 << 20
MIN_SIDE = 4
CRISP_SIDE = 64
"""Thumbnails of images up to this long side are lossless, so that small pictures stay crisp."""
JPEG_QUALITY = 80
REDUCING_GAP = 2.0
FITS = ("crop", "pad", "stretch")
GREY_MODES = ("1", "L", "LA", "La", "I", "F")

# What Pillow's decoders raise on damaged bytes. Mutating files of every format brings up OSError, ValueError,
# SyntaxError and IndexError; the others stand in the parsers of its TIFF, PNG and EXIF code for rarer damage.
DAMAGE = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    AssertionError,
    ArithmeticError,
    EOFError,
    RuntimeError,
    struct.error,
    zlib.error,
)
ORIENTATION = 0x0112
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
MAGIC = (
    (b"%PDF", "a PDF document"),
    (b"MZ", "a Windows program"),
    (b"\x7fELF", "a Linux program"),
    (b"#!", "a script"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"PK\x05\x06", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"%!PS", "a PostScript file"),
    (b"\xc5\xd0\xd3\xc6", "a PostScript file"),
    (b"8BPS", "a Photoshop file"),
    (b"\x00\x00\x01\x00", "a Windows icon"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x80\x04\x95", "a Python pickle"),
    (b"SIMPLE  =", "a FITS file"),
    (b"OggS", "an Ogg file"),
    (b"ID3", "an MP3 file"),
    (b"{", "a JSON file"),
)
IMAGE_MAGIC = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"BM", "BMP"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"P4", "PPM"),
    (b"P5", "PPM"),
    (b"P6", "PPM"),
)
HEIF_BRANDS = (b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1")
AVIF_BRANDS = (b"avif", b"avis")
_quiet_lock = threading.Lock()  # the interpreter's warning filters are one for all threads


@dataclass(frozen=True, eq=False)
class Decoded:
    """One picture. ``mode`` and ``format`` are as in the file, ``converted`` says in words what had to be changed."""

    image: Image.Image
    """Mode RGB or L, loaded; what :func:`fit` and :func:`thumbnail` take fastest."""
    mode: str
    format: str
    converted: str | None = None

    @cached_property
    def pixels(self) -> np.ndarray:
        """(H, W, 3) uint8 RGB, or (H, W) uint8 for pictures that are grey in their file. Read-only."""
        pixels = _pixels(self.image)
        pixels.setflags(write=False)
        return pixels


def decode(
    data: bytes, *, name: str, least_side: int | None = None, before_large: Callable[[], None] = lambda: None
) -> Decoded:
    """Decode one image file; ``name`` is for messages. Every way to fail is a :class:`SourceError` with a code.

    With ``least_side`` a JPEG may come at a half, a quarter or an eighth of its size, its sides no shorter than that:
    many times as fast for large photographs that will be made small anyway. ``before_large`` is called before memory is
    taken for a picture of more than :data:`LARGE_PIXELS`.
    """
    with _quiet(), _named(data, name):
        image: Image.Image = Image.open(io.BytesIO(data), formats=FORMATS)
        mode, kind, size = image.mode, str(image.format), image.size
        _check_size(size, name, JPEG_PIXELS if kind == "JPEG" else MAX_PIXELS)
        changes = []
        if kind != "JPEG" and getattr(image, "is_animated", False):
            changes.append("first frame of several")
        if mode in ("RGB", "RGBA", "LA") and ";16" in _raw_mode(image):
            changes.append("16 to 8 bits")
        if least_side is not None and kind == "JPEG":
            image.draft(None, (least_side, least_side))
        if image.width * image.height > LARGE_PIXELS:
            before_large()
        turned_by_pillow = kind == "TIFF" and image.getexif().get(ORIENTATION, 1) in TURNS
        image.load()
        if image.mode != "RGB" or "transparency" in image.info:
            image, words = _to_grey_or_rgb(image, name)
            changes += words
        if turned_by_pillow:
            changes.append("EXIF rotated")
        elif kind != "TIFF" and (turn := _orientation(image)) is not None:
            image = image.transpose(turn)
            changes.append("EXIF rotated")
        image.info = {}  # the file's own notes (transparency, profiles, comments) go no further
    return Decoded(image, mode, kind, "; ".join(changes) or None)


def header(data: bytes, *, name: str) -> tuple[tuple[int, int], bool]:
    """Width and height of an image file as it stands in it, and whether it is grey; its pixels are not decoded."""
    with _quiet(), _named(data, name):
        image: Image.Image = Image.open(io.BytesIO(data), formats=FORMATS)
        return image.size, image.mode in GREY_MODES or image.mode.startswith("I;16")


def from_array(array: np.ndarray, *, name: str = "array") -> Decoded:
    """A picture from a uint8 array (H, W), (H, W, 1), (H, W, 3) or (H, W, 4); the fourth channel is alpha."""
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)):
        raise SourceError(
            f"{shown(name)} has type {array.dtype} and shape {array.shape}. "
            "An image must be uint8 of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4).",
            code="ARRAY_SHAPE",
        )
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    _check_size((array.shape[1], array.shape[0]), name)
    image = Image.fromarray(np.ascontiguousarray(array))
    if image.mode in ("L", "RGB"):
        return Decoded(image, image.mode, "array")
    flat, words = _to_grey_or_rgb(image, name)
    return Decoded(flat, image.mode, "array", "; ".join(words) or None)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Pillow's warnings stay inside; the one about decompression bombs is an error."""
    with _quiet_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield


@contextlib.contextmanager
def _named(data: bytes, name: str) -> Iterator[None]:
    """Give whatever a decoder raises on hostile bytes its name."""
    try:
        yield
    except SourceError:
        raise
    except UnidentifiedImageError as error:
        raise _not_an_image(data, name) from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        claimed = re.search(r"\d+", str(error))
        raise _too_many_pixels(name, int(claimed[0]) if claimed else 2 * MAX_PIXELS) from error
    except MemoryError as error:
        raise SourceError(
            f"{shown(name)} needs more memory to decode than is available. Make it smaller, or leave it out.",
            code="IMAGE_TOO_MANY_PIXELS",
        ) from error
    except DAMAGE as error:
        if isinstance(error, EOFError) or "truncated" in str(error).lower():
            raise SourceError(
                f"{shown(name)} ends too early, after {len(data)} bytes. Copy it again from the original.",
                code="IMAGE_TRUNCATED",
            ) from error
        raise _damaged(name, str(error)) from error


def _damaged(name: str, reason: str) -> SourceError:
    return SourceError(
        f"{shown(name)} is damaged and cannot be decoded ({shown(reason, 80) or 'no reason given'}). "
        "Replace it, or leave it out.",
        code="IMAGE_DAMAGED",
    )


def _too_many_pixels(name: str, pixels: int, most: int = MAX_PIXELS) -> SourceError:
    return SourceError(
        f"{shown(name)} has {pixels / 1e6:.1f} megapixels, more than the {most / 1e6:g} allowed. Make it smaller.",
        code="IMAGE_TOO_MANY_PIXELS",
    )


def _check_size(size: tuple[int, int], name: str, most: int = MAX_PIXELS) -> None:
    width, height = size
    if width * height > most:
        raise _too_many_pixels(name, width * height, most)
    if min(width, height) < MIN_SIDE:
        raise SourceError(
            f"{shown(name)} is {width} x {height} pixels; each side needs at least {MIN_SIDE}. Leave it out.",
            code="IMAGE_TOO_SMALL",
        )


def kind_of(data: bytes) -> str:
    """What bytes look like that are not one of our image formats, in words."""
    head = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not data:
        return "an empty file"
    if not data.strip(b"\0"):
        return "a file that contains only zero bytes"
    if head.startswith((b"<!doctype html", b"<html", b"<head", b"<body", b"<script")):
        return "an HTML page"
    if b"<svg" in head:
        return "an SVG drawing"
    if head.startswith((b"<?xml", b"<")):
        return "an XML or HTML file"
    if data[4:8] == b"ftyp" and data[8:12] in HEIF_BRANDS:
        return "a HEIC photograph (pip install pillow-heif lets them be read)"
    if data[4:8] == b"ftyp":
        return "a video file"
    if data[:4] == b"RIFF":
        return "a WAV or AVI file"
    for start, words in MAGIC:
        if data.startswith(start):
            return words
    if data.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer (fetch the file with `git lfs pull`)"
    if all(32 <= byte < 127 or byte in (9, 10, 13) for byte in data[:256]):
        return "a text file"
    return "a file of unknown type"


def _not_an_image(data: bytes, name: str) -> SourceError:
    for start, kind in IMAGE_MAGIC:
        if data.startswith(start):
            return _damaged(name, f"it starts like {kind}, but its header is invalid")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _damaged(name, "it starts like WEBP, but its header is invalid")
    if data[4:8] == b"ftyp" and (data[8:12] in AVIF_BRANDS or (data[8:12] in HEIF_BRANDS and "HEIF" in FORMATS)):
        return _damaged(name, "it starts like AVIF or HEIC, but its header is invalid")
    return SourceError(
        f"{shown(name)} is not an image but {kind_of(data)}. Supported: JPEG, PNG, WebP, AVIF, BMP, GIF, TIFF and PPM.",
        code="NOT_AN_IMAGE",
    )


def _raw_mode(image: Image.Image) -> str:
    """How the pixels lie in the file, such as "RGB;16B"."""
    tiles = getattr(image, "tile", None)
    args = tiles[0].args if tiles else ""
    return str(args[0]) if isinstance(args, tuple) and args else str(args)


def _orientation(image: Image.Image) -> Image.Transpose | None:
    """How EXIF says the picture must be turned; a damaged EXIF block says nothing."""
    if "exif" not in image.info:
        return None
    try:
        return TURNS.get(image.getexif().get(ORIENTATION, 1))
    except DAMAGE:
        return None


def _to_grey_or_rgb(image: Image.Image, name: str) -> tuple[Image.Image, list[str]]:
    """The picture in mode L or RGB, and what was done to it."""
    mode, changes, info = image.mode, [], image.info
    if mode.startswith("I;16"):
        image, changes = _grey(image, lambda part: (_numbers(part) >> 8).clip(0, 255)), ["16 to 8 bits"]
    elif mode in ("I", "F"):
        image = _stretched(image)
        changes = [f"{'32-bit' if mode == 'I' else 'float'} stretched to 8 bits"]
    elif mode == "1":
        image, changes = image.convert("L"), ["1-bit to grey"]
    elif "transparency" in info or mode in ("LA", "La", "PA", "RGBA", "RGBa"):
        if mode in ("P", "PA"):
            changes.append("palette to RGB")
        with_alpha = "LA" if mode in ("L", "LA", "La") else "RGBA"
        image = image if mode == with_alpha else image.convert(with_alpha)
        image, was_clear = _on_white(image)
        changes += ["alpha on white"] if was_clear else []
    elif mode == "P":
        image, changes = image.convert("RGB"), ["palette to RGB"]
    elif mode in ("CMYK", "YCbCr", "HSV", "RGBX"):
        image, changes = image.convert("RGB"), [f"{mode} to RGB"]
    elif mode not in ("L", "RGB"):
        raise SourceError(
            f"{shown(name)} has the colour mode {mode}, which is not supported. Save it as RGB.",
            code="IMAGE_MODE_UNSUPPORTED",
        )
    image.info = info
    return image, changes


def _on_white(image: Image.Image) -> tuple[Image.Image, bool]:
    """An LA or RGBA picture on white paper, and whether any of the paper shows."""
    if image.getextrema()[-1] == (255, 255):
        return image.convert(image.mode[:-1]), False
    paper = Image.new(image.mode[:-1], image.size, "white")
    for top, part in _parts(image):
        paper.paste(part.convert(paper.mode), (0, top), part.getchannel("A"))
    return paper, True


def _parts(image: Image.Image) -> Iterator[tuple[int, Image.Image]]:
    """The picture in strips of about a million pixels with their upper edges: what is made of one stays small."""
    width, height = image.size
    step = max(1, PART_PIXELS // width)
    for top in range(0, height, step):
        yield top, image.crop((0, top, width, min(top + step, height)))


def _pixels(image: Image.Image) -> np.ndarray:
    """(H, W) or (H, W, 3) uint8; of a large picture strip by strip, as Pillow would hold all of it twice on the way."""
    if image.width * image.height <= LARGE_PIXELS:
        return np.asarray(image)
    channels = () if image.mode == "L" else (3,)
    pixels = np.empty((image.height, image.width, *channels), dtype=np.uint8)
    for top, part in _parts(image):
        pixels[top : top + part.height] = np.asarray(part)
    return pixels


def _grey(image: Image.Image, numbers: Callable[[Image.Image], np.ndarray]) -> Image.Image:
    """A grey picture of what ``numbers`` makes of each strip."""
    grey = np.empty((image.height, image.width), dtype=np.uint8)
    for top, part in _parts(image):
        grey[top : top + part.height] = numbers(part)
    return Image.fromarray(grey)


def _numbers(part: Image.Image) -> np.ndarray:
    return np.asarray(part if part.mode in ("I;16", "I", "F") else part.convert("I"))


def _stretched(image: Image.Image) -> Image.Image:
    """Numbers to grey, smallest finite one to 0, largest to 255; constant pictures and NaN to 0."""
    low, high = np.inf, -np.inf
    for _, part in _parts(image):
        values = _numbers(part).astype(np.float64)
        finite = values[np.isfinite(values)]
        if len(finite):
            low, high = min(low, finite.min()), max(high, finite.max())

    def stretch(part: Image.Image) -> np.ndarray:
        values = np.nan_to_num(_numbers(part).astype(np.float64), nan=low, posinf=high, neginf=low)
        # Halved first: the difference of two floats near the largest one would overflow.
        return np.rint((values / 2 - low / 2) / (high / 2 - low / 2) * 255)

    return _grey(image, stretch if high > low else lambda part: np.zeros((part.height, part.width)))


def content_hash(pixels: np.ndarray) -> bytes:
    """16 bytes that name a picture's content: SHA-256, cut, over its shape and pixels. (H, W) and (H, W, 1) agree."""
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    digest = hashlib.sha256(struct.pack("<3I", pixels.shape[0], pixels.shape[1], channels))
    digest.update(np.ascontiguousarray(pixels).data)
    return digest.digest()[:16]


def _as_image(picture: np.ndarray | Image.Image) -> Image.Image:
    if isinstance(picture, Image.Image):
        return picture
    if picture.ndim == 3 and picture.shape[2] == 1:
        picture = picture[:, :, 0]
    return Image.fromarray(picture)


def fit(
    picture: np.ndarray | Image.Image, size: int, channels: int, how: str, *, reducing_gap: float | None = REDUCING_GAP
) -> np.ndarray:
    """The training image (size, size, channels) uint8 of pixels (H, W[, 3]) or of ``Decoded.image``, which is faster.

    ``crop`` takes the middle square, ``pad`` adds black bars, ``stretch`` changes the proportions. Bilinear with
    antialiasing; large pictures are box-reduced first as far as ``reducing_gap`` allows, never where that is None.
    """
    check_choice("fit", how, FITS)
    image = _as_image(picture)
    width, height = image.size
    if how == "pad" and width != height:
        scale = size / max(width, height)
        inner = (max(1, round(width * scale)), max(1, round(height * scale)))
        small = Image.new(image.mode, (size, size))
        resized = image.resize(inner, Image.Resampling.BILINEAR, reducing_gap=reducing_gap)
        small.paste(resized, ((size - inner[0]) // 2, (size - inner[1]) // 2))
    else:
        side = min(width, height)
        left, top = (width - side) / 2, (height - side) / 2
        box = (left, top, left + side, top + side) if how == "crop" else None
        small = image.resize((size, size), Image.Resampling.BILINEAR, box=box, reducing_gap=reducing_gap)
    wanted = "L" if channels == 1 else "RGB"
    if small.mode != wanted:
        small = small.convert(wanted)
    return np.asarray(small).reshape(size, size, channels)


def thumbnail(picture: np.ndarray | Image.Image, long_side: int = 192) -> bytes:
    """An encoded small view: PNG for images up to 64 pixels, which stay as they are, JPEG for larger ones."""
    image = _as_image(picture)
    longest = max(image.size)
    if longest <= min(CRISP_SIDE, long_side):
        return _encoded(image, "PNG", compress_level=1)
    if longest > long_side:
        size = (max(1, round(image.width * long_side / longest)), max(1, round(image.height * long_side / longest)))
        image = image.resize(size, Image.Resampling.BILINEAR, reducing_gap=REDUCING_GAP)
    return _encoded(image, "JPEG", quality=JPEG_QUALITY)


def encode_png(picture: np.ndarray | Image.Image) -> bytes:
    """A lossless file of the pixels, for originals that came as arrays."""
    return _encoded(_as_image(picture), "PNG", compress_level=1)


def _encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()
