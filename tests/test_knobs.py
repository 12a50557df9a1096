"""Knobs: declared in a signature, checked and parsed in one form."""

from __future__ import annotations

from typing import Annotated

import pytest

from semiprune_core.errors import InvalidSettingError
from semiprune_core.knobs import N_EPOCHS, Knob, knobs_of


def keep(
    images: list[int],
    *,
    share: Annotated[float, Knob("How many.", low=0, high=1, high_open=True)] = 0.5,
    n_late: Annotated[int | None, Knob(title="Late", low=1, high=N_EPOCHS)] = None,
    end: Annotated[str, Knob(choices=("hard", "easy"))] = "hard",
    sorted_first: Annotated[bool, Knob()] = False,
    between_functions: float = 1.0,
) -> None: ...


def test_name_type_and_default_come_from_the_signature():
    found = knobs_of(keep)
    assert list(found) == ["share", "n_late", "end", "sorted_first"]
    assert [knob.kind for knob in found.values()] == [float, int, str, bool]
    assert [knob.default for knob in found.values()] == [0.5, None, "hard", False]
    assert [knob.words for knob in found.values()] == ["Share", "Late", "End", "Sorted first"]
    assert found["n_late"].optional and not found["share"].optional


@pytest.mark.parametrize(
    "name, text, value",
    [("share", "0.25", 0.25), ("n_late", "3", 3), ("n_late", "none", None), ("end", "easy", "easy")],
)
def test_what_a_person_typed_becomes_a_value(name, text, value):
    assert knobs_of(keep)[name].parse(text) == value


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("share", "1", "share must be at least 0 and below 1, got 1"),
        ("share", "half", "share must be a number, got 'half'"),
        ("share", "nan", "share must be at least 0"),
        ("n_late", "2.5", "n_late must be a whole number, got '2.5'"),
        ("n_late", "0", "n_late must be at least 1, got 0"),
        ("end", "middle", "end must be one of hard, easy"),
        ("sorted_first", "perhaps", "sorted_first must be true or false"),
    ],
)
def test_what_is_not_legal_is_refused_in_words(name, text, words):
    with pytest.raises(InvalidSettingError, match=words):
        knobs_of(keep)[name].parse(text)


@pytest.mark.parametrize("value", [True, "3", 2.5])
def test_values_of_another_type_are_refused(value):
    with pytest.raises(InvalidSettingError, match="a whole number"):
        knobs_of(keep)["n_late"].check(value)


def test_limits_that_are_names_are_looked_up_where_the_knob_is_drawn():
    assert knobs_of(keep)["n_late"].limits({"n_epochs": 30}) == (1, 30)


def test_a_knob_without_a_default_or_of_another_type_is_refused():
    def no_default(*, share: Annotated[float, Knob()]) -> None: ...

    def odd(*, shares: Annotated[list[float], Knob()] = ()) -> None: ...  # type: ignore[assignment]

    with pytest.raises(TypeError, match="'share' has no default"):
        knobs_of(no_default)
    with pytest.raises(TypeError, match="'shares' must be a bool, int, float or str"):
        knobs_of(odd)
