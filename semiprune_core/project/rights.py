"""Whose rights count just now. Whatever reads or writes a project asks here; what the answer is, ``accounts`` knows.

A request acts with the rights of its session (:func:`acted_by`), a page with those its provider names
(:func:`ask_for_rights`). Where nobody acts, in jobs, scripts and an app without accounts, everything is allowed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Protocol

from semiprune_core.errors import ForbiddenError


class Rights(Protocol):
    """What somebody may do, asked anew each time: a role may change while a page is open."""

    @property
    def account(self) -> str:
        """The id of the account that acts; "" for the command line."""
        ...

    def allows(self, act: str, project: str = "") -> bool: ...

    def check(self, act: str, project: str = "") -> None:
        """Raise :class:`ForbiddenError` where ``act`` is not allowed."""
        ...

    def record(self, act: str, project: str = "", note: str = "") -> None:
        """Write into the trail that ``act`` was done."""
        ...


Provider = Callable[[], Rights | None]
_providers: list[Provider] = []
_SYSTEM = object()
_acting: ContextVar[object] = ContextVar("semiprune_rights", default=None)


def acting() -> Rights | None:
    """The rights that count here; None where everything is allowed."""
    rights = _acting.get()
    if rights is _SYSTEM:
        return None
    if rights is not None:
        return rights  # type: ignore[return-value]
    for provider in _providers:
        if (rights := provider()) is not None:
            return rights
    return None


def ask_for_rights(provider: Provider) -> None:
    """Ask ``provider`` for the rights of every thread that was not given any."""
    _providers[:] = [provider]


@contextlib.contextmanager
def acted_by(rights: Rights | None) -> Iterator[None]:
    """Everything inside is done with ``rights``; None changes nothing."""
    mark = _acting.set(_acting.get() if rights is None else rights)
    try:
        yield
    finally:
        _acting.reset(mark)


@contextlib.contextmanager
def acted_by_the_app() -> Iterator[None]:
    """What follows from an act that was allowed is the app's own doing."""
    mark = _acting.set(_SYSTEM)
    try:
        yield
    finally:
        _acting.reset(mark)


def allows(act: str, project: str = "") -> bool:
    rights = acting()
    return rights is None or rights.allows(act, project)


def check(act: str, project: str = "") -> None:
    """Refuse ``act`` in words where whoever acts may not do it."""
    rights = acting()
    if rights is not None:
        rights.check(act, project)


def check_own(name: str) -> None:
    """Refuse to act under another name than one's own."""
    rights = acting()
    if rights is not None and rights.account and name != rights.account:
        raise ForbiddenError(
            "This was done under another name than yours. Reload the page; if somebody else used this browser before, "
            "log in as that person to save what is still waiting.",
            code="OTHER_ACCOUNT",
        )


def record(act: str, project: str = "", note: str = "") -> None:
    rights = acting()
    if rights is not None:
        rights.record(act, project, note)


def account() -> str | None:
    """The id of the account that acts; None where nobody is logged in."""
    rights = acting()
    return rights.account or None if rights is not None else None
