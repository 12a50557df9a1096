"""Select."""

from __future__ import annotations

from pages.parts import project as projects
from semiprune_core.line import BY_KEY

project = projects.require("select")
projects.title(project, BY_KEY["select"].title, BY_KEY["select"].purpose)
