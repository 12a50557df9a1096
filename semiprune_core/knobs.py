"""Knobs: what a person may set on a registered function, declared once, beside the argument it fills.

A keyword-only argument becomes a knob by its annotation,

    n_bins: Annotated[int, Knob(low=1, help="How many bins the range of the score is cut into.")] = 50

and the pages, the command line and the manifests read all they need from there: name, type and default from the
signature, the rest from the :class:`Knob`. Keyword-only arguments without one stay between functions.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from semiprune_core.checks import check_choice, check_range
from semiprune_core.errors import InvalidSettingError

SCORE_NAMES = "scores"
"""As ``choices``: the names of the scores that there are."""
N_EPOCHS, PRUNING_RATIO = "n_epochs", "pruning_ratio"
"""As ``low`` or ``high``: the length of the scored run, the pruning ratio of the coreset."""
KINDS: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Knob:
    """What is declared of a knob; the last four fields are filled from the signature.

    ``low`` and ``high`` are numbers, or name what limits the knob where it is drawn: N_EPOCHS, PRUNING_RATIO or another
    setting. ``shown`` is what a control spans where less than all that is legal is of use. ``flag`` is the name on the
    command line (its own by default). Of scores alone: ``setting`` is the name under which the value is kept, and knobs
    of one setting are one knob (by default each score has its own); ``tune`` offers it where a coreset is chosen, too.
    """

    help: str = ""
    title: str = ""
    low: float | str | None = None
    high: float | str | None = None
    low_open: bool = False
    high_open: bool = False
    shown: tuple[float | str, float | str] | None = None
    step: float | None = None
    choices: tuple[str, ...] | str = ()
    flag: str = ""
    setting: str = ""
    tune: bool = False
    name: str = ""
    kind: type = float
    optional: bool = False
    default: Any = None

    @property
    def words(self) -> str:
        """Its name for people."""
        return self.title or self.name.replace("_", " ").capitalize()

    def check(self, value: Any, name: str = "") -> None:
        """Refuse a value of another type or out of range; limits that are names are the function's to check."""
        name = name or self.name
        if value is None and self.optional:
            return
        is_kind = isinstance(value, (int, float) if self.kind is float else self.kind)
        if not is_kind or (isinstance(value, bool) and self.kind is not bool):
            raise InvalidSettingError(f"{name} must be {KINDS[self.kind]}, got {value!r}.")
        if self.choices and self.choices != SCORE_NAMES:
            check_choice(name, value, self.choices)
        low, high = (limit if isinstance(limit, (int, float)) else None for limit in (self.low, self.high))
        if low is not None or high is not None:
            check_range(name, value, low=low, high=high, low_open=self.low_open, high_open=self.high_open)

    def parse(self, text: str, name: str = "") -> Any:
        """The value that a person typed.

        >>> Knob(kind=int).parse("3"), Knob(kind=bool).parse("no"), Knob(optional=True).parse("none")
        (3, False, None)
        """
        if self.optional and text.lower() == "none":
            return None
        try:
            value = _YES_OR_NO[text.lower()] if self.kind is bool else self.kind(text)
        except (KeyError, ValueError):
            raise InvalidSettingError(f"{name or self.name} must be {KINDS[self.kind]}, got '{text}'.") from None
        self.check(value, name)
        return value

    def limits(self, around: Mapping[str, Any]) -> tuple[float | None, float | None]:
        """The range to draw, with names of limits looked up in ``around``."""

        def number(limit: float | str | None) -> float | None:
            return around.get(limit) if isinstance(limit, str) else limit

        low, high = self.shown or (self.low, self.high)
        return number(low), number(high)


_YES_OR_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@cache
def knobs_of(function: Callable[..., Any]) -> Mapping[str, Knob]:
    """The knobs of ``function`` by the name of their argument, in its order.

    >>> def keep(images: list, *, share: typing.Annotated[float, Knob(low=0, high=1)] = 0.5, rng: Any = None): ...
    >>> knob = knobs_of(keep)["share"]
    >>> knob.kind, knob.default, list(knobs_of(keep))
    (<class 'float'>, 0.5, ['share'])
    """
    hints = typing.get_type_hints(function, include_extras=True)
    arguments = inspect.signature(function).parameters.values()
    found = {p.name: _knob(p, hints[p.name]) for p in arguments if p.kind is p.KEYWORD_ONLY and p.name in hints}
    return types.MappingProxyType({name: knob for name, knob in found.items() if knob is not None})


def _knob(argument: inspect.Parameter, hint: Any) -> Knob | None:
    declared = next((note for note in getattr(hint, "__metadata__", ()) if isinstance(note, Knob)), None)
    if declared is None:
        return None
    bare = hint.__origin__
    parts = typing.get_args(bare) if typing.get_origin(bare) in (types.UnionType, typing.Union) else (bare,)
    kinds = [kind for kind in parts if kind is not types.NoneType]
    if len(kinds) != 1 or kinds[0] not in KINDS:
        raise TypeError(f"The knob '{argument.name}' must be a bool, int, float or str (or None), not {bare}.")
    if argument.default is argument.empty:
        raise TypeError(f"The knob '{argument.name}' has no default. Give it one.")
    optional = types.NoneType in parts
    return dataclasses.replace(declared, name=argument.name, kind=kinds[0], optional=optional, default=argument.default)
