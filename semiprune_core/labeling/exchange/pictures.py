"""Where Label Studio finds the pictures of our tasks.

It serves local files below LOCAL_FILES_DOCUMENT_ROOT, if a storage is set up for their folder; the root itself may not
be a storage. So the root is the folder that holds the sources' folders, and every address begins with a source's name.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from semiprune_core.labeling.exchange.label_studio import LOCAL_FILES
from semiprune_core.labeling.export_labels import export_label_studio
from semiprune_core.project.pool import Pool

if TYPE_CHECKING:
    from semiprune_core.labeling.store import LabelStore


@dataclass(frozen=True, eq=False)
class Served:
    """Pictures in files of their own: ``document_root`` and below it the ``storages``, one for each source."""

    pool: Pool
    document_root: Path
    storages: tuple[Path, ...]

    def address(self, position: int) -> str:
        """What a task names the picture by."""
        path = self.pool.file_name(position)
        assert path is not None
        return LOCAL_FILES + quote(path.relative_to(self.document_root).as_posix())


def served_pictures(pool: Pool) -> Served | None:
    """How Label Studio on this machine can show the pool; None where originals are packed, or are a whole disk."""
    if any(segment.originals is not None for segment in pool.segments):
        return None
    folders = tuple(dict.fromkeys(Path(segment.artifact.facts["root"]) for segment in pool.segments))
    root = Path(os.path.commonpath([folder.parent for folder in folders]))
    if root in folders:
        return None
    for name in ("path", "file"):
        pool.column(name)  # once for all images, not once for each
    return Served(pool, root, folders)


def picture_note(served: Served | None) -> str:
    """What to set up so that the exported answers come with their pictures."""
    if served is None:
        return (
            "The originals are packed inside the project, so Label Studio will show no pictures for these answers. "
            "To label there, export a coreset as Label Studio tasks with its images."
        )
    folders = " and ".join(str(folder) for folder in served.storages)
    return (
        f"To see the pictures in Label Studio, set LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true and "
        f"LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={served.document_root}, and add local files storage for {folders}."
    )


def export_answers(store: LabelStore, pool: Pool, path: str | Path) -> int:
    """Write every annotator's answers as Label Studio tasks that name the pictures where it can serve them."""
    return export_label_studio(store, pool, path, served=served_pictures(pool))
