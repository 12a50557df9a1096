"""Uploads whose index is lost, damaged or lies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from semiprune_core.importing.sources.base import SourceSpec
from tests.hostile_inputs.cases import GOOD, Case, Ending


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
UPLOADS: dict[str, tuple[str, Ending, bytes | None]] = {
    "without_index": ("UPLOAD_EMPTY", "stop", None),
    "damaged_index": ("UPLOAD_DAMAGED", "stop", b"not json\n"),
    "index_not_utf8": ("UPLOAD_DAMAGED", "stop", b'{"file": "0", "name": "caf\xe9.png"}\n'),
    "number_as_name": ("UPLOAD_DAMAGED", "stop", FIRST + b'{"file": "1", "name": 7}\n'),
    "number_beyond_all": ("UPLOAD_DAMAGED", "stop", FIRST + b'{"file": Infinity, "name": "x.png"}\n'),
    "climbing_name": ("UPLOAD_DAMAGED", "stop", FIRST + b'{"file": "1", "name": "../x.png"}\n'),
    "climbing_file": ("UPLOAD_DAMAGED", "stop", FIRST + b'{"file": "../../x", "name": "x.png"}\n'),
    "half_letter": ("UPLOAD_DAMAGED", "stop", FIRST + b'{"file": "1", "name": "\\ud800.png"}\n'),
    "html": ("NOT_AN_IMAGE", "listed", FIRST + b'{"file": "1", "name": "x.png"}\n'),
    "program": ("NOT_AN_IMAGE", "listed", FIRST + b'{"file": "1", "name": "x.exe"}\n'),
    "lost_file": ("FILE_MISSING", "listed", FIRST + b'{"file": "7", "name": "x.png"}\n'),
}
CASES = [Case(f"upload_{name}", _upload(index), code, ending) for name, (code, ending, index) in UPLOADS.items()]
