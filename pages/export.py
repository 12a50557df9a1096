"""Export."""

from __future__ import annotations

from pages.parts import project as projects
from semiprune_core.line import BY_KEY

project = projects.require("export")
projects.title(project, BY_KEY["export"].title, BY_KEY["export"].purpose)
