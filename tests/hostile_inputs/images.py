"""Single bad image files, each in a folder beside a good one."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from semiprune_core.importing.sources.base import SourceSpec
from tests.hostile_inputs.cases import GOOD, Case, encoded, picture

LARGE = picture(1, (200, 200, 3))


def png_chunk(kind: bytes, body: bytes, crc: int | None = None) -> bytes:
    return (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body) if crc is None else crc)
    )


def png(width: int, height: int, *chunks: bytes, crc: int | None = None) -> bytes:
    """A PNG that claims any size; the pixels are a few bytes at most."""
    header = png_chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0), crc)
    data = png_chunk(b"IDAT", zlib.compress(b"\0" * 64))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + data + png_chunk(b"IEND", b"")


def jpeg_claiming(width: int, height: int) -> bytes:
    data = bytearray(encoded("JPEG"))
    place = data.index(b"\xff\xc0")
    data[place + 5 : place + 9] = struct.pack(">2H", height, width)
    return bytes(data)


def bmp_claiming(width: int, height: int) -> bytes:
    data = bytearray(encoded("BMP"))
    data[18:26] = struct.pack("<2i", width, height)
    return bytes(data)


def gif_claiming(width: int, height: int) -> bytes:
    data = bytearray(encoded("GIF"))
    data[6:10] = struct.pack("<2H", width, height)
    return bytes(data)


def ppm_claiming(width: int, height: int) -> bytes:
    return f"P6 {width} {height} 255\n".encode() + b"\0" * 30


def webp_claiming(width: int, height: int) -> bytes:
    body = b"VP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + (width - 1).to_bytes(3, "little")
    body += (height - 1).to_bytes(3, "little") + encoded("WEBP")[12:]
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def half(kind: str, **options: Any) -> bytes:
    data = encoded(kind, LARGE, **options)
    return data[: len(data) // 2]


def damaged_png() -> bytes:
    data = bytearray(encoded("PNG", LARGE))
    data[200:400] = b"\xaa" * 200
    return bytes(data)


TEXT_BOMB = png_chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"x" * 3_000_000, 9))
BAD_FILES: dict[str, tuple[str, bytes]] = {
    # THREATS 4: more pixels than anyone should decode
    "png_of_400_megapixels": ("IMAGE_TOO_MANY_PIXELS", png(20_000, 20_000)),
    "png_of_64_megapixels": ("IMAGE_TOO_MANY_PIXELS", png(8_000, 8_000)),
    "png_of_100_megapixels": ("IMAGE_TOO_MANY_PIXELS", png(10_000, 10_000)),
    "png_of_the_largest_size": ("IMAGE_TOO_MANY_PIXELS", png(2**31 - 1, 2**31 - 1)),
    "png_of_one_endless_line": ("IMAGE_TOO_MANY_PIXELS", png(100_000_000, 4)),
    "jpeg_of_65500_squared": ("IMAGE_TOO_MANY_PIXELS", jpeg_claiming(65_500, 65_500)),
    "bmp_of_30000_squared": ("IMAGE_TOO_MANY_PIXELS", bmp_claiming(30_000, 30_000)),
    "gif_of_65535_squared": ("IMAGE_TOO_MANY_PIXELS", gif_claiming(65_535, 65_535)),
    "ppm_of_50000_squared": ("IMAGE_TOO_MANY_PIXELS", ppm_claiming(50_000, 50_000)),
    "webp_of_16383_squared": ("IMAGE_TOO_MANY_PIXELS", webp_claiming(16_383, 16_383)),
    # 5: cut off
    "truncated_jpeg": ("IMAGE_TRUNCATED", half("JPEG")),
    "truncated_progressive_jpeg": ("IMAGE_TRUNCATED", half("JPEG", progressive=True)),
    "truncated_png": ("IMAGE_TRUNCATED", half("PNG")),
    "truncated_bmp": ("IMAGE_TRUNCATED", half("BMP")),
    "truncated_ppm": ("IMAGE_TRUNCATED", half("PPM")),
    "truncated_gif": ("IMAGE_TRUNCATED", half("GIF")),
    "truncated_tiff": ("IMAGE_TRUNCATED", half("TIFF")),
    "truncated_webp": ("IMAGE_DAMAGED", half("WEBP")),
    # 6: something else under an image's name
    "html_page": ("NOT_AN_IMAGE", b"<!DOCTYPE html><html><script>alert(1)</script></html>"),
    "svg_drawing": ("NOT_AN_IMAGE", b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'),
    "svg_behind_xml": ("NOT_AN_IMAGE", b'<?xml version="1.0"?><svg/>'),
    "windows_program": ("NOT_AN_IMAGE", b"MZ\x90\0" + b"\1" * 100),
    "linux_program": ("NOT_AN_IMAGE", b"\x7fELF" + b"\1" * 100),
    "shell_script": ("NOT_AN_IMAGE", b"#!/bin/sh\nrm -rf /\n"),
    "pdf_document": ("NOT_AN_IMAGE", b"%PDF-1.7\n"),
    "postscript": ("NOT_AN_IMAGE", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"),
    "fits_file": ("NOT_AN_IMAGE", b"SIMPLE  =                    T" + b" " * 3000),
    "photoshop_file": ("NOT_AN_IMAGE", b"8BPS\0\1" + b"\0" * 40),
    "python_pickle": ("NOT_AN_IMAGE", b"\x80\x04\x95\x10" + b"\0" * 20),
    "zip_as_image": ("NOT_AN_IMAGE", b"PK\3\4" + b"\0" * 60),
    "heic_photo": ("NOT_AN_IMAGE", b"\0\0\0\x18ftypheic" + b"\0" * 60),
    "json_text": ("NOT_AN_IMAGE", b'{"error": "not found"}'),
    "plain_text": ("NOT_AN_IMAGE", b"404 not found"),
    "git_lfs_pointer": ("NOT_AN_IMAGE", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"),
    "empty_file": ("NOT_AN_IMAGE", b""),
    "zero_bytes": ("NOT_AN_IMAGE", b"\0" * 500),
    "random_bytes": ("NOT_AN_IMAGE", np.random.default_rng(3).bytes(5000)),
    # damage inside
    "jpeg_of_three_bytes": ("IMAGE_DAMAGED", b"\xff\xd8\xff"),
    "png_signature_alone": ("IMAGE_DAMAGED", b"\x89PNG\r\n\x1a\n"),
    "png_with_wrong_check_sum": ("IMAGE_DAMAGED", png(16, 16, crc=1)),
    "png_with_damaged_pixels": ("IMAGE_DAMAGED", damaged_png()),
    "png_with_text_bomb": ("IMAGE_DAMAGED", png(16, 16, TEXT_BOMB)),
    "tiff_header_alone": ("IMAGE_DAMAGED", b"II*\0\x08\0\0\0"),
    "tiff_directory_loop": ("IMAGE_DAMAGED", b"II*\0\x08\0\0\0" + struct.pack("<H", 0) + struct.pack("<I", 8)),
    "gif_header_alone": ("IMAGE_DAMAGED", b"GIF89a\x10\0\x10\0\0\0\0"),
    "bmp_header_alone": ("IMAGE_DAMAGED", b"BM" + b"\0" * 20),
    # 18: too small, or in no colour mode we know
    "one_pixel": ("IMAGE_TOO_SMALL", encoded(pixels=picture(0, (1, 1, 3)))),
    "three_pixels_high": ("IMAGE_TOO_SMALL", encoded(pixels=picture(0, (3, 200, 3)))),
}


def _lab_tiff() -> bytes:
    buffer = io.BytesIO()
    Image.new("LAB", (16, 16)).save(buffer, "TIFF")
    return buffer.getvalue()


BAD_FILES["lab_colours"] = ("IMAGE_MODE_UNSUPPORTED", _lab_tiff())


def _folder_with(data: bytes) -> Callable[[Path], SourceSpec]:
    def build(folder: Path) -> SourceSpec:
        (folder / "good.png").write_bytes(GOOD)
        (folder / "bad.jpg").write_bytes(data)
        return SourceSpec("folder", str(folder))

    return build


CASES = [Case(f"file_{name}", _folder_with(data), code, "listed") for name, (code, data) in BAD_FILES.items()]
