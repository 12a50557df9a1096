"""An evaluation as a picture: accuracy against pruning ratio as SVG, and the looks that the page's chart shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

from semiprune_core.evaluation_view import FULL, RANDOM, Cell, EvaluationView, percent
from semiprune_core.paths import shown

Scale = Callable[[float], float]
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255", "#999933", "#332288", "#117733")
"""Told apart by people with every kind of colour vision (Okabe and Ito; beyond them Tol's muted set)."""
ON_DARK = ("#4ea8de", "#f28e4b", "#2cc295", "#e39ac4", "#f2c14e", "#a5d8f3", "#d66f9c", "#c9c95c", "#9a8ee8", "#63c17e")
"""The same order, lighter, for a dark background."""
GREY, DASH = "#7a8585", "6 4"
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
WIDTH, HEIGHT = 760.0, 460.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 190.0, 18.0, 48.0


def colours_of(view: EvaluationView, *, on_dark: bool = False) -> dict[str, str]:
    """A colour for each method, Random grey."""
    colours = ON_DARK if on_dark else COLOURS
    others = [method for method in view.methods if method != RANDOM]
    return {RANDOM: GREY, **{method: colours[number % len(colours)] for number, method in enumerate(others)}}


def symbols_of(view: EvaluationView) -> dict[str, str]:
    """A marker for each method, so that no line needs its colour alone to be told apart."""
    others = [method for method in view.methods if method != RANDOM]
    return {RANDOM: "circle-open", **{method: SYMBOLS[number % len(SYMBOLS)] for number, method in enumerate(others)}}


def nice_ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers that cover [low, high], about so many.

    >>> nice_ticks(41.3, 88.0)
    [40.0, 50.0, 60.0, 70.0, 80.0, 90.0]
    """
    span = max(high - low, 1e-9)
    rough = span / max(about - 1, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * one for one in (1, 2, 5, 10) if power * one >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, max(last, first + 1) + 1)]


def band_of(cell: Cell, band: str) -> float:
    """Half the band at a point: the standard deviation ``sd``, the 95% ``interval``, or nothing."""
    return {"sd": cell.sd, "interval": cell.half}.get(band) or 0.0


def svg_plot(view: EvaluationView, *, band: str = "sd", title: str = "", inline: bool = False) -> str:
    """Accuracy against pruning ratio with bands; white background, ready for a paper. The same view, the same bytes.

    ``inline`` is for the inside of an HTML page, where the picture is as wide as its place.
    """
    every = [*view.cells.values(), *([view.full] if view.full else [])]
    if not every:
        every = [Cell(FULL, 0.0, {0: 0.5}, 0.0, 0.0, n_train=0, n_test=1)]
    lowest = min(100 * (cell.mean - band_of(cell, band)) for cell in every)
    highest = max(100 * (cell.mean + band_of(cell, band)) for cell in every)
    ticks = nice_ticks(lowest, max(highest, lowest + 1))
    ratios = list(view.ratios) or [0.0, 1.0]
    low, high = (ratios[0], ratios[-1]) if len(ratios) > 1 else (ratios[0] - 0.05, ratios[0] + 0.05)

    def x(ratio: float) -> float:
        return LEFT + 12 + (ratio - low) / (high - low) * (WIDTH - LEFT - RIGHT - 24)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (value - ticks[0]) / (ticks[-1] - ticks[0]) * (HEIGHT - TOP - BOTTOM)

    parts = [_axis(view.axis, ticks, ratios, x, y)]
    colours, symbols = colours_of(view), symbols_of(view)
    end = WIDTH - RIGHT
    if view.full is not None:
        level = y(100 * view.full.mean)
        parts.append(
            f'<line x1="{LEFT:.1f}" y1="{level:.1f}" x2="{end:.1f}" y2="{level:.1f}" stroke="#1c2526" '
            'stroke-width="1.2" stroke-dasharray="2 3"/>'
        )
    for method in view.methods:
        row = view.row(method)
        if row:
            parts.append(_line(row, x, y, colours[method], symbols[method], band, dashed=method == RANDOM))
    parts.append(_legend(view, colours, symbols))
    name = escape(title or f"Test accuracy by {view.axis.lower()}")
    alone = f'xmlns="http://www.w3.org/2000/svg" width="{WIDTH:g}" height="{HEIGHT:g}" '
    return (
        f'<svg {"" if inline else alone}viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
        'font-family="Inter, Helvetica, Arial, sans-serif" font-size="12">'
        f'<title>{name}</title><rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


def _axis(axis: str, ticks: Sequence[float], ratios: Sequence[float], x: Scale, y: Scale) -> str:
    end = WIDTH - RIGHT
    parts = [
        f'<line x1="{LEFT:.1f}" y1="{y(tick):.1f}" x2="{end:.1f}" y2="{y(tick):.1f}" stroke="#e1e5e5"/>'
        f'<text x="{LEFT - 8:.1f}" y="{y(tick) + 4:.1f}" text-anchor="end" fill="#5d6b6c">{tick:g}</text>'
        for tick in ticks
    ]
    parts += [
        f'<text x="{x(ratio):.1f}" y="{HEIGHT - BOTTOM + 18:.1f}" text-anchor="middle" fill="#5d6b6c">'
        f"{percent(ratio)}</text>"
        for ratio in ratios
    ]
    middle, tall = (LEFT + end) / 2, (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text x="{middle:.1f}" y="{HEIGHT - 10:.1f}" text-anchor="middle" fill="#1c2526">{escape(axis)}</text>'
        f'<text x="14" y="{tall:.1f}" text-anchor="middle" fill="#1c2526" transform="rotate(-90 14 {tall:.1f})">'
        "Test accuracy (%)</text>"
    )
    return "".join(parts)


def _line(row: Sequence[Cell], x: Scale, y: Scale, colour: str, symbol: str, band: str, *, dashed: bool) -> str:
    upper = [(x(c.pruning_ratio), y(100 * (c.mean + band_of(c, band)))) for c in row]
    lower = [(x(c.pruning_ratio), y(100 * (c.mean - band_of(c, band)))) for c in row]
    middle = [(x(c.pruning_ratio), y(100 * c.mean)) for c in row]
    parts = []
    if band != "none" and len(row) > 1 and any(band_of(cell, band) for cell in row):
        parts.append(f'<polygon points="{_points(upper + lower[::-1])}" fill="{colour}" fill-opacity="0.13"/>')
    dash = f' stroke-dasharray="{DASH}"' if dashed else ""
    parts.append(f'<polyline points="{_points(middle)}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
    parts += [_marker(symbol, px, py, colour) for px, py in middle]
    return "".join(parts)


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{px:.1f},{py:.1f}" for px, py in places)


def _marker(symbol: str, px: float, py: float, colour: str, r: float = 4.0) -> str:
    shapes = {
        "square": [(-r, -r), (r, -r), (r, r), (-r, r)],
        "diamond": [(0, -1.3 * r), (1.3 * r, 0), (0, 1.3 * r), (-1.3 * r, 0)],
        "triangle-up": [(0, -1.2 * r), (1.2 * r, r), (-1.2 * r, r)],
    }
    if symbol in shapes:
        return f'<polygon points="{_points([(px + dx, py + dy) for dx, dy in shapes[symbol]])}" fill="{colour}"/>'
    if symbol in ("cross", "x"):
        a, b = ((r, 0.0), (0.0, r)) if symbol == "cross" else ((r * 0.8, r * 0.8), (r * 0.8, -r * 0.8))
        return "".join(
            f'<line x1="{px - dx:.1f}" y1="{py - dy:.1f}" x2="{px + dx:.1f}" y2="{py + dy:.1f}" stroke="{colour}" '
            'stroke-width="2.4"/>'
            for dx, dy in (a, b)
        )
    fill = "#ffffff" if symbol == "circle-open" else colour
    return f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{r:g}" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'


def _legend(view: EvaluationView, colours: Mapping[str, str], symbols: Mapping[str, str]) -> str:
    left, parts = WIDTH - RIGHT + 18, []
    entries = [method for method in view.methods if view.row(method)]
    for number, method in enumerate([*([FULL] if view.full else []), *entries]):
        level = TOP + 10 + 20 * number
        dash = {FULL: "2 3", RANDOM: DASH}.get(method)
        colour = "#1c2526" if method == FULL else colours[method]
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        parts.append(
            f'<line x1="{left:.1f}" y1="{level:.1f}" x2="{left + 26:.1f}" y2="{level:.1f}" stroke="{colour}" '
            f'stroke-width="2"{dashed}/>'
        )
        if method != FULL:
            parts.append(_marker(symbols[method], left + 13, level, colour))
        words = escape(shown(view.title(method), 22))
        parts.append(f'<text x="{left + 33:.1f}" y="{level + 4:.1f}" fill="#1c2526">{words}</text>')
    return "".join(parts)
