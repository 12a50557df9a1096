"""Bad files, archives, manifests and arrays, made in code: one case each, with the error it must give.

A builder gets an empty folder two levels below a directory of the test's own (``<base>/allowed/<case>``), fills it and
returns what a person would ask to import. Things that must not be reached are put into ``<base>/outside``.
``stop`` means that the whole source is refused, ``listed`` that the bad part is listed and ``good.png`` comes through.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from semiprune_core.sources.base import SourceSpec


@dataclass(frozen=True)
class Case:
    name: str
    build: Callable[[Path], SourceSpec]
    code: str
    ending: Literal["stop", "listed"]


CASES: list[Case] = []


def case(code: str, ending: Literal["stop", "listed"]) -> Callable[[Callable[[Path], SourceSpec]], Any]:
    def add(build: Callable[[Path], SourceSpec]) -> Callable[[Path], SourceSpec]:
        CASES.append(Case(build.__name__, build, code, ending))
        return build

    return add


def _add(name: str, code: str, ending: Literal["stop", "listed"], build: Callable[[Path], SourceSpec]) -> None:
    CASES.append(Case(name, build, code, ending))


# ---------------------------------------------------------------------------------------------------- good things


def picture(seed: int = 0, shape: tuple[int, ...] = (12, 16, 3)) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def encoded(kind: str = "PNG", pixels: np.ndarray | None = None, **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(picture() if pixels is None else pixels).save(buffer, kind, **options)
    return buffer.getvalue()


GOOD = encoded()
LARGE = picture(1, (200, 200, 3))


def outside(folder: Path) -> Path:
    """A picture that no import of ``folder`` may reach."""
    secret = folder.parent.parent / "outside" / "secret.png"
    secret.parent.mkdir(exist_ok=True)
    secret.write_bytes(encoded(pixels=picture(99)))
    return secret


# ----------------------------------------------------------------------------------------- single bad image files


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


for _name, (_code, _data) in BAD_FILES.items():
    _add(f"file_{_name}", _code, "listed", _folder_with(_data))


# -------------------------------------------------------------------------------------------------------- folders


def _good_folder(folder: Path) -> SourceSpec:
    (folder / "good.png").write_bytes(GOOD)
    return SourceSpec("folder", str(folder))


@case("NOT_AN_IMAGE", "listed")
def folder_with_other_files(folder: Path) -> SourceSpec:
    (folder / "model.pkl").write_bytes(b"\x80\x04.")
    return _good_folder(folder)


@case("PATH_OUTSIDE_ROOT", "listed")
def folder_with_link_to_a_file_outside(folder: Path) -> SourceSpec:
    (folder / "link.png").symlink_to(outside(folder))
    return _good_folder(folder)


@case("PATH_OUTSIDE_ROOT", "listed")
def folder_with_link_to_a_folder_outside(folder: Path) -> SourceSpec:
    (folder / "cats").symlink_to(outside(folder).parent)
    return _good_folder(folder)


@case("PATH_OUTSIDE_ROOT", "listed")
def folder_with_relative_link_outside(folder: Path) -> SourceSpec:
    outside(folder)
    (folder / "link.png").symlink_to("../../outside/secret.png")
    return _good_folder(folder)


@case("LINKED_FOLDER", "listed")
def folder_that_links_to_itself(folder: Path) -> SourceSpec:
    (folder / "again").symlink_to(folder)
    return _good_folder(folder)


@case("FILE_MISSING", "listed")
def folder_with_link_to_nowhere(folder: Path) -> SourceSpec:
    (folder / "link.png").symlink_to(folder / "gone.png")
    return _good_folder(folder)


@case("FILE_MISSING", "listed")
def folder_with_links_in_a_circle(folder: Path) -> SourceSpec:
    (folder / "a.png").symlink_to(folder / "b.png")
    (folder / "b.png").symlink_to(folder / "a.png")
    return _good_folder(folder)


@case("NOT_A_FILE", "listed")
def folder_with_pipe(folder: Path) -> SourceSpec:
    os.mkfifo(folder / "pipe.png")
    return _good_folder(folder)


@case("NAME_TWIN", "listed")
def folder_with_unicode_twins(folder: Path) -> SourceSpec:
    (folder / "caf\u00e9.png").write_bytes(GOOD)
    (folder / "cafe\u0301.png").write_bytes(GOOD)
    return _good_folder(folder)


@case("NAME_TWIN", "listed")
def folder_with_case_twins(folder: Path) -> SourceSpec:
    (folder / "a.png").write_bytes(GOOD)
    (folder / "A.PNG").write_bytes(GOOD)
    return _good_folder(folder)


@case("NAME_NOT_UTF8", "listed")
def folder_with_name_in_latin_1(folder: Path) -> SourceSpec:
    with open(os.fsencode(folder) + b"/caf\xe9.png", "wb") as file:
        file.write(GOOD)
    return _good_folder(folder)


@case("NAME_UNUSABLE", "listed")
def folder_with_backslash_name(folder: Path) -> SourceSpec:
    (folder / "a\\..\\x.png").write_bytes(GOOD)
    return _good_folder(folder)


@case("FILE_TOO_LARGE", "listed")
def folder_with_file_of_a_terabyte(folder: Path) -> SourceSpec:
    with open(folder / "huge.png", "wb") as file:
        file.truncate(10**12)
    return _good_folder(folder)


@case("FOLDER_MISSING", "stop")
def folder_that_is_not_there(folder: Path) -> SourceSpec:
    return SourceSpec("folder", str(folder / "nothing"))


@case("FOLDER_MISSING", "stop")
def folder_that_is_a_file(folder: Path) -> SourceSpec:
    _good_folder(folder)
    return SourceSpec("folder", str(folder / "good.png"))


@case("PATH_OUTSIDE_ROOT", "stop")
def folder_outside(folder: Path) -> SourceSpec:
    return SourceSpec("folder", str(outside(folder).parent))


@case("PATH_OUTSIDE_ROOT", "stop")
def folder_climbing_outside(folder: Path) -> SourceSpec:
    outside(folder)
    return SourceSpec("folder", str(folder / ".." / ".." / "outside"))


@case("PATH_OUTSIDE_ROOT", "stop")
def folder_behind_a_link(folder: Path) -> SourceSpec:
    (folder / "link").symlink_to(outside(folder).parent)
    return SourceSpec("folder", str(folder / "link"))


@case("PATH_OUTSIDE_ROOT", "stop")
def folder_with_nul(folder: Path) -> SourceSpec:
    return SourceSpec("folder", f"{folder}\0/etc")


@case("URL_NOT_SUPPORTED", "stop")
def folder_as_address(folder: Path) -> SourceSpec:
    return SourceSpec("folder", "http://169.254.169.254/latest/meta-data")


@case("URL_NOT_SUPPORTED", "stop")
def folder_on_a_windows_share(folder: Path) -> SourceSpec:
    return SourceSpec("folder", "\\\\host\\share")


# ----------------------------------------------------------------------------------------------------------- ZIPs


@dataclass
class Packed:
    """One member of :func:`raw_zip`; whatever is given overrides the truth in the directory."""

    name: str | bytes
    data: bytes = GOOD
    method: int = 8
    flags: int = 0
    attributes: int = 0
    size: int | None = None
    compressed: int | None = None
    crc: int | None = None
    offset: int | None = None
    local_magic: bytes = b"PK\3\4"
    local_flags: int | None = None
    packed: bytes | None = None
    extra: bytes = b""
    raw_name: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.raw_name = self.name.encode() if isinstance(self.name, str) else self.name


def raw_zip(*members: Packed, count: int | None = None, shift: int = 0, zip64: bytes = b"", end: bytes = b"") -> bytes:
    """A ZIP written by hand, so that it can lie: about counts, sizes, offsets, names."""
    out, central = bytearray(), bytearray()
    for m in members:
        deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = m.packed or (deflate.compress(m.data) + deflate.flush() if m.method == 8 else m.data)
        crc = zlib.crc32(m.data) if m.crc is None else m.crc
        size = len(m.data) if m.size is None else m.size
        compressed = len(packed) if m.compressed is None else m.compressed
        offset = len(out) if m.offset is None else m.offset
        local_flags = m.flags if m.local_flags is None else m.local_flags
        head = struct.pack("<5H3I2H", 20, local_flags, m.method, 0, 0, crc, compressed, size, len(m.raw_name), 0)
        out += m.local_magic + head + m.raw_name + packed
        fields = (20, 20, m.flags, m.method, 0, 0, crc, compressed, size, len(m.raw_name), len(m.extra), 0, 0, 0)
        central += b"PK\1\2" + struct.pack("<6H3I5H2I", *fields, m.attributes, offset) + m.raw_name + m.extra
    n = len(members) if count is None else count
    tail = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, n, n, len(central), len(out) + shift, 0)
    return bytes(out + central) + zip64 + (end or tail)


def _zip_of(*members: Packed, **lies: Any) -> Callable[[Path], SourceSpec]:
    return _zip_bytes(raw_zip(Packed("good.png"), *members, **lies))


def _zip_bytes(data: bytes) -> Callable[[Path], SourceSpec]:
    def build(folder: Path) -> SourceSpec:
        (folder / "a.zip").write_bytes(data)
        return SourceSpec("zip", str(folder / "a.zip"))

    return build


PLAIN = raw_zip(Packed("good.png"))
ZEROS = zlib.compressobj(9, zlib.DEFLATED, -15)
ZEROS_PACKED = ZEROS.compress(bytes(11_000_000)) + ZEROS.flush()
NESTED = raw_zip(Packed("inner.png"))


def _end64(count: int, length: int, offset: int, record_at: int, rest: int = 44) -> bytes:
    record = struct.pack("<4sQ2H2I4Q", b"PK\6\6", rest, 45, 45, 0, 0, count, count, length, offset)
    return record + struct.pack("<4sIQI", b"PK\6\7", 0, record_at, 1)


def _zip64_lie(**lies: int) -> bytes:
    """PLAIN with a ZIP64 end record that lies."""
    body, end = PLAIN[:-22], PLAIN[-22:]
    length, offset = struct.unpack_from("<2I", end, 12)
    truth = {"count": 1, "length": length, "offset": offset, "record_at": len(body)}
    return body + _end64(**{**truth, **lies}) + end


def _zip64_short() -> bytes:
    body, end = PLAIN[:-22], bytearray(PLAIN[-22:])
    end[12:16] = b"\xff" * 4
    return body + bytes(end)


def _too_many() -> bytes:
    body = PLAIN[:-22]
    length, offset = struct.unpack_from("<2I", PLAIN[-22:], 12)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return body + _end64(3_000_000, length, offset, len(body)) + end


def _overlapping() -> bytes:
    """Two entries of the directory that share one member's bytes, as in CVE-2024-0450."""
    return raw_zip(Packed("good.png"), Packed("again.png", offset=0))


UNSAFE_NAMES = {
    "climbing": "../../x.png",
    "climbing_in_the_middle": "a/../../x.png",
    "absolute": "/etc/x.png",
    "windows_absolute": "C:\\x.png",
    "windows_climbing": "..\\..\\x.png",
    "windows_share": "\\\\host\\share\\x.png",
    "with_nul": "x.png\0.txt",
    "dots_only": "..",
    "empty": "",
}
for _name, _path in UNSAFE_NAMES.items():
    _add(f"zip_name_{_name}", "ZIP_UNSAFE_PATH", "stop", _zip_of(Packed(_path)))

ZIPS: dict[str, tuple[str, Literal["stop", "listed"], Callable[[Path], SourceSpec]]] = {
    "encrypted": ("ZIP_ENCRYPTED", "stop", _zip_of(Packed("a.png", flags=1))),
    "strongly_encrypted": ("ZIP_ENCRYPTED", "stop", _zip_of(Packed("a.png", flags=0x41))),
    "bomb_in_one_member": (
        "ZIP_TOO_LARGE",
        "stop",
        _zip_of(Packed("a.bmp", packed=ZEROS_PACKED, size=11_000_000, crc=0)),
    ),
    "bomb_of_many_members": (
        "ZIP_TOO_LARGE",
        "stop",
        _zip_of(*[Packed(f"{n}.bmp", packed=ZEROS_PACKED[:4000], size=9_000_000, crc=0) for n in range(20)]),
    ),
    "claims_more_than_any_disk": ("ZIP_TOO_LARGE", "stop", _zip_of(Packed("a.png", size=4_000_000_000))),
    "forged_small_size": ("ZIP_TOO_LARGE", "listed", _zip_of(Packed("a.bmp", packed=ZEROS_PACKED, size=1000, crc=0))),
    "forged_large_size": ("ZIP_CORRUPT", "listed", _zip_of(Packed("a.png", size=len(GOOD) + 9))),
    "forged_compressed_size": ("ZIP_CORRUPT", "stop", _zip_of(Packed("a.png", compressed=10**6))),
    "nested": ("ZIP_NESTED", "listed", _zip_of(Packed("more.zip", data=NESTED))),
    "cut_off": ("ZIP_CORRUPT", "stop", _zip_bytes(PLAIN[: len(PLAIN) // 2])),
    "empty_file": ("ZIP_CORRUPT", "stop", _zip_bytes(b"")),
    "html_page": ("ZIP_CORRUPT", "stop", _zip_bytes(b"<html>404</html>")),
    "bytes_before": ("ZIP_CORRUPT", "stop", _zip_bytes(b"MZ" + b"\0" * 50 + PLAIN)),
    "bytes_after": ("ZIP_CORRUPT", "stop", _zip_bytes(PLAIN + b"<script>")),
    "overlapping_members": ("ZIP_CORRUPT", "stop", _zip_bytes(_overlapping())),
    "member_over_the_directory": ("ZIP_CORRUPT", "stop", _zip_of(Packed("a.png", offset=10**7))),
    "directory_elsewhere": ("ZIP_CORRUPT", "stop", _zip_of(shift=7)),
    "count_too_high": ("ZIP_CORRUPT", "stop", _zip_of(count=40)),
    "count_too_low": ("ZIP_CORRUPT", "stop", _zip_of(Packed("a.png"), count=1)),
    "zip64_locator_to_nowhere": ("ZIP_CORRUPT", "stop", _zip_bytes(_zip64_lie(record_at=10**12))),
    "zip64_locator_before_record": ("ZIP_CORRUPT", "stop", _zip_bytes(_zip64_lie(record_at=0))),
    "zip64_contradicts": ("ZIP_CORRUPT", "stop", _zip_bytes(_zip64_lie(count=2))),
    "zip64_record_length": ("ZIP_CORRUPT", "stop", _zip_bytes(_zip64_lie(rest=999))),
    "zip64_record_missing": ("ZIP_CORRUPT", "stop", _zip_bytes(_zip64_short())),
    "zip64_sizes_missing": ("ZIP_CORRUPT", "stop", _zip_of(Packed("a.png", size=0xFFFFFFFF))),
    "too_many_entries": ("ZIP_TOO_MANY_FILES", "stop", _zip_bytes(_too_many())),
    "name_not_utf8": ("ZIP_CORRUPT", "stop", _zip_of(Packed(b"caf\xe9.png", flags=0x800))),
    "wrong_check_sum": ("ZIP_CORRUPT", "listed", _zip_of(Packed("a.png", crc=1))),
    "damaged_deflate": ("ZIP_CORRUPT", "listed", _zip_of(Packed("a.png", packed=b"\xff" * 50))),
    "no_local_header": ("ZIP_CORRUPT", "listed", _zip_of(Packed("a.png", local_magic=b"XXXX"))),
    "encrypted_in_secret": ("ZIP_CORRUPT", "listed", _zip_of(Packed("a.png", local_flags=1))),
    "unknown_method": ("ZIP_METHOD", "listed", _zip_of(Packed("a.png", method=12))),
    "name_twice": ("ZIP_DUPLICATE_NAME", "listed", _zip_of(Packed("a.png"), Packed("a.png", data=encoded("BMP")))),
    "name_twice_by_spelling": ("ZIP_DUPLICATE_NAME", "listed", _zip_of(Packed("x/a.png"), Packed("x\\a.png"))),
    "names_differ_in_case": ("ZIP_DUPLICATE_NAME", "listed", _zip_of(Packed("a.png"), Packed("A.PNG"))),
    "link_member": (
        "ZIP_LINK",
        "listed",
        _zip_of(Packed("link.png", data=b"../../outside/secret.png", attributes=0o120777 << 16)),
    ),
    "html_member": ("NOT_AN_IMAGE", "listed", _zip_of(Packed("a.jpg", data=b"<html></html>"))),
    "text_member": ("NOT_AN_IMAGE", "listed", _zip_of(Packed("readme.txt", data=b"hello"))),
    "truncated_member": ("IMAGE_TRUNCATED", "listed", _zip_of(Packed("a.jpg", data=half("JPEG")))),
    "image_bomb_member": ("IMAGE_TOO_MANY_PIXELS", "listed", _zip_of(Packed("a.png", data=png(20_000, 20_000)))),
}
for _name, (_code, _ending, _build) in ZIPS.items():
    _add(f"zip_{_name}", _code, _ending, _build)


@case("FILE_MISSING", "stop")
def zip_that_is_not_there(folder: Path) -> SourceSpec:
    return SourceSpec("zip", str(folder / "a.zip"))


@case("PATH_OUTSIDE_ROOT", "stop")
def zip_outside(folder: Path) -> SourceSpec:
    secret = outside(folder).with_name("a.zip")
    secret.write_bytes(PLAIN)
    return SourceSpec("zip", str(secret))


# ------------------------------------------------------------------------------------------------------ manifests


def _table(data: bytes, name: str = "m.csv", **options: Any) -> Callable[[Path], SourceSpec]:
    def build(folder: Path) -> SourceSpec:
        (folder / "good.png").write_bytes(GOOD)
        (folder / "sub").mkdir()
        (folder / "link.png").symlink_to(outside(folder))
        (folder / name).write_bytes(data)
        return SourceSpec("manifest", str(folder / name), options)

    return build


def _row(path: str) -> bytes:
    return f'path,label\n"{path}",cat\ngood.png,cat\n'.encode()


BAD_ROWS = {
    "passwd": ("/etc/passwd", "PATH_OUTSIDE_ROOT"),
    "climbing": ("../../outside/secret.png", "PATH_OUTSIDE_ROOT"),
    "climbing_back": ("sub/../../../outside/secret.png", "PATH_OUTSIDE_ROOT"),
    "climbing_backslash": ("..\\..\\outside\\secret.png", "PATH_OUTSIDE_ROOT"),
    "home": ("~/secret.png", "FILE_MISSING"),
    "link": ("link.png", "PATH_OUTSIDE_ROOT"),
    "drive": ("C:\\x.png", "PATH_OUTSIDE_ROOT"),
    "http": ("http://example.com/a.png", "URL_NOT_SUPPORTED"),
    "https": ("HTTPS://example.com/a.png", "URL_NOT_SUPPORTED"),
    "file_address": ("file:///etc/passwd", "URL_NOT_SUPPORTED"),
    "file_short": ("file:/etc/passwd", "URL_NOT_SUPPORTED"),
    "share": ("\\\\host\\share\\a.png", "URL_NOT_SUPPORTED"),
    "share_slashes": ("//host/share/a.png", "URL_NOT_SUPPORTED"),
    "metadata": ("169.254.169.254/latest", "URL_NOT_SUPPORTED"),
    "bucket": ("s3://bucket/a.png", "URL_NOT_SUPPORTED"),
    "data": ("data:image/png;base64,AAAA", "URL_NOT_SUPPORTED"),
    "missing": ("nothing.png", "FILE_MISSING"),
    "a_folder": ("sub", "FILE_MISSING"),
    "itself": ("m.csv", "NOT_AN_IMAGE"),
    "no_path": ("", "ROW_WITHOUT_PATH"),
}
for _name, (_path, _code) in BAD_ROWS.items():
    _add(f"row_{_name}", _code, "listed", _table(_row(_path)))


def _parquet(columns: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


TABLES: dict[str, tuple[str, Literal["stop", "listed"], Callable[[Path], SourceSpec]]] = {
    "row_twice": ("DUPLICATE_ROW", "listed", _table(b"path,label\ngood.png,cat\n./good.png,dog\n")),
    "unknown_split": (
        "SPLIT_UNKNOWN",
        "listed",
        _table(b"path,split\ngood.png,train\nlink2.png,x\n./sub/../m.csv,y\n"),
    ),
    "nul_byte": ("CSV_ENCODING", "stop", _table(b"path\ngood.png\nx\0y.png\n")),
    "mixed_encodings": ("CSV_ENCODING", "stop", _table("path\nü.png\n".encode() + b"caf\xe9.png\n")),
    "half_utf16": ("CSV_ENCODING", "stop", _table("path\ngood.png\n".encode("utf-16")[:-1])),
    "undefined_letters": ("CSV_ENCODING", "stop", _table(b"path\ngood.png\ncaf\x81.png\n")),
    "no_path_column": ("CSV_NO_PATH_COLUMN", "stop", _table(b"name_of_it,label\ngood.png,cat\n")),
    "chosen_column_missing": ("CSV_NO_PATH_COLUMN", "stop", _table(b"path\ngood.png\n", path_column="where")),
    "chosen_label_missing": ("CSV_NO_COLUMN", "stop", _table(b"path\ngood.png\n", label_column="what")),
    "column_twice": ("CSV_NO_PATH_COLUMN", "stop", _table(b"path,path\ngood.png,good.png\n")),
    "empty": ("CSV_EMPTY", "stop", _table(b"")),
    "blank_lines": ("CSV_EMPTY", "stop", _table(b"\n\n\n")),
    "header_only": ("CSV_EMPTY", "stop", _table(b"path,label\n")),
    "huge_cell": ("CSV_CELL_TOO_LARGE", "stop", _table(b"path\ngood.png\n" + b"x" * 10_000_000)),
    "open_quote": ("CSV_CELL_TOO_LARGE", "stop", _table(b'path\ngood.png\n"never' + b"\nclosed" * 30_000)),
    "root_outside": ("PATH_OUTSIDE_ROOT", "stop", _table(b"path\ngood.png\n", root="/")),
    "root_is_address": ("URL_NOT_SUPPORTED", "stop", _table(b"path\ngood.png\n", root="http://x/")),
    "parquet_damaged": ("PARQUET_CORRUPT", "stop", _table(b"PAR1" + b"\1" * 200 + b"PAR1", "m.parquet")),
    "parquet_cut_off": ("PARQUET_CORRUPT", "stop", _table(_parquet({"path": ["good.png"]})[:60], "m.parquet")),
    "parquet_without_path": ("CSV_NO_PATH_COLUMN", "stop", _table(_parquet({"x": [1]}), "m.parquet")),
    "parquet_empty": ("CSV_EMPTY", "stop", _table(_parquet({"path": pa.array([], pa.string())}), "m.parquet")),
    "parquet_address": (
        "URL_NOT_SUPPORTED",
        "listed",
        _table(_parquet({"path": ["good.png", "http://x/y.png"]}), "m.parquet"),
    ),
    "parquet_null": ("ROW_WITHOUT_PATH", "listed", _table(_parquet({"path": ["good.png", None]}), "m.parquet")),
    "pictures_not_paths": ("CSV_ENCODING", "stop", _table(GOOD)),
}
for _name, (_code, _ending, _build) in TABLES.items():
    _add(f"table_{_name}", _code, _ending, _build)


# --------------------------------------------------------------------------------------------------------- arrays

PIXELS = np.stack([picture(n, (8, 8)) for n in range(3)])


def _npz(**columns: Any) -> Callable[[Path], SourceSpec]:
    def build(folder: Path) -> SourceSpec:
        np.savez_compressed(folder / "a.npz", **columns)
        return SourceSpec("npz", str(folder / "a.npz"))

    return build


def _npz_bytes(data: bytes) -> Callable[[Path], SourceSpec]:
    def build(folder: Path) -> SourceSpec:
        (folder / "a.npz").write_bytes(data)
        return SourceSpec("npz", str(folder / "a.npz"))

    return build


def _npy(header: str, body: bytes = b"") -> bytes:
    text = header.encode().ljust(118 - 1) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def _lying_npy(header: str) -> Callable[[Path], SourceSpec]:
    return _npz_bytes(raw_zip(Packed("images.npy", data=_npy(header, bytes(64)))))


HUGE_SHAPE = "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000, 1000, 1000), }"
CODE = "__import__('os').system('touch /tmp/owned')"
NO_LETTERS = np.full(3, 0x7FFFFFFF, np.uint32).view("U1")
GOOD_PATHS = ["good.png", "b.png", "c.png"]
ARRAYS: dict[str, tuple[str, Literal["stop", "listed"], Callable[[Path], SourceSpec]]] = {
    "objects": ("NPZ_CORRUPT", "stop", _npz(images=np.array([{}, 1], dtype=object))),
    "object_labels": ("NPZ_CORRUPT", "stop", _npz(images=PIXELS, labels=np.array(["a", None, 3], dtype=object))),
    "floats": ("NPZ_TYPE", "stop", _npz(images=PIXELS / 255)),
    "channels_first": ("NPZ_SHAPE", "stop", _npz(images=np.zeros((2, 3, 8, 8), np.uint8))),
    "five_dimensions": ("NPZ_SHAPE", "stop", _npz(images=np.zeros((2, 2, 8, 8, 3), np.uint8))),
    "one_dimension": ("NPZ_SHAPE", "stop", _npz(images=np.zeros(9, np.uint8))),
    "no_images": ("NPZ_NO_IMAGES", "stop", _npz(pictures=PIXELS)),
    "zero_images": ("SOURCE_EMPTY", "stop", _npz(images=PIXELS[:0])),
    "labels_too_few": ("NPZ_LENGTHS", "stop", _npz(images=PIXELS, labels=np.arange(2))),
    "labels_of_floats": ("NPZ_TYPE", "stop", _npz(images=PIXELS, labels=np.zeros(3))),
    "labels_without_name": ("NPZ_LABELS", "stop", _npz(images=PIXELS, labels=[0, 1, 7], class_names=["a", "b"])),
    "labels_negative": ("NPZ_LABELS", "stop", _npz(images=PIXELS, labels=[0, 1, -9], class_names=["a", "b"])),
    "labels_enormous": ("NPZ_LABELS", "stop", _npz(images=PIXELS, labels=[0, 1, 2**60])),
    "class_names_twice": ("NPZ_LABELS", "stop", _npz(images=PIXELS, labels=[0, 1, 1], class_names=["a", "a"])),
    "not_a_zip": ("ZIP_CORRUPT", "stop", _npz_bytes(b"\x93NUMPY\x01\x00")),
    "bomb": ("ZIP_TOO_LARGE", "stop", _npz(images=np.zeros((2000, 80, 80), np.uint8))),
    "shape_larger_than_file": ("NPZ_CORRUPT", "stop", _lying_npy(HUGE_SHAPE)),
    "code_in_header": ("NPZ_CORRUPT", "stop", _lying_npy(CODE)),
    "header_cut_off": ("NPZ_CORRUPT", "stop", _npz_bytes(raw_zip(Packed("images.npy", data=b"\x93NUMPY\x01")))),
    "climbing_member": ("ZIP_UNSAFE_PATH", "stop", _npz_bytes(raw_zip(Packed("../images.npy", data=b"x")))),
    "images_twice": (
        "NPZ_CORRUPT",
        "stop",
        _npz_bytes(
            raw_zip(
                *[Packed("images.npy", data=_npy(HUGE_SHAPE.replace("1000000, 1000, 1000", "1, 8, 8"), bytes(64)))] * 2
            )
        ),
    ),
    "letters_beyond_unicode": ("NPZ_CORRUPT", "stop", _npz(images=PIXELS, labels=NO_LETTERS)),
    "half_letters_in_path": (
        "PATH_OUTSIDE_ROOT",
        "listed",
        _npz(images=PIXELS, paths=["good.png", "\ud800.png", "c.png"]),
    ),
    "climbing_path": ("PATH_OUTSIDE_ROOT", "listed", _npz(images=PIXELS, paths=["good.png", "../b.png", "/c.png"])),
    "path_twice": ("DUPLICATE_ROW", "listed", _npz(images=PIXELS, paths=["good.png", "b.png", "./b.png"])),
    "unknown_split": ("SPLIT_UNKNOWN", "listed", _npz(images=PIXELS, paths=GOOD_PATHS, split=["pool", "test", "x"])),
    "tiny_images": ("IMAGE_TOO_SMALL", "listed", _npz(images=np.zeros((3, 2, 2), np.uint8))),
}
for _name, (_code, _ending, _build) in ARRAYS.items():
    _add(f"npz_{_name}", _code, _ending, _build)


# -------------------------------------------------------------------------------------------------------- uploads


def _upload(index: bytes | None) -> Callable[[Path], SourceSpec]:
    def build(folder: Path) -> SourceSpec:
        (folder / "files").mkdir()
        (folder / "files" / "0").write_bytes(GOOD)
        (folder / "files" / "1").write_bytes(b"<html></html>")
        if index is not None:
            (folder / "index.jsonl").write_bytes(index)
        return SourceSpec("uploads", str(folder))

    return build


FIRST = b'{"file": "0", "name": "good.png", "bytes": 1}\n'
UPLOADS: dict[str, tuple[str, Literal["stop", "listed"], bytes | None]] = {
    "without_index": ("UPLOAD_EMPTY", "stop", None),
    "damaged_index": ("UPLOAD_DAMAGED", "stop", b"not json\n"),
    "climbing_name": ("UPLOAD_DAMAGED", "stop", FIRST + b'{"file": "1", "name": "../x.png"}\n'),
    "climbing_file": ("UPLOAD_DAMAGED", "stop", FIRST + b'{"file": "../../x", "name": "x.png"}\n'),
    "half_letter": ("UPLOAD_DAMAGED", "stop", FIRST + b'{"file": "1", "name": "\\ud800.png"}\n'),
    "html": ("NOT_AN_IMAGE", "listed", FIRST + b'{"file": "1", "name": "x.png"}\n'),
    "program": ("NOT_AN_IMAGE", "listed", FIRST + b'{"file": "1", "name": "x.exe"}\n'),
    "lost_file": ("FILE_MISSING", "listed", FIRST + b'{"file": "7", "name": "x.png"}\n'),
}
for _name, (_code, _ending, _index) in UPLOADS.items():
    _add(f"upload_{_name}", _code, _ending, _upload(_index))
