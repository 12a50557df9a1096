"""What a browser may send: messages with declared fields, one way to read them, one form of complaint.

    @dataclass(frozen=True, kw_only=True)
    class Rename(Message):
        name: Annotated[str, Text(64)]
        copies: Annotated[int, Whole(1, 9)] = 1

``Rename.read({"name": "cats", "copies": 12})`` says "copies must be a whole number from 1 to 9, got 12."
"""

from __future__ import annotations

import dataclasses
import functools
import reprlib
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from semiprune_core.errors import InvalidDataError
from semiprune_core.paths import shown
from semiprune_core.project.pool import read_id


class Rule(Protocol):
    """What a value must be, in words; ``read`` returns it, or raises ``ValueError`` where it is something else."""

    @property
    def must(self) -> str: ...

    def read(self, value: Any) -> Any: ...


@dataclass(frozen=True)
class Anything:
    """Checked by whoever uses it."""

    must: str = "a JSON value"

    def read(self, value: Any) -> Any:
        return value


@dataclass(frozen=True)
class AnyText:
    """Text whose limits are checked by whoever uses it."""

    must: str = "text"

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError
        return value


@dataclass(frozen=True)
class Text:
    most: int
    least: int = 1

    @property
    def must(self) -> str:
        return f"{self.least} to {self.most} printable characters"

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or not self.least <= len(value) <= self.most or not value.isprintable():
            raise ValueError
        return value


@dataclass(frozen=True)
class Whole:
    low: int
    high: int

    @property
    def must(self) -> str:
        return f"a whole number from {self.low} to {self.high}"

    def read(self, value: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # JavaScript has one kind of number
        if isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            raise ValueError
        return value


@dataclass(frozen=True)
class Flag:
    must: str = "true or false"

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError
        return value


@dataclass(frozen=True)
class Choice:
    choices: tuple[str, ...]

    @property
    def must(self) -> str:
        return f"one of {', '.join(self.choices)}"

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or value not in self.choices:
            raise ValueError
        return value


@dataclass(frozen=True)
class ImageId:
    must: str = "an image id, 16 hex digits in quotes"

    def read(self, value: Any) -> int:
        if not isinstance(value, str):
            raise ValueError
        return read_id(value)


@dataclass(frozen=True)
class ListOf:
    rule: Rule
    most: int
    what: str

    @property
    def must(self) -> str:
        return f"a list of at most {self.most} {self.what}"

    def read(self, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) > self.most:
            raise ValueError
        return tuple(self.rule.read(item) for item in value)


@dataclass(frozen=True, kw_only=True)
class Message:
    """Base of every message. A field is ``Annotated`` with its rule; null stands for a field whose default is None."""

    title: ClassVar[str] = "request"

    @classmethod
    def read(cls, values: Any) -> Self:
        """The message in a JSON value; a wrong, missing or unknown field is refused by its name."""
        if not isinstance(values, Mapping):
            raise InvalidDataError(f"A {cls.title} is a JSON object.", code="BAD_JSON")
        rules = _rules(cls)  # type: ignore[arg-type]  # mypy takes a class with __eq__ for unhashable
        for name in values:
            if name not in rules:
                fields = ", ".join(sorted(rules))
                raise InvalidDataError(f"A {cls.title} has no field '{shown(str(name), 40)}'. Its fields: {fields}.")
        given = {}
        for field in dataclasses.fields(cls):
            if field.name in values and not (values[field.name] is None and field.default is None):
                given[field.name] = read_field(field.name, rules[field.name], values[field.name])
            elif field.default is dataclasses.MISSING:
                raise InvalidDataError(f"A {cls.title} needs {field.name}: {rules[field.name].must}.")
        return cls(**given)


@functools.cache
def _rules(message: type[Message]) -> dict[str, Rule]:
    hints = typing.get_type_hints(message, include_extras=True)
    return {field.name: hints[field.name].__metadata__[0] for field in dataclasses.fields(message)}


def read_field(name: str, rule: Rule, value: Any) -> Any:
    """One value by its rule; a sentence with the field's name where it is something else."""
    try:
        return rule.read(value)
    except InvalidDataError:
        raise
    except ValueError:
        got = shown(reprlib.repr(value), 60)
        raise InvalidDataError(f"{name} must be {rule.must}, got {got}.") from None
