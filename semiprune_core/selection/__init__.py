"""Selection: from evidence to a coreset's positions. A new selector is one new file here."""

from semiprune_core.registry import import_installed, import_siblings
from semiprune_core.selection.base import SELECTORS
from semiprune_core.selection.beta import beta_log_density, beta_parameters, difficult_mean
from semiprune_core.selection.defaults import (
    AIMS,
    Basis,
    Defaults,
    default_knobs,
    has_aims,
    learned_from,
    paper_beta,
    paper_cutoff,
)
from semiprune_core.selection.options import Choice, SelectionOptions, choose, knob_defaults

import_siblings(__name__, list(__path__))
import_installed("semiprune.selectors", SELECTORS)

__all__ = [
    "AIMS",
    "SELECTORS",
    "Basis",
    "Choice",
    "Defaults",
    "SelectionOptions",
    "beta_log_density",
    "beta_parameters",
    "choose",
    "default_knobs",
    "difficult_mean",
    "has_aims",
    "knob_defaults",
    "learned_from",
    "paper_beta",
    "paper_cutoff",
]
