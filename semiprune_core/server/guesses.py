"""Wrong passwords are slowed down: by address, and all together."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict, deque
from collections.abc import Callable

FREE = 5
"""Wrong passwords from one address before it has to wait; then 1, 2, 4, ... seconds."""
LONGEST = 60.0
FORGET = 3600.0
ALL_TOGETHER = 30
"""Wrong passwords in a minute, from everywhere, before all new guesses wait."""
MINUTE = 60.0
REMEMBERED = 10_000
"""Addresses; of more the oldest are forgotten."""


class Guesses:
    """How long somebody must wait before the next password is looked at; with ``together``, everybody too."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, together: bool = True) -> None:
        self._clock = clock
        self._is_together = together
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._latest: deque[float] = deque(maxlen=ALL_TOGETHER)

    def wait(self, address: str) -> float:
        """Seconds; 0 means now."""
        now = self._clock()
        count, last = self._wrong.get(_group(address), (0, now))
        own = last + _pause(count) - now
        crowd = self._is_together and len(self._latest) == ALL_TOGETHER
        together = self._latest[0] + MINUTE - now if crowd else 0.0
        return max(0.0, own, together)

    def wrong(self, address: str) -> None:
        now = self._clock()
        count, last = self._wrong.pop(_group(address), (0, now))
        self._wrong[_group(address)] = (count + 1 if now - last < FORGET else 1, now)
        self._latest.append(now)
        if len(self._wrong) > REMEMBERED:
            self._wrong.popitem(last=False)

    def right(self, address: str) -> None:
        self._wrong.pop(_group(address), None)


def _pause(count: int) -> float:
    return 0.0 if count < FREE else min(LONGEST, 2.0 ** min(count - FREE, 10))


def _group(address: str) -> str:
    """One household has 2^64 addresses of the new kind: they count as one."""
    try:
        number = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((number, 64), strict=False)) if number.version == 6 else address
