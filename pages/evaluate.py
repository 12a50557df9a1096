"""Evaluate."""

from __future__ import annotations

from pages.parts import project as projects
from semiprune_core.line import BY_KEY

project = projects.require("evaluate")
projects.title(project, BY_KEY["evaluate"].title, BY_KEY["evaluate"].purpose)
