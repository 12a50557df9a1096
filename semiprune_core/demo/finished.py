"""The finished demo: a real run of ``semiprune demo`` in one archive, opened as a project with every page filled.

    assets/demo_project.zip
      manifest.json           what it was made from and with; the SHA-256 of every file
      labels.json             the drawing and the label events, with their times
      artifacts/<id>/...      every artifact but the pool
      runs/<id>/...           the jobs: settings, status, progress, result

The pool is not in it: it is imported from the bundled images (see :mod:`semiprune_core.demo.content`). Every
file is checked against the archive's manifest and every artifact against its own before it appears.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

from semiprune_core import files, jobs, steps
from semiprune_core.demo.content import Content, content_for
from semiprune_core.demo.run import ANNOTATOR
from semiprune_core.errors import InvalidDataError, MissingStepError, WorkspaceError
from semiprune_core.exporting import export_coreset
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import Event, LabelStore, open_store
from semiprune_core.paths import studio_folder
from semiprune_core.progress import Progress, Stopped
from semiprune_core.project import artifacts
from semiprune_core.project.artifacts import versions
from semiprune_core.project.pool import read_id, show_id
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.results import CoresetRun, latest_pseudo
from semiprune_core.training import keep_snapshot

ARCHIVE = studio_folder() / "assets" / "demo_project.zip"
MOST_BYTES = 8_000_000
SCHEMA = 1
TITLE, NAME, KIND = "Finished demo", "finished-demo", "finished_demo"
MANIFEST, LABELS = "manifest.json", "labels.json"
MARK = "finished_demo"
"""Set in project.json once everything is there."""
RUN_FILES = ("job.json", "status.json", "progress.jsonl", "result.json")
EVENT_FIELDS = ("event_id", "annotator", "action", "source", "group_id", "lead_time_ms", "made_ms")
WHEN = (2020, 1, 1, 0, 0, 0)
"""The date of every entry: the same project gives the same archive."""


# --- opening ---------------------------------------------------------------------------------------------------------


def is_bundled() -> bool:
    return ARCHIVE.is_file()


def is_open(workspace: Workspace) -> bool:
    """Whether the workspace holds the whole finished demo already."""
    return NAME in workspace and bool(workspace.project(NAME).config.get(MARK))


def open_finished_demo(workspace: Workspace) -> jobs.Job | None:
    """Add the finished demo to the workspace as a project; returns the job, or None if it is there already."""
    if is_open(workspace):
        return None
    if not is_bundled():
        raise MissingStepError(
            f"{ARCHIVE.name} is missing. Restore it from the repository, or run `make demo-artifacts`."
        )
    is_new = NAME not in workspace
    project = workspace.create(TITLE, name=NAME) if is_new else workspace.project(NAME)
    last = next(iter(jobs.list_jobs(project, KIND)), None)
    if last is None and not is_new and project.artifacts():
        raise WorkspaceError(
            f"A project of your own is named '{NAME}'. Copy it under another name, delete it, then open the demo.",
            code="PROJECT_EXISTS",
        )
    if last is None or last.status().state == jobs.DONE:
        last = jobs.submit(project, KIND, {})
    elif last.status().is_resumable:
        last.resume()
    jobs.supervise(workspace)
    return last


def unpack(project: Project, progress: Progress, archive: Path | None = None) -> None:
    """Fill a project from the archive; calling it again leaves what is there alone."""
    with zipfile.ZipFile(archive or ARCHIVE) as packed:
        manifest = _checked(packed)
        if not project.has_pool():
            import_source(project, ImportSettings(source=SourceSpec("demo").to_json()), progress)
            project = project.workspace.project(project.name)
        content = content_for(packed, manifest, project.pool())
        _put_labels(open_store(project), project, json.loads(packed.read(LABELS)))
        snapshot = open_store(project).snapshot()
        if manifest["labels"] not in (snapshot.hash, snapshot.hash_by_name):
            raise InvalidDataError(
                "The finished demo's labels are not the ones it was trained on. Restore its archive."
            )
        keep_snapshot(project, snapshot)
        keep_snapshot(project, dataclasses.replace(snapshot, class_ids=()))  # what an older archive's runs pin
        folders = _folders(manifest)
        for number, folder in enumerate(folders, start=1):
            _put_folder(content, manifest, project, folder)
            _report(progress, number, len(folders), "folders")
    coresets = project.artifacts("coreset")
    for number, artifact in enumerate(coresets, start=1):
        export_coreset(project, CoresetRun(artifact), "csv")
        _report(progress, number, len(coresets), "exports")
    project.update(**{MARK: True})


def _report(progress: Progress, done: int, total: int, unit: str) -> None:
    progress.report(done, total, unit=unit)
    if progress.should_stop():
        raise Stopped


def _checked(packed: zipfile.ZipFile) -> Mapping[str, Any]:
    """The archive's manifest, once every file in it was checked."""
    manifest = json.loads(packed.read(MANIFEST))
    if manifest.get("schema") != SCHEMA:
        raise WorkspaceError(f"{ARCHIVE.name} was written by another version. Run `make demo-artifacts`.")
    if difference := next(differences(packed, manifest), None):
        raise WorkspaceError(
            f"{ARCHIVE.name} is damaged: {difference}. Restore it from the repository.", code="DAMAGED"
        )
    return manifest


def differences(packed: zipfile.ZipFile, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Where the archive differs from its manifest."""
    names = {*packed.namelist()} - {MANIFEST}
    yield from (f"{name} is not in its manifest" for name in sorted(names - {*manifest["files"]}))
    for name, digest in manifest["files"].items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            yield f"{name} points outside it"
        elif name not in names:
            yield f"{name} is missing"
        elif hashlib.sha256(packed.read(name)).hexdigest() != digest:
            yield f"{name} was changed"


def _folders(manifest: Mapping[str, Any]) -> list[str]:
    """``artifacts/<id>``, then ``runs/<id>``."""
    folders = dict.fromkeys(str(PurePosixPath(*PurePosixPath(name).parts[:2])) for name in manifest["files"])
    runs = [folder for folder in folders if folder.startswith("runs/")]
    return [*(f"artifacts/{name}" for name in manifest["artifacts"]), *runs]


def _put_folder(content: Content, manifest: Mapping[str, Any], project: Project, folder: str) -> None:
    """Unpack a folder aside, verify it if it is an artifact, and give it its name."""
    final = project.folder / folder
    if final.exists():
        return
    aside = final.with_name(f".{final.name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        with files.named_disk_errors(final):
            for name in manifest["files"]:
                if name.startswith(f"{folder}/"):
                    path = aside / PurePosixPath(name).relative_to(folder)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    files.write_bytes(path, content.read(name))
            if folder.startswith("artifacts/"):
                problems = artifacts.differences(aside)
                if artifacts.open_artifact(aside).hash != content.hashes[final.name]:
                    problems.append("it is not the one that the archive names")
                if problems:
                    raise InvalidDataError(f"{final.name} of the finished demo cannot be verified: {problems[0]}.")
            os.rename(aside, final)
            files.sync_folder(final.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _clock_at(seconds: float) -> Callable[[], float]:
    """A clock that stands still."""
    return lambda: seconds


def _put_labels(store: LabelStore, project: Project, record: Mapping[str, Any]) -> None:
    """Repeat the drawing and replay the label events at their times."""
    if store.last_seq:
        return
    pool, clock = project.pool(), store.clock
    try:
        store.clock = lambda: record["drawing"]["saved_ms"] / 1000
        store.classes.add(record["classes"], annotator=record["drawing"]["annotator"])
        if store.drawings.latest() is None:
            how = {name: record["drawing"][name] for name in ("seed", "count", "annotator")}
            store.drawings.draw(pool_hash=pool.hash, ids=pool.ids, duplicate_of=pool.duplicate_of, **how)
        class_ids = {label_class.name: label_class.class_id for label_class in store.classes.all()}
        for moment, rows in groupby(record["events"], key=lambda row: row["saved_ms"]):
            store.clock = _clock_at(moment / 1000)
            store.append(
                [
                    Event(
                        **{name: row[name] for name in EVENT_FIELDS if row.get(name) is not None},
                        image_id=read_id(row["image_id"]),
                        class_id=None if row["class"] is None else class_ids[row["class"]],
                    )
                    for row in rows
                ]
            )
    finally:
        store.clock = clock


# --- making ----------------------------------------------------------------------------------------------------------


def write_archive(project: Project, path: Path = ARCHIVE, *, settings: Mapping[str, Any] | None = None) -> int:
    """Write a finished project of the bundled pool as the archive; returns its size in bytes."""
    missing = [place.step.title for place in steps.standing(project) if place.state != "done"]
    if [title for title in missing if title != steps.BY_KEY["evaluate"].title]:
        raise MissingStepError(f"The project is not finished; missing: {', '.join(missing)}.")
    packable = sorted(
        (artifact for artifact in project.artifacts() if artifact.kind != "pool"), key=lambda artifact: artifact.id
    )
    store = open_store(project)
    content = {LABELS: json.dumps(_labels_of(store), ensure_ascii=False).encode()}
    for artifact in packable:
        for name in (artifacts.MANIFEST, *artifact.manifest["files"]):
            content[f"artifacts/{artifact.id}/{name}"] = artifact.path(name).read_bytes()
    for job in jobs.list_jobs(project):
        if job.status().state == jobs.DONE and job.kind in ("ssl", "dynamics", "map", "evaluate", "search"):
            for name in RUN_FILES:
                if (job.folder / name).is_file():
                    content[f"runs/{job.id}/{name}"] = (job.folder / name).read_bytes()
    manifest = {
        "schema": SCHEMA,
        "title": TITLE,
        "pool": project.pool().hash,
        "labels": latest_pseudo(project).artifact.inputs["labels"],
        "settings": dict(settings or {}),
        "artifacts": {artifact.id: artifact.hash for artifact in packable},
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in content.items()},
        "versions": versions(),
    }
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, part in {MANIFEST: files.pretty_json(manifest), **content}.items():
            entry = zipfile.ZipInfo(name, WHEN)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            packed.writestr(entry, part)
    size = data.tell()
    if size > MOST_BYTES:
        raise InvalidDataError(
            f"The finished demo is {size / 1e6:.1f} MB; at most {MOST_BYTES / 1e6:.0f} MB may be shipped."
        )
    files.write_bytes(path, data.getvalue())
    return size


def _labels_of(store: LabelStore) -> dict[str, Any]:
    drawing = store.drawings.latest()
    assert drawing is not None
    names = {label_class.class_id: label_class.name for label_class in store.classes.all()}
    return {
        "classes": list(names.values()),
        "drawing": {
            "seed": drawing.seed,
            "count": len(drawing),
            "annotator": ANNOTATOR,
            "saved_ms": drawing.saved_ms,
        },
        "events": [
            {
                **{name: row[name] for name in EVENT_FIELDS if row[name] is not None},
                "image_id": show_id(row["image_id"]),
                "class": names.get(row["class_id"]),
                "saved_ms": row["saved_ms"],
            }
            for row in store.events()
        ],
    }
