"""Select."""

from __future__ import annotations

from pages.parts import project as projects
from semiprune_core.line import BY_KEY

projects.require("select")
projects.title(BY_KEY["select"].title, BY_KEY["select"].purpose)
