"""A plot of the gain over Random against the size of the pool, as SVG. The same numbers, the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import log

from semiprune_core.evaluation_plot import nice_ticks
from semiprune_core.evaluation_view import percent
from semiprune_core.methods import METHODS

WIDE, TALL, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 48, 190, 16, 44
COLOURS = {"semi_aum_cutoff": "#0072b2", "semi_dual_beta": "#d55e00"}
DASHES = {0.7: "none", 0.8: "6 3", 0.9: "2 3"}
FAINT = "#5d6b6c"
Gains = Mapping[tuple[str, float], Mapping[int, float]]


def size_plot(gains: Gains) -> str:
    """One line per method and ratio; ``gains`` are points by (method, ratio) and pool size."""
    inside = "".join([*_axes(gains), *_lines(gains)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {TALL}" width="{WIDE}" height="{TALL}" '
        'role="img" font-family="Inter, Helvetica, Arial, sans-serif" font-size="12" fill="#1c2526">'
        f'<title>Gain over Random against pool size</title><rect width="100%" height="100%" fill="#ffffff"/>{inside}'
        "</svg>\n"
    )


def _sizes(gains: Gains) -> list[int]:
    return sorted({n for by_size in gains.values() for n in by_size})


def _ticks(gains: Gains) -> list[float]:
    values = [gain for by_size in gains.values() for gain in by_size.values()]
    return nice_ticks(min(0.0, *values), max(1.0, *values))


def _x(gains: Gains, n: int) -> float:
    low, high = log(_sizes(gains)[0]), log(_sizes(gains)[-1])
    return LEFT + 12 + (log(n) - low) / max(high - low, 1e-9) * (WIDE - LEFT - RIGHT - 24)


def _y(gains: Gains, value: float) -> float:
    ticks = _ticks(gains)
    return TALL - BOTTOM - (value - ticks[0]) / (ticks[-1] - ticks[0]) * (TALL - TOP - BOTTOM)


def _axes(gains: Gains) -> Iterator[str]:
    for tick in _ticks(gains):
        at = _y(gains, tick)
        yield f'<path d="M{LEFT} {at:.1f}H{WIDE - RIGHT}" stroke="{FAINT if tick == 0 else "#dfe4e4"}"/>'
        yield f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end" fill="{FAINT}">{tick:g}</text>'
    for n in _sizes(gains):
        place = f'x="{_x(gains, n):.1f}" y="{TALL - BOTTOM + 18}"'
        yield f'<text {place} text-anchor="middle" fill="{FAINT}">{n:,}</text>'
    middle, half = (LEFT + WIDE - RIGHT) / 2, TALL / 2
    yield f'<text x="{middle:.0f}" y="{TALL - 6}" text-anchor="middle">Images in the pool</text>'
    yield f'<text x="14" y="{half:.0f}" text-anchor="middle" transform="rotate(-90 14 {half:.0f})">'
    yield "Points above Random</text>"


def _lines(gains: Gains) -> Iterator[str]:
    for number, ((method, ratio), by_size) in enumerate(gains.items()):
        colour, at = COLOURS[method], TOP + 8 + 20 * number
        places = [(_x(gains, n), _y(gains, by_size[n])) for n in sorted(by_size)]
        line = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in places)
        look = f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{DASHES[ratio]}"'
        yield f'<path d="{line}M{WIDE - RIGHT + 14} {at}h28" {look}/>'
        for a, b in places:
            yield f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>'
        words = f"{METHODS.title(method).partition('+')[0]}, {percent(ratio)}"
        yield f'<text x="{WIDE - RIGHT + 50}" y="{at + 4}">{words}</text>'
