"""ZIP archives read with distrust: the whole central directory is checked before one byte is unpacked.

Written against the format itself (APPNOTE 6.3) instead of ``zipfile``, because we refuse what that repairs, read
members in worker processes without listing the archive there, and keep no object per member in memory.
Refused: names that climb, encryption, members that overlap (CVE-2024-0450), ZIP64 records that do not fit together
(CVE-2025-8291), bytes before the archive, counts and sizes beyond the limits.
"""

from __future__ import annotations

import os
import stat
import struct
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from semiprune_core.errors import SourceError, UnsafePathError
from semiprune_core.importing.sources.base import ArchiveMember
from semiprune_core.importing.sources.opening import opened
from semiprune_core.paths import normal_relative, shown

MAX_MEMBERS = 2_000_000
MAX_TOTAL_BYTES = 500 * 10**9
MAX_RATIO = 100
RATIO_FREE_BYTES = 10 * 10**6
"""Members (and archives) up to this unpacked size may have any ratio: plain pictures compress very well."""
CHUNK = 1 << 18

END = struct.Struct("<4s4H2IH")
END64 = struct.Struct("<4sQ2H2I4Q")
LOCATOR64 = struct.Struct("<4sIQI")
CENTRAL = struct.Struct("<4s6H3I5H2I")
LOCAL = struct.Struct("<4s5H3I2H")
FULL16, FULL32 = 0xFFFF, 0xFFFFFFFF
ENCRYPTED = 0x1 | 0x40 | 0x2000
UTF8 = 0x800
STORED, DEFLATED = 0, 8


@dataclass(frozen=True, slots=True)
class Member:
    """One line of the central directory."""

    name: str
    offset: int
    compressed: int
    size: int
    method: int
    crc: int
    flags: int
    mode: int

    @property
    def is_folder(self) -> bool:
        return self.name.endswith(("/", "\\"))

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    def inside(self, archive: Path) -> ArchiveMember:
        """Where a worker finds it."""
        place = (self.offset, self.compressed, self.size, self.method, self.crc)
        return ArchiveMember(str(archive), self.name, *place)


@dataclass(frozen=True, slots=True)
class Directory:
    """Where the central directory lies, in a file of ``archive_size`` bytes."""

    offset: int
    size: int
    count: int
    archive_size: int


def corrupt(path: Path, why: str) -> SourceError:
    return SourceError(f"The archive {shown(path.name)} is damaged: {why}. Make or copy it again.", code="ZIP_CORRUPT")


def find_directory(path: Path) -> Directory:
    """The central directory, if all end records agree with each other and with the file's size."""
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        tail_at = max(0, size - END.size - FULL16)
        file.seek(tail_at)
        tail = file.read()
        place = tail.rfind(b"PK\5\6")
        if place < 0 or len(tail) - place < END.size:
            raise corrupt(path, "it has no end record, so it is cut off or not a ZIP archive")
        _, disk, first_disk, here, count, length, offset, comment = END.unpack_from(tail, place)
        end_at = tail_at + place
        if end_at + END.size + comment != size:
            raise corrupt(path, "there are bytes after its end record")
        if disk not in (0, FULL16) or first_disk not in (0, FULL16) or here != count:
            raise corrupt(path, "it is one part of a multi-part archive")
        begin = end_at
        locator_at = end_at - LOCATOR64.size
        file.seek(max(0, locator_at))
        locator = file.read(LOCATOR64.size) if locator_at >= 0 else b""
        if locator.startswith(b"PK\6\7"):
            totals = _zip64(path, file, locator, locator_at)
            for short, full, most in zip((count, length, offset), totals[:3], (FULL16, FULL32, FULL32), strict=True):
                if short not in (full, most):
                    raise corrupt(path, "its two end records contradict each other")
            count, length, offset, begin = totals
        elif FULL16 in (count,) or FULL32 in (length, offset):
            raise corrupt(path, "its ZIP64 record is missing")
    if offset + length != begin:
        raise corrupt(path, "its directory is not where its end record says")
    if count > MAX_MEMBERS:
        raise SourceError(
            f"The archive {shown(path.name)} has {count:,} entries, more than the {MAX_MEMBERS:,} allowed. Split it.",
            code="ZIP_TOO_MANY_FILES",
        )
    if count * CENTRAL.size > length:
        raise corrupt(path, f"its directory is too short for {count:,} entries")
    return Directory(offset, length, count, size)


def _zip64(path: Path, file: BinaryIO, locator: bytes, locator_at: int) -> tuple[int, int, int, int]:
    """(count, length, offset) of the directory by the ZIP64 end record, and where that record begins."""
    _, disk, record_at, disks = LOCATOR64.unpack(locator)
    if record_at + END64.size > locator_at or disk != 0 or disks > 1:
        raise corrupt(path, "its ZIP64 locator points nowhere")
    file.seek(record_at)
    magic, rest, _, _, disk, first_disk, here, count, length, offset = END64.unpack(file.read(END64.size))
    if magic != b"PK\6\6" or record_at + 12 + rest != locator_at or disk or first_disk or here != count:
        raise corrupt(path, "its ZIP64 record does not match its locator")
    return count, length, offset, record_at


def members(path: Path, directory: Directory) -> Iterator[Member]:
    """All lines of the central directory, streamed, in the archive's own order."""
    with opened(path) as file:
        file.seek(directory.offset)
        left = directory.size
        for _ in range(directory.count):
            raw = file.read(CENTRAL.size)
            left -= len(raw)
            if len(raw) < CENTRAL.size or not raw.startswith(b"PK\1\2"):
                raise corrupt(path, "an entry of its directory is unreadable")
            fields = CENTRAL.unpack(raw)
            lengths = fields[10:13]
            rest = file.read(sum(lengths))
            left -= len(rest)
            if len(rest) < sum(lengths) or left < 0:
                raise corrupt(path, "an entry of its directory is cut off")
            yield _member(path, fields, rest[: lengths[0]], rest[lengths[0] : lengths[0] + lengths[1]])
        if left:
            raise corrupt(path, f"its directory holds more than the {directory.count:,} entries it claims")


def _member(path: Path, fields: tuple[int, ...], raw_name: bytes, extra: bytes) -> Member:
    flags, method, crc, compressed, size = fields[3], fields[4], fields[7], fields[8], fields[9]
    disk, attributes, offset = fields[13], fields[15], fields[16]
    name = _name(path, raw_name, flags)
    if FULL32 in (size, compressed, offset):
        wide = _extra64(extra)
        try:
            size = wide.pop(0) if size == FULL32 else size
            compressed = wide.pop(0) if compressed == FULL32 else compressed
            offset = wide.pop(0) if offset == FULL32 else offset
        except IndexError:
            raise corrupt(path, f"the ZIP64 sizes of {shown(name)} are missing") from None
    if disk not in (0, FULL16):
        raise corrupt(path, "it is one part of a multi-part archive")
    return Member(name, offset, compressed, size, method, crc, flags, attributes >> 16)


def _name(path: Path, raw: bytes, flags: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        if flags & UTF8:
            raise corrupt(path, "a name in its directory is not the UTF-8 it claims to be") from None
        return raw.decode("cp437")


def _extra64(extra: bytes) -> list[int]:
    """The 64-bit values of the extra field 1, in order."""
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<2H", extra)
        if kind == 1:
            body = extra[4 : 4 + length]
            return [int.from_bytes(body[at : at + 8], "little") for at in range(0, len(body) - len(body) % 8, 8)]
        extra = extra[4 + length :]
    return []


UNPACK = "Unpack it yourself if you trust it, and import the folder."


def check(path: Path, *, remedy: str = UNPACK) -> Directory:
    """Read the whole directory once and refuse the archive if anything in it is unsafe.

    ``remedy`` is what a person may do about an archive that unpacks to too much.
    """
    directory = find_directory(path)
    starts, ends = array("Q"), array("Q")
    total = 0
    for member in members(path, directory):
        _check_name(path, member)
        if member.flags & ENCRYPTED:
            raise SourceError(
                f"The archive {shown(path.name)} is encrypted (first entry: {shown(member.name)}). "
                "Unpack it with its password and pack it again without one.",
                code="ZIP_ENCRYPTED",
            )
        total += member.size
        if member.size > RATIO_FREE_BYTES and member.size > MAX_RATIO * member.compressed:
            raise _too_large(path, f"{shown(member.name)} unpacks", member.size, member.compressed, remedy)
        if member.offset + LOCAL.size + member.compressed > directory.offset:
            raise corrupt(path, f"{shown(member.name)} lies beyond its directory")
        starts.append(member.offset)
        ends.append(member.offset + LOCAL.size + member.compressed)
    packed = directory.archive_size
    if total > RATIO_FREE_BYTES and total > MAX_RATIO * packed:
        raise _too_large(path, "it unpacks", total, packed, remedy)
    if total > MAX_TOTAL_BYTES:
        raise SourceError(
            f"The archive {shown(path.name)} unpacks to {total / 1e9:.1f} GB, "
            f"more than the {MAX_TOTAL_BYTES / 1e9:g} GB allowed. {remedy}",
            code="ZIP_TOO_LARGE",
        )
    _check_overlap(path, np.frombuffer(starts, np.uint64), np.frombuffer(ends, np.uint64), directory.offset)
    return directory


def _check_name(path: Path, member: Member) -> None:
    try:
        normal_relative(member.name)
    except UnsafePathError as error:
        raise SourceError(
            f"The archive {shown(path.name)} holds the unsafe name '{shown(member.name)}'. "
            "Nothing was imported; pack it again with plain relative names.",
            code="ZIP_UNSAFE_PATH",
        ) from error


def _too_large(path: Path, what: str, size: int, packed: int, remedy: str) -> SourceError:
    return SourceError(
        f"The archive {shown(path.name)} looks like a ZIP bomb: {what} from {packed:,} to {size:,} bytes, "
        f"more than {MAX_RATIO} times. {remedy}",
        code="ZIP_TOO_LARGE",
    )


def _check_overlap(path: Path, starts: np.ndarray, ends: np.ndarray, directory_at: int) -> None:
    order = np.argsort(starts, kind="stable")
    limits = np.append(starts[order][1:], np.uint64(directory_at))
    if (ends[order] > limits).any():
        raise corrupt(path, "its entries overlap each other or its directory")


def unpack(handle: int, at: ArchiveMember) -> Iterator[bytes]:
    """A member's bytes in pieces, from an open file; never more than the size its directory promised."""
    archive, name = Path(at.archive), shown(at.name)
    if at.method not in (STORED, DEFLATED):
        raise SourceError(
            f"{name} is compressed with method {at.method}, which is not supported. Use Deflate.", code="ZIP_METHOD"
        )
    inflate = zlib.decompressobj(-zlib.MAX_WBITS) if at.method == DEFLATED else None
    place, left = _data_begins(handle, at), at.compressed
    given = check_sum = 0
    while left > 0:
        raw = os.pread(handle, min(CHUNK, left), place)
        if not raw:
            raise corrupt(archive, f"{name} is cut off")
        place, left = place + len(raw), left - len(raw)
        for piece in _inflated(inflate, raw, at) if inflate else (raw,):
            given += len(piece)
            if given > at.size:
                raise SourceError(
                    f"{name} unpacks to more than the {at.size:,} bytes that {shown(archive.name)} declares for it; "
                    "reading stopped there. Pack it again.",
                    code="ZIP_TOO_LARGE",
                )
            check_sum = zlib.crc32(piece, check_sum)
            yield piece
    if given != at.size or check_sum != at.crc:
        raise corrupt(archive, f"the bytes of {name} do not match their checksum")


def _data_begins(handle: int, at: ArchiveMember) -> int:
    """Where a member's bytes begin, if its local header is the one the directory means."""
    header = os.pread(handle, LOCAL.size, at.offset)
    if len(header) < LOCAL.size or not header.startswith(b"PK\3\4"):
        raise corrupt(Path(at.archive), f"{shown(at.name)} is not where its directory says")
    fields = LOCAL.unpack(header)
    if fields[2] & ENCRYPTED or fields[3] != at.method:
        raise corrupt(Path(at.archive), f"{shown(at.name)} is compressed differently than its directory says")
    return at.offset + LOCAL.size + fields[9] + fields[10]


def _inflated(inflate: zlib._Decompress, raw: bytes, at: ArchiveMember) -> Iterator[bytes]:
    """What ``raw`` unpacks to, never more than a chunk at a time."""
    while not inflate.eof:
        try:
            piece = inflate.decompress(raw, CHUNK)
        except zlib.error as error:
            raise corrupt(Path(at.archive), f"{shown(at.name)} cannot be unpacked ({error})") from error
        yield piece
        raw = inflate.unconsumed_tail
        if not raw and len(piece) < CHUNK:  # a full chunk may have more behind it, without any input left
            return
