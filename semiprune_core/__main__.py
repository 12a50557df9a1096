"""``python -m semiprune_core`` is ``semiprune``."""

import sys

from semiprune_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
