"""Waiting for a condition, in one place."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 240.0
"""Seconds; a busy machine is slow, not wrong."""


def wait_until(condition: Callable[[], T], what: str = "the condition", seconds: float = PATIENCE) -> T:
    """The first truthy answer of ``condition()``; fails with ``what`` when there is none in time."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"Waited {seconds:g} s in vain: {what}."
        time.sleep(0.005)
    return found
