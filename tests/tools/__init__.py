"""Other people's programs that exports, models and trackers are for. Each has an environment of its own, which
``python -m tests.tools`` makes; in there its tests run, everywhere else they are skipped with their reason.
"""

from __future__ import annotations

import importlib.util
import os

import pytest

NAMED = "SEMIPRUNE_TOOL"
"""The tool whose environment this is: nothing of it may be missing."""


def needs(*modules: str) -> None:
    """Skip the test where a module is missing; in the tools' own environments that is a failure."""
    lacking = [name for name in modules if importlib.util.find_spec(name) is None]
    if lacking and NAMED in os.environ:
        pytest.fail(f"{', '.join(lacking)} should be installed in the environment of {os.environ[NAMED]}.")
    if lacking:
        pytest.skip(f"{', '.join(lacking)} is not installed: make tools-full runs this (python -m tests.tools)")
