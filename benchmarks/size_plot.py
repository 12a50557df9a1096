"""The gain over Random against the size of the pool as SVG, a panel per ratio. The same numbers, the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import log

from semiprune_core.evaluation.plot import COLOURS, GREY, nice_ticks
from semiprune_core.evaluation.view import Difference, percent
from semiprune_core.methods import METHODS

WIDE, TALL, LEFT, TOP, BOTTOM = 230, 330, 48, 62, 62
"""A panel's width and the whole picture's height; room left of, above and below the panels."""
INSIDE = 24
"""From a panel's border to its first and last size."""
APART = 5
"""Between the bars of the two methods at one size."""
BEYOND = 2.0
"""So many points below the lowest mean and above the highest are shown."""
QUIET = "#5d6b6c"
Gains = Mapping[tuple[str, float], Mapping[int, Difference]]
"""Differences to Random by (method, ratio) and pool size."""


def size_plot(gains: Gains) -> str:
    """A line per method in each ratio's panel, with 95% intervals where there are several seeds."""
    ratios = sorted({ratio for _, ratio in gains})
    wide = LEFT + WIDE * len(ratios) + 12
    panels = [part for number, ratio in enumerate(ratios) for part in _panel(gains, ratio, LEFT + WIDE * number)]
    inside = "".join([*_frame(gains, wide), *panels])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {TALL}" width="{wide}" height="{TALL}" '
        'role="img" font-family="Inter, Helvetica, Arial, sans-serif" font-size="12" fill="#1c2526">'
        f'<title>Gain over Random against pool size</title><rect width="100%" height="100%" fill="#ffffff"/>{inside}'
        "</svg>\n"
    )


def _sizes(gains: Gains) -> list[int]:
    return sorted({n for by_size in gains.values() for n in by_size})


def _ticks(gains: Gains) -> list[float]:
    """Around the means: an interval that is far longer than others is cut off at the border."""
    means = [100 * one.mean for by_size in gains.values() for one in by_size.values()]
    return nice_ticks(min(0.0, *means) - BEYOND, max(0.0, *means) + BEYOND)


def _x(gains: Gains, n: int) -> float:
    """Within a panel, by the logarithm of the size."""
    low, high = log(_sizes(gains)[0]), log(_sizes(gains)[-1])
    return INSIDE + (log(n) - low) / max(high - low, 1e-9) * (WIDE - 2 * INSIDE - 8)


def _y(gains: Gains, points: float) -> float:
    ticks = _ticks(gains)
    return TALL - BOTTOM - (points - ticks[0]) / (ticks[-1] - ticks[0]) * (TALL - TOP - BOTTOM)


def _methods(gains: Gains) -> dict[str, str]:
    """The methods and their colours."""
    return dict(zip(dict.fromkeys(method for method, _ in gains), COLOURS, strict=False))


def _frame(gains: Gains, wide: float) -> Iterator[str]:
    for number, (method, colour) in enumerate(_methods(gains).items()):
        at = LEFT + 190 * number
        yield f'<path d="M{at} 18h28" stroke="{colour}" stroke-width="2"/><circle cx="{at + 14}" cy="18" r="4" '
        yield f'fill="{colour}"/><text x="{at + 36}" y="22">{METHODS.title(method)}</text>'
    for tick in _ticks(gains):
        yield f'<text x="{LEFT - 8}" y="{_y(gains, tick) + 4:.1f}" text-anchor="end" fill="{QUIET}">{tick:g}</text>'
    half = (TOP + TALL - BOTTOM) / 2
    yield f'<text x="{(LEFT + wide) / 2:.0f}" y="{TALL - 10}" text-anchor="middle">Images in the pool</text>'
    yield f'<text x="14" y="{half:.0f}" text-anchor="middle" transform="rotate(-90 14 {half:.0f})">'
    yield "Points above Random</text>"


def _panel(gains: Gains, ratio: float, left: float) -> Iterator[str]:
    for tick in _ticks(gains):
        looks = f'stroke="{GREY}" stroke-dasharray="6 4"' if tick == 0 else 'stroke="#e1e5e5"'
        yield f'<path d="M{left:g} {_y(gains, tick):.1f}h{WIDE - 12}" {looks}/>'
    yield f'<text x="{left + (WIDE - 12) / 2:g}" y="{TOP - 14}" text-anchor="middle">{percent(ratio)} pruned</text>'
    for n in _sizes(gains):
        place = f'x="{left + _x(gains, n):.1f}" y="{TALL - BOTTOM + 18}"'
        yield f'<text {place} text-anchor="middle" fill="{QUIET}">{_short(n)}</text>'
    colours = _methods(gains)
    for number, (method, colour) in enumerate(colours.items()):
        shift = APART * (number - (len(colours) - 1) / 2)
        yield from _line(gains, gains.get((method, ratio), {}), left + shift, colour)


def _line(gains: Gains, by_size: Mapping[int, Difference], left: float, colour: str) -> Iterator[str]:
    places = [(left + _x(gains, n), 100 * one.mean, 100 * (one.half or 0)) for n, one in sorted(by_size.items())]
    if places:
        line = "L".join(f"{at:.1f} {_y(gains, mean):.1f}" for at, mean, _ in places)
        yield f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
    ticks = _ticks(gains)
    for at, mean, half in places:
        if half:
            low, high = (_y(gains, min(max(mean + side * half, ticks[0]), ticks[-1])) for side in (-1, 1))
            ends = f"M{at:.1f} {low:.1f}V{high:.1f}"
            yield f'<path d="{ends}" stroke="{colour}" stroke-opacity="0.55"/>'
        yield f'<circle cx="{at:.1f}" cy="{_y(gains, mean):.1f}" r="4" fill="{colour}"/>'


def _short(n: int) -> str:
    """A size in few letters.

    >>> _short(24000), _short(1500)
    ('24k', '1500')
    """
    return f"{n // 1000}k" if n % 1000 == 0 else f"{n}"
