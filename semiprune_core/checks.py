"""Complaints about parameters, all in one form: which parameter, what it must be, what it got."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from semiprune_core.errors import InvalidDataError, InvalidSettingError


def check_range(
    name: str,
    value: float,
    *,
    low: float | None = None,
    high: float | None = None,
    low_open: bool = False,
    high_open: bool = False,
) -> None:
    """Raise unless ``low <= value <= high``; ``*_open`` makes an end exclusive."""
    below = low is not None and (value <= low if low_open else value < low)
    above = high is not None and (value >= high if high_open else value > high)
    if below or above or value != value:
        left = "" if low is None else f"{'above' if low_open else 'at least'} {low:g}"
        right = "" if high is None else f"{'below' if high_open else 'at most'} {high:g}"
        must = " and ".join(part for part in (left, right) if part)
        raise InvalidSettingError(f"{name} must be {must}, got {value:g}.")


def check_choice(name: str, value: Any, choices: Collection[Any]) -> None:
    if value not in choices:
        allowed = ", ".join(str(choice) for choice in choices)
        raise InvalidSettingError(f"{name} must be one of {allowed}; got {value!r}.")


def check_finite(name: str, values: np.ndarray) -> None:
    """Raise when an array holds NaN or infinity, naming the first place."""
    bad = ~np.isfinite(values)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InvalidDataError(
            f"{name} holds {int(bad.sum())} values that are not finite, the first at {first}. Recompute it."
        )
