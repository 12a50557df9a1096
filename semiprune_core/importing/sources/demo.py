"""The bundled demo pool: 8,000 pictures of Fashion-MNIST, in the repository."""

from __future__ import annotations

from pathlib import Path

from semiprune_core.errors import SourceError
from semiprune_core.importing.sources.arrays import ArraySource, unpack_columns
from semiprune_core.importing.sources.base import SOURCES
from semiprune_core.paths import PathGuard, studio_folder

DEMO = studio_folder() / "assets" / "demo_pool.npz"


@SOURCES.register("demo", title="Demo pool (Fashion-MNIST)", bundled=True)
def open_demo(location: str, *, guard: PathGuard, scratch: Path) -> ArraySource:
    if not DEMO.is_file():
        raise SourceError(
            f"The demo pool is missing: {DEMO}. Install SemiPrune Studio again, or restore it from the repository.",
            code="FILE_MISSING",
        )
    return ArraySource(DEMO.name, scratch / "images.npy", unpack_columns(DEMO, scratch))
