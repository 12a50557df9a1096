"""Map."""

from __future__ import annotations

from pages.parts import project as projects
from semiprune_core.line import BY_KEY

project = projects.require("map")
projects.title(project, BY_KEY["map"].title, BY_KEY["map"].purpose)
