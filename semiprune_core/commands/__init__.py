"""The command line's commands, one file per family. A new one is a new file: it registers itself."""

from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.registry import import_siblings

import_siblings(__name__, list(__path__))

__all__ = ["COMMANDS", "Command", "Console", "Outcome"]
