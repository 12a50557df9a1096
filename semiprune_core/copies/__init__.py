"""Keeping the workspace tidy: copying, archiving, restoring and removing whole projects."""

from semiprune_core.copies.projects import (
    Archived,
    archive_project,
    archived_projects,
    bring_back,
    copy_project,
    delete_project,
    has_backup,
    restore,
    restore_project,
)

__all__ = [
    "Archived",
    "archive_project",
    "archived_projects",
    "bring_back",
    "copy_project",
    "delete_project",
    "has_backup",
    "restore",
    "restore_project",
]
