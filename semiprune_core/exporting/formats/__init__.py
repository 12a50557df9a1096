"""Export formats. A new format is one new file here: it registers itself."""

from semiprune_core.exporting.base import FORMATS
from semiprune_core.registry import import_installed, import_siblings

import_siblings(__name__, list(__path__))
import_installed("semiprune.formats", FORMATS)
