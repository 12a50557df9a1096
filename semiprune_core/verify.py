"""Proof: what lies on the disk is what its manifest says."""

from __future__ import annotations

from pathlib import Path

from semiprune_core import artifacts
from semiprune_core.errors import WorkspaceError
from semiprune_core.progress import Progress


def verify(path: Path, progress: Progress) -> dict[str, list[str]]:
    """Check an artifact, or every artifact of a project; name -> what differs (empty: proven)."""
    if (path / artifacts.MANIFEST).is_file():
        folders = [path]
    elif (path / "artifacts").is_dir():
        folders = [artifact.folder for artifact in artifacts.list_artifacts(path / "artifacts")]
    else:
        raise WorkspaceError(f"{path} is neither an artifact nor a project: it has no {artifacts.MANIFEST}.")
    found = {}
    for number, folder in enumerate(folders, start=1):
        found[folder.name] = artifacts.differences(folder)
        progress.report(number, len(folders), unit="artifacts")
    return found
