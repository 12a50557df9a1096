"""Evaluate."""

from __future__ import annotations

from pages.parts import project as projects
from semiprune_core.line import BY_KEY

projects.require("evaluate")
projects.title(BY_KEY["evaluate"].title, BY_KEY["evaluate"].purpose)
