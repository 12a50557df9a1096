"""Pseudo-labels."""

from __future__ import annotations

from pages.parts import project as projects
from semiprune_core.line import BY_KEY

projects.require("pseudo")
projects.title(BY_KEY["pseudo"].title, BY_KEY["pseudo"].purpose)
