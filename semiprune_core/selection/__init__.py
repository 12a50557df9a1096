"""Selection: from evidence to a coreset's positions. A new selector is one new file here."""

from semiprune_core.registry import import_siblings
from semiprune_core.selection.base import SELECTORS

import_siblings(__name__, list(__path__))

__all__ = ["SELECTORS"]
