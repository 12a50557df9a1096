"""Map."""

from __future__ import annotations

from pages.parts import project as projects
from semiprune_core.line import BY_KEY

projects.require("map")
projects.title(BY_KEY["map"].title, BY_KEY["map"].purpose)
