"""SSL algorithms, one to a file; a new file is a new algorithm."""

from semiprune_core.learning.ssl.base import ALGORITHMS, Algorithm, Step, Targets
from semiprune_core.registry import import_installed, import_siblings

import_siblings(__name__, __path__)
import_installed("semiprune.ssl", ALGORITHMS)

__all__ = ["ALGORITHMS", "Algorithm", "Step", "Targets"]
