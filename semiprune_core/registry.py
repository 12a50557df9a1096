"""Named things that live one to a file: scores, selectors, sources, algorithms, job kinds, formats.

A package holds a :class:`Registry`, its modules register into it, and :func:`import_siblings` imports them all,
so a new method is one new file and no list has to be edited. :func:`import_installed` does the same for packages from
outside the tree, which name their modules as Python entry points. What breaks there is left out and told.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar, cast

from semiprune_core.errors import UnknownNameError

T = TypeVar("T")
Registered = TypeVar("Registered")
NAME = re.compile(r"[\w.:-]+", re.ASCII)


class Registry(Generic[T]):
    """A read-only mapping from name to thing, filled by the decorator :meth:`register`.

    Facts given to ``register`` (``title=``, ``higher_is=``, ...) are kept beside the thing and read by :meth:`facts`;
    those in ``required`` must be given. ``check`` looks at name and thing and raises where they will not do.
    """

    def __init__(
        self, word: str, *, required: Iterable[str] = (), check: Callable[[str, T], None] | None = None
    ) -> None:
        self.word = word
        self.required = tuple(required)
        self._check = check
        self._things: dict[str, T] = {}
        self._facts: dict[str, dict[str, Any]] = {}

    def register(self, name: str, **facts: Any) -> Callable[[Registered], Registered]:
        """A decorator that adds a thing and gives it back as it is, with its own type."""

        def add(thing: Registered) -> Registered:
            if name in self._things:
                raise ValueError(f"The {self.word} '{name}' is registered twice. Give one of them another name.")
            if not NAME.fullmatch(name):
                raise ValueError(f"'{name}' is no name for a {self.word}. Use letters, digits and underscores.")
            if missing := [fact for fact in self.required if fact not in facts]:
                raise ValueError(f"The {self.word} '{name}' does not say its {', '.join(missing)}.")
            if self._check is not None:
                self._check(name, cast(T, thing))
            self._things[name] = cast(T, thing)
            self._facts[name] = {"title": name, "package": _loading.package, **facts}
            _loading.added.append((self, name))
            return thing

        return add

    def _remove(self, name: str) -> None:
        del self._things[name], self._facts[name]

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

    def package(self, name: str) -> str | None:
        """The installed package that ``name`` comes from; None for what is in the tree."""
        found = self.facts(name)["package"]
        return None if found is None else str(found)

    def title(self, name: str) -> str:
        """Its name for people, with the package where it comes from one."""
        return _from(str(self.facts(name)["title"]), self.package(name))

    def listed(self, names: Iterable[str] | None = None) -> str:
        """The names (all by default) in a line, each with the package where it comes from one."""
        chosen = self if names is None else names
        return ", ".join(_from(name, self.package(name) if name in self else None) for name in chosen)


def _from(words: str, package: str | None) -> str:
    return words if package is None else f"{words} ({package})"


def import_siblings(package: str, path: list[str]) -> None:
    """Import every module of ``package``, in alphabetical order; a broken one fails loudly."""
    for module in sorted(pkgutil.iter_modules(path), key=lambda found: found.name):
        if not module.name.startswith("_"):
            importlib.import_module(f"{package}.{module.name}")


# --- from outside the tree -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Broken:
    """An entry point that could not be loaded."""

    word: str
    name: str
    package: str
    reason: str

    @property
    def sentence(self) -> str:
        return (
            f"The {self.word} '{self.name}' of the package {self.package} is left out: {self.reason} "
            "Repair or remove the package."
        )


@dataclass
class _Loading:
    """What is being loaded: the package whose entry point it is (None in the tree), and what it has registered."""

    package: str | None
    added: list[tuple[Registry[Any], str]]


_loading = _Loading(None, [])
_broken: list[Broken] = []


def broken() -> tuple[Broken, ...]:
    """The entry points that were left out so far, for pages and command line to tell."""
    return tuple(_broken)


@cache
def _entry_points() -> importlib.metadata.EntryPoints:
    """All entry points of this Python, listed once per process."""
    return cast(importlib.metadata.EntryPoints, importlib.metadata.entry_points())  # 3.11 has another class for all


def import_installed(group: str, registry: Registry[Any]) -> None:
    """Load the entry points of ``group``; each registers itself, as a file of the tree does."""
    global _loading
    for entry in sorted(_entry_points().select(group=group), key=lambda found: (found.name, found.value)):
        package = entry.dist.name if entry.dist is not None else entry.value.partition(":")[0]
        before, _loading = _loading, _Loading(package, [])
        try:
            entry.load()
        except Exception as error:  # noqa: BLE001  a stranger's code may raise anything
            for place, name in _loading.added:
                place._remove(name)
            reason = f"{type(error).__name__}: {str(error).removesuffix('.')}."
            _broken.append(Broken(registry.word, entry.name, package, reason))
        finally:
            _loading = before
