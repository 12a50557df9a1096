"""Label."""

from __future__ import annotations

from pages.parts import project as projects
from semiprune_core.line import BY_KEY

projects.require("label")
projects.title(BY_KEY["label"].title, BY_KEY["label"].purpose)
