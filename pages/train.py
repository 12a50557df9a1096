"""Train."""

from __future__ import annotations

from pages.parts import project as projects
from semiprune_core.line import BY_KEY

projects.require("train")
projects.title(BY_KEY["train"].title, BY_KEY["train"].purpose)
