"""Threads for work that may wait for the label store, apart from those that send pictures and files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

AT_ONCE = 16
T = TypeVar("T")
_limiter: RunVar[CapacityLimiter] = RunVar("semiprune_label_threads")


async def beside_pictures(work: Callable[[], T]) -> T:
    """Run ``work`` in one of a few threads of its kind: however many saves wait, pictures do not."""
    limiter = _limiter.get(None)
    if limiter is None:
        limiter = CapacityLimiter(AT_ONCE)
        _limiter.set(limiter)
    return await to_thread.run_sync(work, limiter=limiter)
