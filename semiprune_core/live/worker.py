"""``python -m semiprune_core.live.worker <project folder>``: started by :func:`semiprune_core.live.watch`."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from semiprune_core.jobs.context import LOG_FORMAT
from semiprune_core.live.follow import follow

NICENESS = 5  # the app and the person in front of it go first

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, stream=sys.stderr)
    os.nice(max(0, NICENESS - os.nice(0)))
    sys.exit(follow(Path(sys.argv[1])))
