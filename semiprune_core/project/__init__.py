"""A project on the disk: its folder in the workspace, its pool, its artifacts, and what every version may read.

It exports :class:`Workspace` and :class:`Project`, :class:`Pool`, and :class:`Artifact` with its :class:`Draft`.
"""

from semiprune_core.project.artifacts import Artifact, Draft, open_artifact
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project, Workspace

__all__ = ["Artifact", "Draft", "Pool", "Project", "Workspace", "open_artifact"]
