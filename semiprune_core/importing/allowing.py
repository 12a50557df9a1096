"""Which folder must be allowed before a source can be read."""

from __future__ import annotations

from pathlib import Path

from semiprune_core.errors import UnsafePathError
from semiprune_core.importing.sources import SOURCES
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.paths import real_path, roots_from_environment
from semiprune_core.project.workspace import Workspace


def place_of(spec: SourceSpec) -> Path | None:
    """What a source reads: its folder, its file, or a table's folder; None for one that reads no path of a person's."""
    root = spec.options.get("root")
    if root:
        return real_path(str(root))
    form = SOURCES.facts(spec.kind).get("form")
    if form is None or form.is_a == "text" or not spec.location:
        return None
    place = real_path(spec.location)
    beside = spec.kind == "manifest" or SOURCES.facts(spec.kind).get("beside", False)
    return place.parent if beside else place


def is_refused(workspace: Workspace, place: Path | None) -> bool:
    """Whether nobody has allowed ``place`` so far, and somebody could."""
    if place is None or roots_from_environment() is not None:
        return False
    try:
        workspace.guard.resolve(place)
    except UnsafePathError as error:
        return error.code == UnsafePathError.code
    return False


def allow_named(workspace: Workspace, place: Path | None) -> Path | None:
    """Allow what the user of a command line named: who can type a path there can read it anyway. None: nothing new."""
    if place is None or not place.exists() or not is_refused(workspace, place):
        return None
    workspace.allow_folder(place)
    return place
