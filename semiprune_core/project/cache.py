"""The last few answers of something slow, by what they depend on; shared by all threads of the server."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class LRUCache(Generic[T]):
    """At most ``max_size`` answers; the least recently used one goes first. Each is computed once."""

    def __init__(self, max_size: int) -> None:
        self.max_size = max_size
        self._lock = threading.Lock()
        self._answers: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            if key not in self._answers:
                self._answers[key] = make()
                while len(self._answers) > self.max_size:
                    self._answers.popitem(last=False)
            self._answers.move_to_end(key)
            return self._answers[key]
