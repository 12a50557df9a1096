"""Copying and removing whole projects: what comes along, and what stays behind."""

from __future__ import annotations

import os
import secrets
import shutil

from semiprune_core import files
from semiprune_core.errors import WorkspaceError
from semiprune_core.jobs import list_jobs, states
from semiprune_core.labeling import copy_labels, forget_project, has_store
from semiprune_core.project.workspace import Project, Workspace

COPIED = ("artifacts", "exports", "snapshots")
"""What never changes once it is there: copies share these files where the disk can."""


def copy_project(workspace: Workspace, name: str, title: str) -> Project:
    """A second project with the same images, labels and results, to go on from any step without touching the first.

    Jobs that are over come along, so that what they made can be brought up to date; those under way stay behind.
    """
    project = workspace.project(name)
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
    """Remove a project's labels and its folder with everything in it; refused while one of its jobs is under way.

    The labels go first: a project made later under the same name must not find them.
    """
    project = workspace.project(name)
    under_way = [job for job in list_jobs(project) if job.status().state not in states.OVER]
    if any(job.kind != "features" for job in under_way):
        raise WorkspaceError(f"A job of '{name}' is still running or waiting. Stop it first.", code="PROJECT_BUSY")
    for job in under_way:  # features that nobody asked for and nobody will miss
        job.stop()
        job.kill()
    forget_project(project)
    trash = workspace.root / f".deleted-{name}-{secrets.token_hex(4)}"
    os.rename(project.folder, trash)
    shutil.rmtree(trash, ignore_errors=True)
