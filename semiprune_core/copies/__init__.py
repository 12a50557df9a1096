"""Keeping the workspace tidy: copying and removing whole projects."""

from semiprune_core.copies.projects import copy_project, delete_project

__all__ = ["copy_project", "delete_project"]
