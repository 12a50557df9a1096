"""Export formats. A new format is one new file here: it registers itself."""

from semiprune_core.registry import import_siblings

import_siblings(__name__, list(__path__))
