"""An evaluation as a picture: accuracy or the lead over Random by pruning ratio, as SVG and as the page has it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from semiprune_core.evaluation.settings import RANDOM
from semiprune_core.evaluation.view import Cell, EvaluationView, percent
from semiprune_core.paths import shown
from semiprune_core.results.search import OVER
from semiprune_core.trials import FULL

Scale = Callable[[float], float]
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255", "#999933", "#332288", "#117733")
"""Told apart by people with every kind of colour vision (Okabe and Ito; beyond them Tol's muted set)."""
ON_DARK = ("#4ea8de", "#f28e4b", "#2cc295", "#e39ac4", "#f2c14e", "#a5d8f3", "#d66f9c", "#c9c95c", "#9a8ee8", "#63c17e")
"""The same order, lighter, for a dark background."""
GREY, DASH = "#7a8585", "6 4"
FULL_LOOKS = 'stroke="#1c2526" stroke-width="1.2" stroke-dasharray="2 3"'
TWIN = "__not_relabeled"
"""At the end of a method's name: the same coresets with the labels of the model, in the method's colour, dotted."""
CROWD = 7
"""So many lines can be told apart at a glance; of more, only some are shown at first."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
WIDTH, HEIGHT = 760.0, 460.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 190.0, 18.0, 48.0


def colours_of(view: EvaluationView, *, on_dark: bool = False) -> dict[str, str]:
    """A colour for each method, Random grey."""
    colours = ON_DARK if on_dark else COLOURS
    others = [method for method in view.methods if method != RANDOM and not method.endswith(TWIN)]
    own = {RANDOM: GREY, **{method: colours[number % len(colours)] for number, method in enumerate(others)}}
    return own | {method: own[method.removesuffix(TWIN)] for method in view.methods if method.endswith(TWIN)}


def symbols_of(view: EvaluationView) -> dict[str, str]:
    """A marker for each method, so that no line needs its colour alone to be told apart."""
    others = [method for method in view.methods if method != RANDOM]
    return {RANDOM: "circle-open", **{method: SYMBOLS[number % len(SYMBOLS)] for number, method in enumerate(others)}}


def shown_first(view: EvaluationView, favourites: Sequence[str]) -> list[str]:
    """The methods to draw at first where there are too many: Random, the ``favourites``, then the best by mean rank."""
    rows = {method: view.row(method) for method in view.methods if view.row(method)}
    if len(rows) <= CROWD:
        return list(rows)
    ranks = {method: [_rank(view, cell) for cell in row] for method, row in rows.items()}
    best = sorted(rows, key=lambda m: (m != RANDOM, m not in favourites, sum(ranks[m]) / len(ranks[m])))[:CROWD]
    return [method for method in rows if method in best]


def _rank(view: EvaluationView, cell: Cell) -> int:
    here = [view.cell(method, cell.pruning_ratio) for method in view.methods]
    return sum(other.mean > cell.mean for other in here if other is not None)


def nice_ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers that cover [low, high], about so many.

    >>> nice_ticks(41.3, 88.0)
    [40.0, 50.0, 60.0, 70.0, 80.0, 90.0]
    """
    span = max(high - low, 1e-9)
    rough = span / max(about - 1, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, max(last, first + 1) + 1)]


class Point(NamedTuple):
    """A cell in the plot: where on the axis, how high, and half its band; None where there is none, as for one seed."""

    at: float
    height: float
    half: float | None

    @property
    def ends(self) -> tuple[float, float]:
        return self.height - (self.half or 0.0), self.height + (self.half or 0.0)


@dataclass(frozen=True)
class PlotStyle:
    """What a plot shows: ``accuracy`` in percent or the ``difference`` to Random in points, and which band around it.

    Bands are the standard deviation (``sd``), the 95% ``interval`` or ``none``. Differences are paired and have their
    interval alone.
    """

    content: str = "accuracy"
    band: str = "sd"

    @property
    def axis(self) -> str:
        return "Test accuracy (%)" if self.content == "accuracy" else "Points above Random"

    def axis_of(self, view: EvaluationView) -> str:
        """The axis with the kind of test."""
        return f"{self.axis}, {view.tested_by.lower()}" if view.tested_by else self.axis

    @property
    def has_whiskers(self) -> bool:
        """Whether all bands are bars at the points: intervals of differences overlap too much for areas."""
        return self.content == "difference"

    def points(self, row: Sequence[Cell]) -> list[Point]:
        """The cells of a method, without those that cannot be compared where differences are shown."""
        points = []
        for cell in row:
            if self.content == "accuracy":
                height, half = cell.mean, {"sd": cell.sd, "interval": cell.half}.get(self.band)
            elif cell.difference is not None:
                height, half = cell.difference.mean, None if self.band == "none" else cell.difference.half
            else:
                continue
            points.append(Point(cell.pruning_ratio, 100 * height, None if half is None else 100 * half))
        return points

    def areas(self, row: Sequence[Point]) -> list[list[Point]]:
        """The stretches of neighbours in a row that are drawn with an area around them."""
        return [] if self.has_whiskers else [part for part in _with_band(row) if len(part) > 1]

    def bars(self, row: Sequence[Point]) -> list[Point]:
        """The points of a row that are drawn with a bar: where an area would have no width, too."""
        return [point for part in _with_band(row) if self.has_whiskers or len(part) == 1 for point in part]


ACCURACY = PlotStyle()


def _with_band(row: Sequence[Point]) -> list[list[Point]]:
    """The stretches of neighbours that have a band."""
    return [list(part) for has_band, part in itertools.groupby(row, lambda point: point.half is not None) if has_band]


def side_by_side(rows: Mapping[str, Sequence[Point]], ratios: Sequence[float]) -> dict[str, list[Point]]:
    """The lines a little apart from each other along the axis, so that their bars do not stand on one another."""
    span = ratios[-1] - ratios[0] if len(ratios) > 1 else 0.1
    shifts = {method: 0.012 * span * (number - (len(rows) - 1) / 2) for number, method in enumerate(rows)}
    return {method: [point._replace(at=point.at + shifts[method]) for point in row] for method, row in rows.items()}


def svg_plot(view: EvaluationView, look: PlotStyle = ACCURACY, *, title: str = "", inline: bool = False) -> str:
    """The view against pruning ratio with bands; white background, ready for a paper. The same view, the same bytes.

    ``inline`` is for the inside of an HTML page, where the picture is as wide as its place.
    """
    rows = {method: look.points(view.row(method)) for method in view.methods}
    rows = {method: row for method, row in rows.items() if row}
    level = 0.0 if look.content == "difference" else 100 * view.full.mean if view.full else None
    every = [point for row in rows.values() for point in row]
    ends = [end for point in every for end in point.ends]
    ends = [*ends, *([] if level is None else [level])] or [50.0]
    ticks = nice_ticks(min(ends), max(*ends, min(ends) + 1))
    ratios = list(view.ratios) or [0.0, 1.0]
    low, high = (ratios[0], ratios[-1]) if len(ratios) > 1 else (ratios[0] - 0.05, ratios[0] + 0.05)

    def x(ratio: float) -> float:
        return LEFT + 12 + (ratio - low) / (high - low) * (WIDTH - LEFT - RIGHT - 24)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (value - ticks[0]) / (ticks[-1] - ticks[0]) * (HEIGHT - TOP - BOTTOM)

    parts = [_axis(view.axis, look.axis_of(view), ticks, ratios, x, y)]
    colours, symbols = colours_of(view), symbols_of(view)
    end = WIDTH - RIGHT
    across = None if level is None else RANDOM if look.content == "difference" else FULL
    if level is not None:
        looks = f'stroke="{GREY}" stroke-dasharray="{DASH}"' if across == RANDOM else FULL_LOOKS
        parts.append(f'<line x1="{LEFT:.1f}" y1="{y(level):.1f}" x2="{end:.1f}" y2="{y(level):.1f}" {looks}/>')
    drawn = side_by_side(rows, ratios) if look.has_whiskers or len(ratios) == 1 else rows
    for method, row in drawn.items():
        parts += [_area(part, x, y, colours[method]) for part in look.areas(row)]
        parts.append(_bars(look.bars(row), x, y, colours[method]))
        parts.append(_line(row, x, y, colours[method], symbols[method], dashed=_is_dashed(method)))
    parts.append(_legend(view, [*([across] if across else []), *rows], colours, symbols))
    name = escape(title or f"{look.axis.removesuffix(' (%)')} by {view.axis.lower()}")
    about = f"<desc>{escape(OVER)}</desc>" if view.has_spread else ""
    alone = f'xmlns="http://www.w3.org/2000/svg" width="{WIDTH:g}" height="{HEIGHT:g}" '
    return (
        f'<svg {"" if inline else alone}viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
        'font-family="Inter, Helvetica, Arial, sans-serif" font-size="12">'
        f'<title>{name}</title>{about}<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


def _is_dashed(method: str) -> bool:
    return method == RANDOM or method.endswith(TWIN)


def _axis(axis: str, height: str, ticks: Sequence[float], ratios: Sequence[float], x: Scale, y: Scale) -> str:
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
        f"{height}</text>"
    )
    return "".join(parts)


def _area(row: Sequence[Point], x: Scale, y: Scale, colour: str) -> str:
    lower, upper = ([(x(p.at), y(p.ends[side])) for p in row] for side in (0, 1))
    return f'<polygon points="{_points(upper + lower[::-1])}" fill="{colour}" fill-opacity="0.13"/>'


def _bars(row: Sequence[Point], x: Scale, y: Scale, colour: str) -> str:
    return "".join(
        f'<line x1="{x(p.at):.1f}" y1="{y(p.ends[0]):.1f}" x2="{x(p.at):.1f}" y2="{y(p.ends[1]):.1f}" '
        f'stroke="{colour}" stroke-opacity="0.55"/>'
        for p in row
    )


def _line(row: Sequence[Point], x: Scale, y: Scale, colour: str, symbol: str, *, dashed: bool) -> str:
    places = [(x(p.at), y(p.height)) for p in row]
    dash = f' stroke-dasharray="{DASH}"' if dashed else ""
    line = f'<polyline points="{_points(places)}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
    return line + "".join(_marker(symbol, px, py, colour) for px, py in places)


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


def _legend(
    view: EvaluationView, entries: Sequence[str], colours: Mapping[str, str], symbols: Mapping[str, str]
) -> str:
    left, parts = WIDTH - RIGHT + 18, []
    for number, method in enumerate(entries):
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
