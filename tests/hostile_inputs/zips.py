"""ZIPs that lie, overlap, climb or explode, written by hand."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from semiprune_core.importing.sources.base import SourceSpec
from tests.hostile_inputs.cases import GOOD, Case, Ending, adding_to, encoded, outside
from tests.hostile_inputs.images import half, png

CASES: list[Case] = []
case = adding_to(CASES)


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


def end64(count: int, length: int, offset: int, record_at: int, rest: int = 44) -> bytes:
    record = struct.pack("<4sQ2H2I4Q", b"PK\6\6", rest, 45, 45, 0, 0, count, count, length, offset)
    return record + struct.pack("<4sIQI", b"PK\6\7", 0, record_at, 1)


def _zip64_lie(**lies: int) -> bytes:
    """PLAIN with a ZIP64 end record that lies."""
    body, end = PLAIN[:-22], PLAIN[-22:]
    length, offset = struct.unpack_from("<2I", end, 12)
    truth = {"count": 1, "length": length, "offset": offset, "record_at": len(body)}
    return body + end64(**{**truth, **lies}) + end


def _zip64_short() -> bytes:
    body, end = PLAIN[:-22], bytearray(PLAIN[-22:])
    end[12:16] = b"\xff" * 4
    return body + bytes(end)


def _too_many() -> bytes:
    body = PLAIN[:-22]
    length, offset = struct.unpack_from("<2I", PLAIN[-22:], 12)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return body + end64(3_000_000, length, offset, len(body)) + end


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
CASES += [
    Case(f"zip_name_{name}", _zip_of(Packed(path)), "ZIP_UNSAFE_PATH", "stop") for name, path in UNSAFE_NAMES.items()
]

ZIPS: dict[str, tuple[str, Ending, Callable[[Path], SourceSpec]]] = {
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
    "zip64_offset_beyond_everything": (
        "ZIP_CORRUPT",
        "stop",
        _zip_of(Packed("a.png", offset=0xFFFFFFFF, extra=struct.pack("<2HQ", 1, 8, 2**64 - 1))),
    ),
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
CASES += [Case(f"zip_{name}", build, code, ending) for name, (code, ending, build) in ZIPS.items()]


@case("FILE_MISSING", "stop")
def zip_that_is_not_there(folder: Path) -> SourceSpec:
    return SourceSpec("zip", str(folder / "a.zip"))


@case("PATH_OUTSIDE_ROOT", "stop")
def zip_outside(folder: Path) -> SourceSpec:
    secret = outside(folder).with_name("a.zip")
    secret.write_bytes(PLAIN)
    return SourceSpec("zip", str(secret))
