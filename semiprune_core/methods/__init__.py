"""Methods: whole recipes from evidence to a coreset. A new method is one new file here."""

from semiprune_core.methods.base import METHODS, Method, every_knob, needs_of, open_knobs, score_title, select_coreset
from semiprune_core.registry import import_installed, import_siblings

import_siblings(__name__, list(__path__))
import_installed("semiprune.methods", METHODS)

__all__ = ["METHODS", "Method", "every_knob", "needs_of", "open_knobs", "score_title", "select_coreset"]
