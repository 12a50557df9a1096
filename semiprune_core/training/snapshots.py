"""Label snapshots that runs pin: kept by hash, read again, compared with the labels of today."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semiprune_core import files
from semiprune_core.errors import WorkspaceError
from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.project.workspace import Project

SNAPSHOTS = "snapshots"


def keep_snapshot(project: Project, snapshot: LabelsSnapshot) -> Path:
    """Write a snapshot under its hash, once; a run that is started on it finds it there however long it waits."""
    path = snapshot_path(project, snapshot.hash)
    if not path.is_file():
        with files.named_disk_errors(path):
            path.parent.mkdir(exist_ok=True)
        files.write_bytes(path, snapshot_bytes(snapshot))
    return path


def snapshot_path(project: Project, snapshot_hash: str) -> Path:
    return project.folder / SNAPSHOTS / f"{snapshot_hash}.npz"


def snapshot_bytes(snapshot: LabelsSnapshot) -> bytes:
    data = io.BytesIO()
    names = np.frombuffer(json.dumps(snapshot.class_names).encode("ascii"), dtype=np.uint8)
    np.savez(data, ids=snapshot.ids, labels=snapshot.labels, uniform_mask=snapshot.uniform_mask, class_names=names)
    return data.getvalue()


def read_snapshot(path: Path, snapshot_hash: str) -> LabelsSnapshot:
    """The snapshot of a file; one that is missing, damaged or another one is refused."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            names = tuple(json.loads(arrays["class_names"].tobytes()))
            snapshot = LabelsSnapshot(arrays["ids"], arrays["labels"], arrays["uniform_mask"], names)
    except FileNotFoundError:
        raise WorkspaceError(
            f"The labels that this run was started on are missing: {path}. Start a new run.", code="LABELS_MISSING"
        ) from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise WorkspaceError(f"{path} is damaged ({error}). Start a new run.", code="LABELS_DAMAGED") from error
    if snapshot.hash != snapshot_hash:
        raise WorkspaceError(
            f"{path} holds other labels than this run was started on. Start a new run.", code="LABELS_CHANGED"
        )
    return snapshot


@dataclass(frozen=True)
class LabelChange:
    """How labels differ from those of an earlier snapshot."""

    added: int
    changed: int
    removed: int
    classes_changed: bool

    @property
    def sentence(self) -> str:
        counts = {"new": self.added, "changed": self.changed, "removed": self.removed}
        changes = ", ".join(f"{n:,} {word}" for word, n in counts.items() if n)
        if changes:
            return f"Labels changed since this run: {changes}."
        return "The classes changed since this run." if self.classes_changed else "The labels changed since this run."


def changes_since(project: Project, snapshot_hash: str, now: LabelsSnapshot) -> LabelChange | None:
    """What changed since the snapshot with this hash; None where nothing did."""
    if snapshot_hash == now.hash:
        return None
    try:
        before = read_snapshot(snapshot_path(project, snapshot_hash), snapshot_hash)
    except WorkspaceError:
        return LabelChange(0, 0, 0, False)
    both, place_before, place_now = np.intersect1d(before.ids, now.ids, assume_unique=True, return_indices=True)
    then = np.array(before.class_names, dtype=object)[before.labels[place_before]]
    today = np.array(now.class_names, dtype=object)[now.labels[place_now]]
    return LabelChange(
        added=len(now.ids) - len(both),
        changed=int((then != today).sum()),
        removed=len(before.ids) - len(both),
        classes_changed=before.class_names != now.class_names,
    )
