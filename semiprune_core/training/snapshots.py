"""Label snapshots that runs pin: kept by hash, read again, compared with the labels of today."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from semiprune_core import files
from semiprune_core.errors import WorkspaceError
from semiprune_core.labeling import class_book
from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.project.workspace import Project
from semiprune_core.records import UNLABELED, IntArray

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
    arrays: dict[str, Any] = {"ids": snapshot.ids, "labels": snapshot.labels, "uniform_mask": snapshot.uniform_mask}
    if snapshot.class_ids:
        arrays["class_ids"] = np.array(snapshot.class_ids, dtype=np.int64)
    if len(snapshot.final_ids):
        arrays["final_ids"] = snapshot.final_ids
    np.savez(data, class_names=names, **arrays)
    return data.getvalue()


def read_snapshot(path: Path, snapshot_hash: str) -> LabelsSnapshot:
    """The snapshot of a file; one that is missing, damaged or another one is refused."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            names = tuple(json.loads(arrays["class_names"].tobytes()))
            class_ids = tuple(arrays["class_ids"].tolist()) if "class_ids" in arrays else ()
            final_ids = arrays["final_ids"] if "final_ids" in arrays else np.empty(0, np.uint64)
            learned = (arrays["ids"], arrays["labels"], arrays["uniform_mask"])
            snapshot = LabelsSnapshot(*learned, names, class_ids, final_ids)
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
    """How labels differ from those of an earlier snapshot; all zero where that one is missing, or where only it changed
    which of them were drawn uniformly."""

    added: int
    changed: int
    removed: int

    @property
    def sentence(self) -> str:
        counts = {"new": self.added, "changed": self.changed, "removed": self.removed}
        changes = ", ".join(f"{n:,} {word}" for word, n in counts.items() if n)
        return f"Labels changed since this run: {changes}." if changes else "The labels changed since this run."


def changes_since(project: Project, snapshot_hash: str, now: LabelsSnapshot) -> LabelChange | None:
    """What changed since the snapshot with this hash; None where nothing did. Classes count by number, not by name."""
    if snapshot_hash in (now.hash, now.hash_by_name):
        return None
    try:
        before = read_snapshot(snapshot_path(project, snapshot_hash), snapshot_hash)
    except WorkspaceError:
        return LabelChange(0, 0, 0)
    both, place_before, place_now = np.intersect1d(before.ids, now.ids, assume_unique=True, return_indices=True)
    then, today = _numbers(project, before)[place_before], _numbers(project, now)[place_now]
    added, removed, changed = len(now.ids) - len(both), len(before.ids) - len(both), int((then != today).sum())
    if not (added or removed or changed) and np.array_equal(before.uniform_mask, now.uniform_mask):
        return None
    return LabelChange(added, changed, removed)


def labels_are(project: Project, snapshot_hash: str | None, now: LabelsSnapshot) -> bool:
    """Whether the labels of ``now`` are those of the snapshot with this hash."""
    return snapshot_hash is not None and changes_since(project, snapshot_hash, now) is None


def _numbers(project: Project, snapshot: LabelsSnapshot) -> IntArray:
    """(M,) the labels by the numbers of their classes, found by name in a snapshot from before they were kept."""
    if snapshot.class_ids:
        return snapshot.label_ids
    numbers = class_book(project.folder).ids_of(snapshot.class_names)
    lookup = [-2 - place if number is None else number for place, number in enumerate(numbers)]
    return np.array([*lookup, UNLABELED], dtype=np.int64)[snapshot.labels]
