"""Words on their way to the page: user text shown literally, numbers as people read them."""

from __future__ import annotations

import re

from semiprune_core.paths import shown

SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|~:$<>&])")
ADDRESS = re.compile(r"(https?:(?=//)|www(?=\.)|@(?=[-\w]))", re.IGNORECASE)
JOINED = "\u2060"
"""A word joiner: it is not seen and breaks no line, and what it stands in is no address any more."""


def literal(text: str, limit: int = 120) -> str:
    """User text for a place that reads Markdown: every special character escaped, odd characters visible, no links."""
    return SPECIAL.sub(r"\\\1", ADDRESS.sub(rf"\1{JOINED}", shown(text, limit)))


def count(number: int, singular: str, plural: str | None = None) -> str:
    """``count(1, "image")`` is "1 image", ``count(6000, "image")`` "6,000 images"."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def interval(low: float, high: float, n: int | None = None) -> str:
    """How an interval of shares is written everywhere: "73.9% to 91.9%, n = 60"."""
    return f"{low:.1%} to {high:.1%}" + (f", n = {n:,}" if n is not None else "")


def duration(seconds: float | None) -> str:
    """A time span, rounded to what matters: "8 s", "3 min", "2 h 10 min"."""
    if seconds is None:
        return "unknown"
    whole = round(seconds)
    if whole < 90:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def size(n_bytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000 or unit == "GB":
            return f"{n_bytes:.0f} {unit}" if unit in ("B", "kB") else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    raise AssertionError("unreachable")
