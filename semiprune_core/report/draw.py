"""Small pieces of HTML and SVG. All text is escaped here and nowhere else."""

from __future__ import annotations

import base64
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from semiprune_core.paths import shown
from semiprune_core.project.artifacts import NAME
from semiprune_core.project.pool import mime_of

STYLE = """
:root { color-scheme: light; --ink: #1c2526; --faint: #5d6b6c; --line: #dfe4e4; --accent: #0f766e; --grey: #b9c2c2; }
* { box-sizing: border-box; }
body { font: 15px/1.55 Inter, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; color: var(--ink);
  background: #fff; max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.5rem 4rem; }
h1 { font-size: 1.8rem; margin: 0; } h2 { font-size: 1.25rem; margin: 2.6rem 0 .6rem; padding-top: .8rem;
  border-top: 1px solid var(--line); } h3 { font-size: 1.02rem; margin: 1.6rem 0 .4rem; }
p { margin: .4rem 0; max-width: 46rem; } .faint { color: var(--faint); font-size: .9rem; }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(7rem, 1fr)); gap: .8rem 1.2rem;
  margin: 1rem 0; }
.numbers b { display: block; font-size: 1.4rem; font-weight: 600; white-space: nowrap; }
.numbers span { color: var(--faint); font-size: .85rem; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; font-size: .9rem; }
th { text-align: left; font-weight: 600; color: var(--faint); }
td, th { padding: .25rem .8rem .25rem 0; vertical-align: top;
  border-bottom: 1px solid var(--line); } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.id { white-space: nowrap; }
.pictures { display: flex; flex-wrap: wrap; gap: 4px; margin: .4rem 0 .8rem; }
.pictures img { width: 64px; height: 64px; object-fit: cover; border-radius: 4px; image-rendering: pixelated; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); gap: 1.2rem; }
figure { margin: 0; }
figcaption { font-size: .85rem; color: var(--faint); } svg { width: 100%; height: auto; display: block; }
svg.balance { max-width: 32rem; } figure.plot { max-width: 44rem; margin: .8rem 0; } svg.map { max-width: 44rem; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin-top: .3rem; }
.legend i { display: inline-block; width: .7rem; height: .7rem; border-radius: 50%; margin-right: .35rem; }
.short { margin: 1.2rem 0 0; padding: .9rem 1.2rem; background: #f2f7f6; border-left: 3px solid var(--accent);
  border-radius: 4px; } .short li { margin: .2rem 0; } .short ul, .reasons { margin: 0; padding-left: 1.1rem; }
.settings { columns: 3 13rem; column-gap: 2rem; font-size: .85rem; margin: .3rem 0; }
.settings div { display: flex; justify-content: space-between; gap: 1rem; break-inside: avoid;
  border-bottom: 1px solid var(--line); padding: .1rem 0; overflow-wrap: anywhere; }
.settings span { color: var(--faint); } .hash { overflow-wrap: anywhere; }
@page { margin: 16mm; }
@media print { body { padding: 0; max-width: none; font-size: 11pt; } h2, h3 { break-after: avoid; }
  p:has(+ figure), p:has(+ .pictures), p:has(+ .charts), p:has(+ table), .numbers { break-after: avoid; }
  figure, svg, p, tr, table.small, .pictures, .numbers { break-inside: avoid; }
  .numbers { grid-template-columns: repeat(auto-fit, minmax(5.5rem, 1fr)); } .numbers b { font-size: 1.1rem; }
  .settings { columns: 2; } table { font-size: .78rem; } td.n, th { white-space: nowrap; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
WIDTH, HEIGHT = 320, 110
SMALL_TABLE = 15
"""A table of so many rows is printed on one page."""


def text(value: object, limit: int = 200) -> str:
    """Anything as escaped text; odd characters made visible."""
    return escape(shown(str(value), limit))


def paragraph(words: str, *, faint: bool = False) -> str:
    return f"<p{' class=faint' if faint else ''}>{text(words, 1000)}</p>"


def section(title: str, *parts: str) -> str:
    return f"<section><h2>{text(title)}</h2>{''.join(parts)}</section>"


def heading(words: str) -> str:
    return f"<h3>{text(words)}</h3>"


def in_short(sentences: Iterable[str]) -> str:
    """The summary at the top of the page."""
    return f'<div class="short">{bullets(sentences)}</div>'


def bullets(sentences: Iterable[str]) -> str:
    return f'<ul class="reasons">{"".join(f"<li>{text(sentence, 600)}</li>" for sentence in sentences)}</ul>'


def settings(values: Mapping[str, str]) -> str:
    """Small names and values in columns."""
    rows = "".join(f"<div><span>{text(name)}</span><b>{text(value)}</b></div>" for name, value in values.items())
    return f'<div class="settings">{rows}</div>'


def numbers(values: Mapping[str, str]) -> str:
    """Large figures side by side, each over its name."""
    inside = "".join(f"<div><b>{text(value)}</b><span>{text(name)}</span></div>" for name, value in values.items())
    return f'<div class="numbers">{inside}</div>'


def table(
    header: Sequence[str], rows: Iterable[Sequence[Any]], *, strong: Collection[tuple[int, int]] = frozenset()
) -> str:
    """A column whose header ends in ``#`` is aligned right. ``strong`` cells, by row and column, are bold."""
    right = [name.endswith("#") for name in header]
    head = "".join(
        f"<th{' class=n' if n else ''}>{text(name.removesuffix('#'))}</th>"
        for name, n in zip(header, right, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{_kind(cell, n)}>{f'<b>{text(cell)}</b>' if (at, column) in strong else text(cell)}</td>"
            for column, (cell, n) in enumerate(zip(row, right, strict=True))
        )
        + "</tr>"
        for at, row in enumerate(rows)
    )
    size = " class=small" if body.count("<tr>") <= SMALL_TABLE else ""
    return f"<table{size}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _kind(cell: object, is_number: bool) -> str:
    if is_number:
        return " class=n"
    return " class=id" if NAME.fullmatch(str(cell)) else ""


def pictures(thumbs: Iterable[tuple[bytes, str]]) -> str:
    """A row of thumbnails, held inside the file; ``(bytes, words)`` each."""
    inside = "".join(
        f'<img alt="{text(words)}" title="{text(words)}" src="data:{mime_of(data)};base64,'
        f'{base64.b64encode(data).decode("ascii")}">'
        for data, words in thumbs
    )
    return f'<div class="pictures">{inside}</div>'


def histogram(edges: np.ndarray, kept: np.ndarray, dropped: np.ndarray, title: str) -> str:
    """Two stacked histograms (K,) over ``edges`` (K + 1,): kept in colour, dropped in grey above it."""
    top = max(int((kept + dropped).max(initial=0)), 1)
    step = WIDTH / len(kept)
    bars = []
    for number, (low, high) in enumerate(zip(kept.tolist(), dropped.tolist(), strict=True)):
        base = HEIGHT
        for count, colour in ((low, "var(--accent)"), (high, "var(--grey)")):
            tall = count / top * HEIGHT
            base -= tall
            if count:
                bars.append(
                    f'<rect x="{number * step:.2f}" y="{base:.2f}" width="{step * 0.9:.2f}" height="{tall:.2f}" '
                    f'fill="{colour}"/>'
                )
    low, high = (_tick(edge, edges) for edge in (edges[0], edges[-1]))
    axis = (
        f'<text x="0" y="{HEIGHT + 14}" font-size="10" fill="#5d6b6c">{low}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT + 14}" font-size="10" fill="#5d6b6c" text-anchor="end">{high}</text>'
    )
    picture = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 18}" role="img" aria-label="{text(title)}">{"".join(bars)}{axis}</svg>'
    )
    return f"<figure><figcaption>{text(title)}</figcaption>{picture}</figure>"


def _tick(value: float, edges: np.ndarray) -> str:
    """A number as exact as the width of its axis allows.

    >>> _tick(5.55e-08, np.array([5.55e-08, 0.2]))
    '0'
    """
    wide = float(edges[-1] - edges[0]) or abs(float(value)) or 1.0
    return f"{round(float(value), 2 - math.floor(math.log10(wide))) + 0.0:.6g}"


def scatter(points: np.ndarray, groups: Sequence[tuple[str, str, np.ndarray]], title: str) -> str:
    """Points (N, 2) as dots, one path for each ``(name, colour, mask (N,))``, with a legend."""
    wide, tall = 560, 400
    low, high = np.percentile(points, 0.1, axis=0), np.percentile(points, 99.9, axis=0)
    place = np.clip((points - low) / np.maximum(high - low, 1e-12), -0.02, 1.02)
    x, y = 8 + place[:, 0] * (wide - 16), tall - 8 - place[:, 1] * (tall - 16)
    parts, legend = [], []
    for name, colour, mask in groups:
        dots = "".join(f"M{a:.0f} {b:.0f}h0" for a, b in zip(x[mask], y[mask], strict=True))
        parts.append(f'<path d="{dots}" stroke="{colour}"/>')
        legend.append(f'<span><i style="background:{colour}"></i>{text(name, 40)}</span>')
    picture = (
        f'<svg class="map" viewBox="0 0 {wide} {tall}" role="img" aria-label="{text(title)}" fill="none" '
        f'stroke-width="3" stroke-linecap="round" stroke-opacity="0.7">{"".join(parts)}</svg>'
    )
    return f'<figure>{picture}<figcaption class="legend">{"".join(legend)}</figcaption></figure>'


def balance(names: Sequence[str], before: Sequence[int], after: Sequence[int]) -> str:
    """Images per class before and after pruning, as bars."""
    top, tall = max([*before, 1]), 18
    rows = []
    for number, (name, was, now) in enumerate(zip(names, before, after, strict=True)):
        y = number * tall
        rows.append(
            f'<text x="96" y="{y + 12}" font-size="10" text-anchor="end" fill="#1c2526">{text(name, 18)}</text>'
            f'<rect x="102" y="{y + 3}" width="{was / top * 300:.1f}" height="11" fill="var(--grey)"/>'
            f'<rect x="102" y="{y + 3}" width="{now / top * 300:.1f}" height="11" fill="var(--accent)"/>'
            f'<text x="{106 + was / top * 300:.1f}" y="{y + 12}" font-size="10" fill="#5d6b6c">'
            f"{now:,} of {was:,}</text>"
        )
    box = f"0 0 480 {max(1, len(names)) * tall}"
    return f'<svg class="balance" viewBox="{box}" role="img" aria-label="Class balance">{"".join(rows)}</svg>'


def page(title: str, *parts: str) -> str:
    """A whole document that loads nothing from anywhere."""
    guard = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{guard}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )
