"""Proof: what lies on the disk is what its manifest says, and a coreset is what its scores give.

Every check has a name and answers with what differs, in words; an empty answer proves it. The checks of an export stand
in the order in which things were made from each other, backwards: its files, the coreset, the scores, the labels, the
pool, the selection, the images.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from semiprune_core import files, jobs
from semiprune_core.coresets import evidence_behind
from semiprune_core.errors import SemiPruneError, WorkspaceError
from semiprune_core.exporting.base import FOLDER_ROLE, MANIFEST_SUFFIX, NAME_DIGITS, Export, open_export
from semiprune_core.exporting.content import selection_sha256
from semiprune_core.exporting.trees import SUMS
from semiprune_core.labeling import copies_note, damaged_copies, has_store, label_damage
from semiprune_core.methods import select_coreset
from semiprune_core.paths import shown
from semiprune_core.progress import Progress, Stopped
from semiprune_core.project import artifacts
from semiprune_core.project.migrations import BACKUP, PROJECT, has_its_backup
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.results import CoresetRun

Differences = dict[str, list[str]]


def verify(path: Path, progress: Progress, *, images: bool = True) -> Differences:
    """Check an artifact, an export, or every artifact and export of a project; name -> what differs (empty: proven).

    An export is named by its manifest, by any file of it, or by its folder. Where it lies in its project the selection
    is recomputed and the originals are read again (unless ``images`` is False); elsewhere its files alone are checked.
    """
    path = path.absolute()
    if (path / artifacts.MANIFEST).is_file():
        return _artifacts([path], progress)
    if (path / "artifacts").is_dir():
        differences = _artifacts(
            [artifact.folder for artifact in artifacts.list_artifacts(path / "artifacts")], progress
        )
        exports, folder = list(_exports(path / "exports")), path
        differences |= _project(Workspace(path.parent).project(path.name))
    else:
        differences, exports = {}, _export_at(path)
        folder = path.parent if path.name == "exports" else path.parent.parent
        if not exports:
            raise WorkspaceError(
                f"{path} is neither an artifact nor an export nor a project: no manifest here speaks of it."
            )
    inside = Project(folder, files.read_json(folder / PROJECT)) if (folder / PROJECT).is_file() else None
    for export in exports:
        prefix = f"{export.id} " if len(exports) > 1 else ""
        differences |= {prefix + name: wrong for name, wrong in _own_files(export).items()}
        if inside is not None:
            _origin(export, inside, differences, progress)
            differences[f"{prefix}selection"] = _selection(export, inside, differences)
    if inside is not None and exports and images and "images" not in differences:
        differences["images"] = list(changed_originals(inside.pool(), progress))
    return differences


def first_difference(differences: Mapping[str, list[str]]) -> str | None:
    """The first thing that differs, with the name of its check."""
    return next((f"{name}: {wrong[0]}" for name, wrong in differences.items() if wrong), None)


def _artifacts(folders: list[Path], progress: Progress) -> Differences:
    differences = {}
    for number, folder in enumerate(folders, start=1):
        differences[folder.name] = artifacts.differences(folder)
        progress.report(number, len(folders), unit="artifacts")
    return differences


def _project(project: Project) -> Differences:
    """What a project has beside its artifacts and exports: its own file, its labels with their copies, its jobs."""
    differences = {
        PROJECT: [] if has_its_backup(project.folder) else [f"{PROJECT} and {BACKUP} differ: one of them was changed"]
    }
    if has_store(project):
        damage = label_damage(project)
        remedy = "restore PostgreSQL from a backup of its own" if copies_note() else f"semiprune restore {project.name}"
        differences["labels"] = [f"{damage.reason} ({remedy})"] if damage else []
        differences["labels"] += [f"the copy {copy.name} is damaged; delete it" for copy in damaged_copies(project)]
    broken = list(jobs.damaged_jobs(project).values())
    statuses = [job.status() for job in jobs.list_jobs(project)]
    broken += [status.message for status in statuses if status.error_code == "DAMAGED"]
    return differences | ({"jobs": broken} if broken or statuses else {})


def _exports(folder: Path) -> Iterator[Export]:
    for path in sorted(folder.glob(f"*{MANIFEST_SUFFIX}")):
        yield open_export(path)


def _export_at(path: Path) -> list[Export]:
    """The exports that a path means: a manifest, the file or folder it names, or a folder of exports."""
    if path.name.endswith(MANIFEST_SUFFIX):
        return [open_export(path)]
    naming = [export for export in _exports(path.parent) if path in export.files.values()]
    return naming or (list(_exports(path)) if path.is_dir() else [])


def _own_files(export: Export) -> Differences:
    differences = {"manifest": _manifest(export)}
    for role, entry in export.manifest["files"].items():
        differences[str(entry["name"])] = list(_files(export, role))
    return differences


def _manifest(export: Export) -> list[str]:
    digest = files.sha256_json(export.manifest)[:NAME_DIGITS]
    if export.id.endswith(f"-{digest}"):
        return []
    return [f"{export.path.name} was changed (its content gives {digest}, its name says otherwise)"]


def _files(export: Export, role: str) -> Iterator[str]:
    """What differs in one file of an export, or in one folder of images."""
    entry, path = export.manifest["files"][role], export.files[role]
    if not path.exists():
        yield f"{path.name} is missing"
        return
    listed = path / SUMS if role == FOLDER_ROLE else path
    if not listed.is_file():
        yield f"{path.name}/{SUMS} is missing"
        return
    if (now := files.sha256_file(listed)) != entry["sha256"]:
        shown_name = listed.relative_to(export.path.parent).as_posix()
        yield f"{shown_name} was changed (SHA-256 {now[:12]}…, manifest says {entry['sha256'][:12]}…)"
        return
    if role == FOLDER_ROLE:
        yield from _tree(path)


def _tree(root: Path) -> Iterator[str]:
    lines = (root / SUMS).read_text("utf-8").splitlines()
    wanted = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    for name, digest in wanted.items():
        if not (root / name).is_file():
            yield f"{root.name}/{shown(name)} is missing"
        elif files.sha256_file(root / name) != digest:
            yield f"{root.name}/{shown(name)} was changed"
    there = {path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir()}
    yield from (f"{root.name}/{shown(name)} is not in {SUMS}" for name in sorted(there - {*wanted, SUMS}))


def _origin(export: Export, project: Project, differences: Differences, progress: Progress) -> None:
    """Check the artifacts an export was made from, where that has not happened yet."""
    manifest = export.manifest
    wanted = {kind: manifest["inputs"][kind] for kind in ("evidence", "scores", "pseudo") if kind in manifest["inputs"]}
    chain = [coreset for coreset in project.artifacts("coreset") if coreset.id == manifest["coreset"]]
    if not chain:
        differences[manifest["coreset"]] = [f"{manifest['coreset']} is no longer in the project"]
    elif chain[0].hash != manifest["coreset_hash"]:
        differences[manifest["coreset"]] = [f"{manifest['coreset']} is another one than the export was made from"]
    for kind, digest in wanted.items():
        named = [artifact for artifact in project.artifacts(kind) if artifact.hash == digest]
        chain += named[:1]
        if not named:
            differences[kind] = [
                f"the project no longer has the {kind} of hash {digest[:12]}… that the export was made from"
            ]
    chain += project.artifacts("pool")
    for artifact in chain:
        if artifact.id not in differences:
            differences |= _artifacts([artifact.folder], progress)


def _selection(export: Export, project: Project, differences: Differences) -> list[str]:
    """Choose the coreset once more from the stored scores, with the stored settings and seed."""
    if broken := [name for name, wrong in differences.items() if wrong and artifacts.NAME.fullmatch(name)]:
        return [f"it cannot be recomputed while {broken[0]} differs"]
    manifest = export.manifest
    pool = project.pool()
    if pool.hash != manifest["inputs"]["pool"]:
        return ["the pool has other images than when the coreset was selected"]
    try:
        run = CoresetRun(project.artifact(manifest["coreset"]))
        evidence = evidence_behind(project, run)
    except SemiPruneError as error:
        return [str(error)]
    stored = run.coreset()
    again = select_coreset(
        evidence,
        stored.method,
        pruning_ratio=stored.pruning_ratio,
        seed=stored.seed,
        rule=artifacts.streams_rule(run.artifact.manifest),
        **stored.settings["options"],
        **stored.settings["knobs"],
    )
    if not np.array_equal(again.indices, stored.indices):
        n_other = int((again.mask & ~stored.mask).sum())
        return [f"selecting again keeps {n_other:,} other images (or another order) than {run.artifact.id} says"]
    if selection_sha256(pool, again.indices) != manifest["selection_sha256"]:
        return [f"the manifest speaks of other kept images than {run.artifact.id}"]
    return []


def changed_originals(pool: Pool, progress: Progress) -> Iterator[str]:
    """Originals in files of their own that are gone or changed since the import; packed ones are in the pool's hash."""
    for name in ("path", "file", "file_sha256"):
        pool.column(name)
    for position in range(len(pool)):
        try:
            path = pool.original_file(position)
            if path is not None:
                pool.original(position)
        except SemiPruneError as error:
            yield str(error)
        progress.report(position + 1, len(pool), unit="images")
        if progress.should_stop():
            raise Stopped
