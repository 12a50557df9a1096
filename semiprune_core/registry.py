"""Named things that live one to a file: scores, selectors, sources, algorithms, job kinds, formats.

A package holds a :class:`Registry`, its modules register into it, and :func:`import_siblings` imports them all,
so a new method is one new file and no list has to be edited.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, cast

from semiprune_core.errors import UnknownNameError

T = TypeVar("T")
Registered = TypeVar("Registered")


class Registry(Generic[T]):
    """A read-only mapping from name to thing, filled by the decorator :meth:`register`.

    Facts given to ``register`` (``title=``, ``higher_is=``, ...) are kept beside the thing and read by :meth:`facts`.
    """

    def __init__(self, word: str) -> None:
        self.word = word
        self._things: dict[str, T] = {}
        self._facts: dict[str, dict[str, Any]] = {}

    def register(self, name: str, **facts: Any) -> Callable[[Registered], Registered]:
        """A decorator that adds a thing and gives it back as it is, with its own type."""

        def add(thing: Registered) -> Registered:
            if name in self._things:
                raise ValueError(f"The {self.word} '{name}' is registered twice. Give one of them another name.")
            self._things[name] = cast(T, thing)
            self._facts[name] = {"title": name, **facts}
            return thing

        return add

    def __getitem__(self, name: str) -> T:
        try:
            return self._things[name]
        except KeyError:
            close = difflib.get_close_matches(name, self._things, n=1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            known = ", ".join(sorted(self._things)) or "none"
            raise UnknownNameError(f"Unknown {self.word} '{name}'.{hint} Known: {known}.") from None

    def __contains__(self, name: object) -> bool:
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)

    def facts(self, name: str) -> dict[str, Any]:
        """What was said about ``name`` when it was registered."""
        self[name]
        return dict(self._facts[name])

    def title(self, name: str) -> str:
        return str(self.facts(name)["title"])


def import_siblings(package: str, path: list[str]) -> None:
    """Import every module of ``package``, in alphabetical order; a broken one fails loudly."""
    for module in sorted(pkgutil.iter_modules(path), key=lambda found: found.name):
        if not module.name.startswith("_"):
            importlib.import_module(f"{package}.{module.name}")
