"""Export."""

from __future__ import annotations

from pages.parts import project as projects
from semiprune_core.line import BY_KEY

projects.require("export")
projects.title(BY_KEY["export"].title, BY_KEY["export"].purpose)
