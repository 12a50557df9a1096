"""Copying, archiving, restoring and removing whole projects: what comes along, and what stays behind."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from semiprune_core import files
from semiprune_core.accounts import forget_members, make_owner
from semiprune_core.errors import SemiPruneError, WorkspaceError
from semiprune_core.jobs import list_jobs, states
from semiprune_core.labeling import (
    copies_note,
    copy_labels,
    forget_project,
    has_store,
    label_damage,
    put_back_labels,
    restore_labels,
    take_out_labels,
)
from semiprune_core.labeling.backups import Restored
from semiprune_core.paths import shown
from semiprune_core.project import migrations, rights
from semiprune_core.project.workspace import Project, Workspace, check_config

ARCHIVE = ".archive"

COPIED = ("artifacts", "exports", "snapshots")
"""What never changes once it is there: copies share these files where the disk can."""


def copy_project(workspace: Workspace, name: str, title: str) -> Project:
    """A second project with the same images, labels and results, to go on from any step without touching the first.

    Jobs that are over come along, so that what they made can be brought up to date; those under way stay behind.
    Whoever copies it owns the copy.
    """
    project, account = workspace.project(name), rights.account()
    rights.check("copy", name)
    with rights.acted_by_the_app():
        copy = _copy(workspace, project, title)
    make_owner(workspace, copy.name, account)
    rights.record("copied", name, f"as {copy.name}")
    return copy


def _copy(workspace: Workspace, project: Project, title: str) -> Project:
    copy = workspace.create(title)
    try:
        with files.named_disk_errors(copy.folder):
            for part in COPIED:
                if (project.folder / part).is_dir():
                    shutil.copytree(
                        project.folder / part,
                        copy.folder / part,
                        copy_function=_share,
                        ignore=shutil.ignore_patterns(".*"),
                        dirs_exist_ok=True,
                    )
            for job in list_jobs(project):
                if job.status().is_over:
                    skip = shutil.ignore_patterns("work", "stop")
                    shutil.copytree(job.folder, copy.runs_folder / job.id, ignore=skip)
            if has_store(project):
                copy_labels(project, copy)
            copy.update(pool=project.config["pool"], features=project.config.get("features", True))
    except BaseException:
        delete_project(workspace, copy.name)  # a copy is whole or not there
        raise
    return workspace.project(copy.name)


def _share(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk, or one that knows no links
        shutil.copyfile(source, target)


def delete_project(workspace: Workspace, name: str) -> None:
    """Remove a project, damaged or not: its labels and its folder; refused while one of its jobs is under way.

    The labels go first: a project made later under the same name must not find them.
    """
    project = workspace.damaged(name)
    rights.check("delete", name)
    _end_jobs(project)
    rights.record("deleted the project", name)
    forget_members(workspace, name)
    forget_project(project)
    trash = workspace.root / f".deleted-{name}-{secrets.token_hex(4)}"
    os.rename(project.folder, trash)
    shutil.rmtree(trash, ignore_errors=True)


def archive_project(workspace: Workspace, name: str) -> Path:
    """Move a project aside, as it is, with its labels; returns its new folder, which is no project any more."""
    project = workspace.damaged(name)
    rights.check("archive", name)
    _end_jobs(project)
    take_out_labels(project)
    archived = workspace.root / ARCHIVE / f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    with files.named_disk_errors(archived):
        archived.parent.mkdir(exist_ok=True)
        os.rename(project.folder, archived)
    rights.record("archived the project", name)
    forget_members(workspace, name)
    return archived


@dataclass(frozen=True)
class Archived:
    """A project that was moved aside: its folder's name in the archive, and what it was called."""

    folder: str
    name: str
    title: str
    when: str


def archived_projects(workspace: Workspace) -> list[Archived]:
    """What lies in the archive and whoever acts may bring back, newest first."""
    archived = []
    for folder in (workspace.root / ARCHIVE).glob("*"):
        config = _config(folder / migrations.PROJECT)
        parts = folder.name.rsplit("-", 3)
        if config is not None and len(parts) == 4 and rights.allows("archive", parts[0]):
            when = datetime.strptime(f"{parts[1]}{parts[2]}", "%Y%m%d%H%M%S")
            archived.append(Archived(folder.name, parts[0], str(config["title"]), f"{when:%Y-%m-%d %H:%M}"))
    return sorted(archived, key=lambda project: project.when, reverse=True)


def bring_back(workspace: Workspace, folder: str) -> Project:
    """Put an archived project back under its old name, with its labels; refused where that name is taken by now.

    Its members were forgotten when it was archived: whoever brings it back owns it.
    """
    archived = next((project for project in archived_projects(workspace) if project.folder == folder), None)
    if archived is None:
        raise WorkspaceError(f"There is no archived project '{shown(folder)}'.", code="NO_PROJECT")
    goal = workspace.root / archived.name
    if goal.exists():
        raise WorkspaceError(
            f"There is a project '{archived.name}' by now. Archive or delete that one first.", code="PROJECT_EXISTS"
        )
    with files.named_disk_errors(goal):
        os.rename(workspace.root / ARCHIVE / folder, goal)
    project = workspace.project(archived.name)
    put_back_labels(project)
    make_owner(workspace, archived.name, rights.account())
    rights.record("brought the project back", archived.name)
    return project


def has_backup(workspace: Workspace, name: str) -> bool:
    """Whether ``project.json`` cannot be read, but its backup can."""
    folder = workspace.damaged(name).folder
    return _config(folder / migrations.PROJECT) is None and _config(folder / migrations.BACKUP) is not None


def restore_project(workspace: Workspace, name: str) -> Project:
    """Put the backup of ``project.json`` in its place; what was there is kept beside it."""
    folder = workspace.damaged(name).folder
    config = _config(folder / migrations.BACKUP)
    if config is None:
        raise WorkspaceError(f"Project '{name}' has no backup that can be read.", code="NO_BACKUP")
    if (folder / migrations.PROJECT).exists():
        os.replace(folder / migrations.PROJECT, folder / f".project.json.damaged-{secrets.token_hex(2)}")
    migrations.write_config(folder, config)
    return workspace.project(name)


def restore(workspace: Workspace, name: str) -> list[str]:
    """Restore what is damaged of a project and has a copy: ``project.json`` and the labels; says what was done."""
    rights.check("archive", name)
    done = []
    if has_backup(workspace, name):
        restore_project(workspace, name)
        done.append("project.json was restored from its backup.")
    project = workspace.project(name)
    try:
        if label_damage(project) is not None:
            done.append(_told(restore_labels(project)))
    except WorkspaceError as error:
        raise WorkspaceError(" ".join([*done, str(error)]), code=error.code) from error
    if not done:
        sound = f"Nothing of project '{name}' needs restoring."
        raise WorkspaceError(" ".join(filter(None, (sound, copies_note()))), code="SOUND")
    rights.record("restored the project", name)
    return done


def _told(restored: Restored) -> str:
    copied = f"the copy of {restored.copied} and " if restored.copied else ""
    lost = f" {restored.n_lost:,} later events could not be restored." if restored.n_lost else " Nothing is lost."
    aside = f" The damaged file was kept as {restored.aside.name}." if restored.aside else ""
    return f"The labels were restored from {copied}what could be proven: {restored.n_entries:,} events.{lost}{aside}"


def _config(path: Path) -> dict[str, Any] | None:
    """What a ``project.json`` or its backup says; None where it cannot be read."""
    try:
        config = files.read_object(path, {"schema": int})
        check_config(path.parent, config)
    except (SemiPruneError, OSError):
        return None
    return config


def _end_jobs(project: Project) -> None:
    under_way = [job for job in list_jobs(project) if job.status().state not in states.OVER]
    if any(job.kind != "features" for job in under_way):
        raise WorkspaceError(
            f"A job of '{project.name}' is still running or waiting. Stop it first.", code="PROJECT_BUSY"
        )
    for job in under_way:  # features that nobody asked for and nobody will miss
        job.stop()
        job.kill()
