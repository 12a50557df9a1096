"""From a saved coreset to an export: one function for the page, the command line and the job."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from semiprune_core import files, jobs
from semiprune_core.errors import InvalidSettingError, WorkspaceError
from semiprune_core.exporting.base import (
    FORMATS,
    MANIFEST_SUFFIX,
    Export,
    ExportOptions,
    Place,
    folder_aside,
    open_export,
    options_for,
    publish,
)
from semiprune_core.exporting.content import Content, open_content
from semiprune_core.paths import shown
from semiprune_core.progress import Progress
from semiprune_core.project.workspace import Project
from semiprune_core.results import CoresetRun, open_coreset
from semiprune_core.settings import Settings

SAMPLE = 400
"""So many rows are written to learn how large a format's rows are."""
TREE_BYTES = 500
"""What an image costs in a tree besides itself: its entries in the ZIP, in the tables and in SHA256SUMS."""


@dataclass(frozen=True, kw_only=True)
class ExportSettings(Settings):
    """What an export job writes: every coreset in every format."""

    coresets: tuple[str, ...]
    formats: tuple[str, ...] = ("csv",)
    options: dict[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        if not self.coresets or not self.formats:
            raise InvalidSettingError("An export needs at least one coreset and one format.")
        for name in self.formats:
            options_for(name, ExportOptions.from_json(self.options))  # raises for unknown names and ways


@dataclass(frozen=True, kw_only=True)
class VerifySettings(Settings):
    """Which export a verify job proves."""

    export: str


def export_coreset(
    project: Project,
    run: CoresetRun,
    name: str = "csv",
    options: ExportOptions | None = None,
    *,
    content: Content | None = None,
    progress: Progress | None = None,
    folder: Path | None = None,
) -> Export:
    """Write a coreset in the format ``name`` into the project's exports, or into ``folder``; all of it, or nothing."""
    options = options_for(name, options or ExportOptions())
    content = content or open_content(project, run)
    folder = folder or project.exports_folder
    with folder_aside(folder) as aside:
        place = Place(aside, content, options, progress)
        FORMATS[name](content, place)
        return publish(name, place, folder)


@dataclass(frozen=True)
class Exported:
    """The three files of a CSV export."""

    kept: Path
    everything: Path
    manifest: Path

    def to_json(self) -> dict[str, str]:
        return {"kept": str(self.kept), "all": str(self.everything), "manifest": str(self.manifest)}


def export_csv(project: Project, run: CoresetRun, *, exact: bool = False) -> Exported:
    """Write the coreset's CSV, its all-rows twin and their manifest; the same coreset gives the same files."""
    export = export_coreset(project, run, "csv", ExportOptions(exact=exact))
    return Exported(export.files["kept"], export.files["all"], export.path)


def list_exports(project: Project) -> list[Export]:
    """All exports, the newest first."""
    manifests = project.exports_folder.glob(f"*{MANIFEST_SUFFIX}")
    return [open_export(path) for path in sorted(manifests, key=lambda path: (-path.stat().st_mtime_ns, path.name))]


def open_named(project: Project, export_id: str) -> Export:
    """One export by its id."""
    for export in list_exports(project):
        if export.id == export_id:
            return export
    raise WorkspaceError(f"Project '{project.name}' has no export '{shown(export_id)}'.", code="NO_EXPORT")


def has_exports(project: Project) -> bool:
    return any(project.exports_folder.glob(f"*{MANIFEST_SUFFIX}"))


def preview(content: Content, n: int = 8) -> pa.Table:
    """The first rows of the CSV."""
    return content.rows(content.kept_idx[:n], exact=False)


def estimate_bytes(content: Content, name: str, options: ExportOptions) -> int:
    """About how much an export will write, learned from a few of its rows or from the images' sizes."""
    options = options_for(name, options)
    n = len(content.kept_idx)
    if options.images not in (None, "reference"):
        rows = n * TREE_BYTES
        if options.images in ("zip", "copy"):
            rows += int(pc.sum(content.pool.column("file_bytes").take(pa.array(content.kept_idx))).as_py() or 0)
        return rows
    thin = content.sample(SAMPLE)
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), thin, options)
        FORMATS[name](thin, place)
        written = files.tree_bytes(folder)
    whole = FORMATS.facts(name).get("whole_pool", False)
    rows = len(thin.kept_idx) + len(thin.all_idx) * whole
    return round(written / max(1, rows) * (n + len(content.all_idx) * whole))


def submit_export(
    project: Project,
    coresets: Sequence[str],
    formats: Sequence[str],
    options: ExportOptions | None = None,
    *,
    immediate: bool = False,
) -> jobs.Job:
    """Queue an export; the job pins the coresets by content hash."""
    settings = ExportSettings(
        coresets=tuple(coresets), formats=tuple(formats), options=(options or ExportOptions()).to_json()
    )
    pins = {name: open_coreset(project, name).artifact.hash for name in settings.coresets}
    return jobs.submit(project, "export", settings.to_json(), pins=pins, immediate=immediate)


def submit_verify(project: Project, export: Export, *, immediate: bool = False) -> jobs.Job:
    """Queue the proof of one export."""
    settings = VerifySettings(export=export.id)
    return jobs.submit(project, "verify", settings.to_json(), title=f"Verify {export.id}", immediate=immediate)


def last_proof(proofs: Sequence[jobs.Job], export: Export) -> jobs.Job | None:
    """The latest verify job of an export among ``found`` (newest first)."""
    return next((job for job in proofs if job.settings.get("export") == export.id), None)
