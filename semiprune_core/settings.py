"""Settings: frozen dataclasses with JSON both ways.

Each step declares its own subclass of :class:`Settings` beside its code; this file holds what they share.
A value that is not legal is refused when the object is made, an unknown key when JSON is read.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Self

from semiprune_core.errors import InvalidSettingError


def check_names(values: Iterable[str], known: Collection[str]) -> None:
    """Refuse a name that no setting has, with the nearest one as a hint."""
    for name in values:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            raise InvalidSettingError(f"Unknown setting '{name}'.{hint} Known: {', '.join(sorted(known))}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Base of every step's settings. Subclasses validate in :meth:`check`."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # JSON knows lists only; settings hold tuples so that they stay frozen
            value = getattr(self, field.name)
            if isinstance(value, list):
                object.__setattr__(self, field.name, tuple(value))
        self.check()

    def check(self) -> None:
        """Raise :class:`InvalidSettingError` for illegal values."""

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        check_names(values, {field.name for field in dataclasses.fields(cls)})
        return cls(**values)

    def replace(self, **changes: Any) -> Self:
        """A copy with some values changed; unknown names are refused like in :meth:`from_json`."""
        return type(self).from_json({**self.to_json(), **changes})
