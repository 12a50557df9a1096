"""Artifacts: folders that are complete or absent, name what they were made from, and never change.

    <project>/artifacts/<kind>-<number>/
        manifest.json    kind, settings, inputs by content hash, seed, rule for random numbers, versions, duration,
                         device, files with SHA-256
        ...              the arrays and tables

``hash`` in the manifest covers kind, settings, inputs, seed and the files' content, and nothing that changes between
two equal runs (times, versions, device), so equal work has equal hashes.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from semiprune_core import __version__, files, streams
from semiprune_core.errors import WorkspaceError

MANIFEST = "manifest.json"
MANIFEST_SCHEMA = 1
VERSIONED = ("numpy", "pandas", "pyarrow", "pillow", "torch", "torchvision", "scipy", "scikit-learn", "umap-learn")
NAME = re.compile(r"[a-z][a-z_]*-[0-9]{4,}")
FIELDS = {
    "kind": str,
    "id": str,
    "created": str,
    "settings": dict,
    "inputs": dict,
    "facts": dict,
    "versions": dict,
    "files": dict,
    "hash": str,
}


@dataclass(frozen=True)
class Artifact:
    """A complete artifact on disk."""

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.manifest["id"])

    @property
    def kind(self) -> str:
        return str(self.manifest["kind"])

    @property
    def hash(self) -> str:
        return str(self.manifest["hash"])

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.manifest["settings"]

    @property
    def inputs(self) -> Mapping[str, str]:
        """Role -> content hash of what it was made from."""
        return self.manifest["inputs"]

    @property
    def facts(self) -> Mapping[str, Any]:
        """Small results worth showing without opening the arrays: counts, accuracy, ..."""
        return self.manifest["facts"]

    def path(self, name: str) -> Path:
        return self.folder / name


@dataclass
class Draft:
    """An artifact in the making: write files into ``folder``, facts into ``facts``."""

    folder: Path
    facts: dict[str, Any] = field(default_factory=dict)
    device: str = "cpu"

    def path(self, name: str) -> Path:
        return self.folder / name


def versions() -> dict[str, str]:
    """Versions of Python, of the libraries that matter and of this package."""
    return dict(_versions())


@functools.cache
def _versions() -> tuple[tuple[str, str], ...]:
    installed = {"semiprune": __version__, "python": platform.python_version()}
    for name in VERSIONED:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return tuple(installed.items())


def streams_rule(manifest: Mapping[str, Any]) -> int:
    """The rule for random numbers by which something was made; 1 in manifests from before there was another."""
    return int(manifest.get("streams", 1))


def content_hash(manifest: Mapping[str, Any]) -> str:
    """The artifact's identity: what it is, from what, with which settings, holding which bytes."""
    covered = {key: manifest[key] for key in ("kind", "settings", "inputs", "seed")}
    covered["files"] = {name: entry["sha256"] for name, entry in manifest["files"].items()}
    return files.sha256_json(covered)


@contextlib.contextmanager
def draft_artifact(
    parent: Path,
    kind: str,
    *,
    settings: Mapping[str, Any],
    inputs: Mapping[str, str],
    seed: int | None = None,
) -> Iterator[Draft]:
    """Make an artifact: it appears under ``parent`` when the block ends well, and leaves no trace otherwise.

    After the block ``draft.folder`` is the finished folder: read it back with :func:`open_artifact`.
    """
    parent.mkdir(parents=True, exist_ok=True)
    aside = parent / f".{kind}.{secrets.token_hex(4)}.part"
    aside.mkdir()
    draft = Draft(aside)
    started = time.monotonic()
    try:
        with files.named_disk_errors(parent / kind):
            yield draft
            manifest: dict[str, Any] = {
                "schema": MANIFEST_SCHEMA,
                "kind": kind,
                "id": "",
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "seed": seed,
                "streams": streams.RULE,
                "settings": dict(settings),
                "inputs": dict(inputs),
                "facts": draft.facts,
                "device": draft.device,
                "duration_s": round(time.monotonic() - started, 3),
                "versions": versions(),
                "files": _file_entries(aside),
            }
            manifest["hash"] = content_hash(manifest)
            draft.folder = _publish(aside, parent, kind, manifest)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _publish(aside: Path, parent: Path, kind: str, manifest: dict[str, Any]) -> Path:
    """Rename ``aside`` to the next free number; two processes at once get two numbers."""
    number = max((number_of(folder.name) for folder in parent.glob(f"{kind}-*")), default=0)
    while True:
        number += 1
        manifest["id"] = f"{kind}-{number:04d}"
        files.write_json(aside / MANIFEST, files.sealed(manifest))
        final = parent / manifest["id"]
        try:
            os.rename(aside, final)  # fails on a folder that is not empty, and a finished one never is
        except OSError:
            if not final.exists():
                raise
            continue
        files.sync_folder(parent)
        return final


def note_facts(artifact: Artifact, facts: Mapping[str, Any]) -> Artifact:
    """Write down what was found out about a complete artifact afterwards; what its hash covers stays as it is."""
    manifest = files.sealed({**artifact.manifest, "facts": {**artifact.facts, **facts}})
    files.write_json(artifact.path(MANIFEST), manifest)
    return Artifact(artifact.folder, manifest)


def number_of(artifact_id: str) -> int:
    return int(artifact_id.rsplit("-", 1)[1]) if NAME.fullmatch(artifact_id) else 0


def _file_entries(folder: Path) -> dict[str, dict[str, Any]]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)
    return {
        path.relative_to(folder).as_posix(): {"sha256": files.sha256_file(path), "bytes": path.stat().st_size}
        for path in paths
    }


def open_artifact(folder: str | Path) -> Artifact:
    folder = Path(folder)
    if not (folder / MANIFEST).is_file():
        raise WorkspaceError(f"{folder} is not a complete artifact: it has no {MANIFEST}.")
    manifest = files.read_object(folder / MANIFEST, {"schema": int})
    schema = manifest["schema"]
    if schema != MANIFEST_SCHEMA:
        raise WorkspaceError(
            f"{folder} was written by another version (manifest schema {schema}, "
            f"this one reads {MANIFEST_SCHEMA}). Update SemiPrune Studio."
        )
    files.check_fields(folder / MANIFEST, manifest, FIELDS)
    return Artifact(folder, manifest)


def artifact_names(parent: Path, kind: str | None = None) -> list[str]:
    """The ids of all complete artifacts below ``parent``, in the order of their numbers."""
    if not parent.is_dir():
        return []
    names = [name for name in os.listdir(parent) if NAME.fullmatch(name)]
    chosen = [name for name in names if kind is None or name.rsplit("-", 1)[0] == kind]
    return sorted(chosen, key=lambda name: (number_of(name), name))


def list_artifacts(parent: Path, kind: str | None = None) -> list[Artifact]:
    """All complete artifacts below ``parent``, oldest first (those of one kind in the order of their numbers)."""
    opened = [open_artifact(parent / name) for name in artifact_names(parent, kind)]
    return opened if kind else sorted(opened, key=lambda artifact: artifact.manifest["created"])


def differences(folder: str | Path) -> list[str]:
    """What in an artifact differs from its manifest, in words; an empty list proves it."""
    artifact = open_artifact(folder)
    wanted, present = artifact.manifest["files"], _file_entries(artifact.folder)
    differing = [f"{name} is missing" for name in wanted if name not in present]
    differing += [f"{name} is not in the manifest" for name in present if name not in wanted]
    for name in wanted:
        if name in present and present[name]["sha256"] != wanted[name]["sha256"]:
            is_now, was = present[name]["sha256"][:12], wanted[name]["sha256"][:12]
            differing.append(f"{name} was changed (SHA-256 {is_now}…, manifest says {was}…)")
    if content_hash(artifact.manifest) != artifact.hash:
        differing.append("manifest.json was changed: its settings, inputs or file list do not give its hash")
    elif not files.seal_holds(artifact.manifest):
        differing.append("manifest.json was changed after it was written")
    return differing
