"""Scores."""

from __future__ import annotations

from pages.parts import project as projects
from semiprune_core.line import BY_KEY

project = projects.require("scores")
projects.title(project, BY_KEY["scores"].title, BY_KEY["scores"].purpose)
