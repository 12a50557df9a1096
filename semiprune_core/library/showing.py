"""How results look in a notebook: a gallery and a histogram as HTML that needs nothing else."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence

import numpy as np
from PIL import Image

from semiprune_core.importing.images import thumbnail
from semiprune_core.records import FloatArray

SIDE = 64
BARS = 40
WIDTH, HEIGHT = 320, 64
ACCENT, QUIET = "#0f766e", "#c3cccc"
FIGURE = "display:inline-block;margin:2px;font:11px sans-serif;text-align:center;vertical-align:top"
PICTURE = f"width:{SIDE}px;height:{SIDE}px;object-fit:contain;image-rendering:pixelated;display:block"


def gallery(title: str, pictures: Sequence[tuple[Image.Image, str]]) -> str:
    """A line of text and pictures with a few words each."""
    return f"<div><div>{html.escape(title)}</div>{''.join(_figure(*picture) for picture in pictures)}</div>"


def _figure(picture: Image.Image, words: str) -> str:
    data = thumbnail(picture, SIDE * 2)
    kind = "png" if data.startswith(b"\x89P") else "jpeg"
    source = f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"
    said = html.escape(words)
    return f'<span style="{FIGURE}"><img alt="{said}" style="{PICTURE}" src="{source}">{said}</span>'


def histograms(title: str, columns: Mapping[str, FloatArray], kept: np.ndarray | None = None) -> str:
    """A histogram of each column (N,); the part of ``kept`` (N,) images in colour, or all."""
    drawn = "".join(_histogram(name, values, kept) for name, values in columns.items())
    return f"<div><div>{html.escape(title)}</div>{drawn}</div>"


def _histogram(name: str, values: FloatArray, kept: np.ndarray | None) -> str:
    counts, edges = np.histogram(values, BARS)
    chosen = np.histogram(values[kept], edges)[0] if kept is not None else counts
    scale, width = HEIGHT / max(int(counts.max(initial=0)), 1), WIDTH / BARS
    bars = "".join(
        _bar(number * width, width, count * scale, colour)
        for heights, colour in ((counts, QUIET), (chosen, ACCENT))
        for number, count in enumerate(heights.tolist())
        if count
    )
    label = f"{html.escape(name)}: {edges[0]:.3g} to {edges[-1]:.3g}"
    svg = f'<svg role="img" aria-label="{label}" width="{WIDTH}" height="{HEIGHT}">{bars}</svg>'
    return f'<figure style="display:inline-block;margin:4px 12px 4px 0;font:11px sans-serif">{svg}<br>{label}</figure>'


def _bar(x: float, width: float, height: float, colour: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{HEIGHT - height:.1f}" width="{width - 1:.1f}" height="{height:.1f}" fill="{colour}"/>'
    )
