"""Label."""

from __future__ import annotations

from pages.parts import project as projects
from semiprune_core.line import BY_KEY

project = projects.require("label")
projects.title(project, BY_KEY["label"].title, BY_KEY["label"].purpose)
