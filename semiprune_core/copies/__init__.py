"""Keeping the workspace tidy: copying, archiving, restoring and removing whole projects."""

from semiprune_core.copies.projects import (
    archive_project,
    copy_project,
    delete_project,
    has_backup,
    restore,
    restore_project,
)

__all__ = ["archive_project", "copy_project", "delete_project", "has_backup", "restore", "restore_project"]
