"""Small matrices on one thread: on a busy machine threads that wait for each other cost more than they bring."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from threadpoolctl import threadpool_limits


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Numpy and scipy multiply on one thread for the block, or the decorated function; the same bits on any machine."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield
