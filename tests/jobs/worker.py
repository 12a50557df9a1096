"""The worker of the tests: knows the tests' kinds beside the product's."""

from __future__ import annotations

import sys

from semiprune_core.jobs.worker import main
from tests.jobs import kinds  # noqa: F401 - registers them

if __name__ == "__main__":
    sys.exit(main())
