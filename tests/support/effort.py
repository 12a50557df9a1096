"""How much is asked of a test run."""

import os

FULL = os.environ.get("SEMIPRUNE_FULL") == "1"
"""``make test-full``: what takes minutes runs in full; otherwise with a reduced count."""
