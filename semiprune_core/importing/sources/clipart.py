"""The bundled pool in colour: drawings of the Open Clip Art Library in class folders, in the repository."""

from __future__ import annotations

from pathlib import Path

import semiprune_core
from semiprune_core.errors import SourceError
from semiprune_core.importing.sources.archive import ArchiveSource
from semiprune_core.importing.sources.base import SOURCES
from semiprune_core.paths import PathGuard

CLIPART = Path(semiprune_core.__file__).resolve().parent.parent / "assets" / "clipart_pool.zip"


@SOURCES.register("clipart", title="Clip art (Open Clip Art Library)", bundled=True, fit="pad")
def open_clipart(location: str, *, guard: PathGuard, scratch: Path) -> ArchiveSource:
    if not CLIPART.is_file():
        raise SourceError(f"The clip art is missing: {CLIPART}. Restore it from the repository.", code="FILE_MISSING")
    return ArchiveSource(CLIPART)
