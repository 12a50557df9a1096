"""Scores."""

from __future__ import annotations

from pages.parts import project as projects
from semiprune_core.line import BY_KEY

projects.require("scores")
projects.title(BY_KEY["scores"].title, BY_KEY["scores"].purpose)
