"""A real disk of a few megabytes."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def mounted(folder: Path, megabytes: int) -> Iterator[Path]:
    """A small disk at ``folder``, which is made; where none can be mounted the test is skipped."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no small disk can be mounted here: it takes root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
