"""Two holes of ``zipfile`` that Python 3.11.7 still has: our own reader refuses both kinds of archive."""

import io
import struct
import sys
import zipfile
from pathlib import Path

import pytest

from semiprune_core.errors import SourceError
from semiprune_core.importing.sources import ziplist
from tests.hostile_inputs.zips import Packed, end64, raw_zip

CORE = Path(ziplist.__file__).parents[2]
RECORD = ziplist.END64.size


def quoted_overlap() -> bytes:
    """CVE-2024-0450: the bytes of one member quote another one whole, and the directory names both."""
    inner = raw_zip(Packed("b.png", data=b"x" * 1000, method=0))
    local = inner[: inner.index(b"PK\1\2")]
    return raw_zip(
        Packed("a.png", data=local, method=0),
        Packed("b.png", data=b"x" * 1000, method=0, packed=b"", compressed=1000, offset=30 + len("a.png")),
    )


def half(name: str, start: int) -> bytes:
    """A member, its directory and a ZIP64 record that stand at ``start`` in a file."""
    archive = raw_zip(Packed(name, method=0, offset=start))
    length, offset = struct.unpack_from("<2I", archive[-22:], 12)
    return archive[:-22] + end64(1, length, start + offset, 0)[:RECORD]


def two_faces() -> bytes:
    """CVE-2025-8291: the locator points at one ZIP64 record, another one that lists other members stands before it."""
    shown = half("shown.png", 0)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, len(shown) - RECORD, 1)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return shown + half("hidden.png", len(shown)) + locator + end


HOLES = [
    (quoted_overlap(), (3, 11, 8), ["a.png", "b.png"]),
    (two_faces(), (3, 11, 14), ["hidden.png"]),
]


@pytest.mark.parametrize("archive, mended, names", HOLES, ids=["CVE-2024-0450", "CVE-2025-8291"])
def test_our_reader_refuses_what_zipfile_lets_through(tmp_path, archive, mended, names):
    if sys.version_info < mended:  # the archive is what it should be: this Python falls for it
        with zipfile.ZipFile(io.BytesIO(archive)) as packed:
            assert packed.namelist() == names and all(packed.read(name) for name in names)
    (tmp_path / "a.zip").write_bytes(archive)
    with pytest.raises(SourceError) as refused:
        ziplist.check(tmp_path / "a.zip")
    assert refused.value.code == "ZIP_CORRUPT"


def test_no_archive_from_outside_is_opened_by_zipfile():
    users = {path.relative_to(CORE).as_posix() for path in CORE.rglob("*.py") if "zipfile.ZipFile(" in path.read_text()}
    writing = {"exporting/trees.py", "labeling/exchange/drawn_list.py"}
    assert users == {"demo/figures.py", "demo/finished.py", *writing}, "our own demo; and writing"
