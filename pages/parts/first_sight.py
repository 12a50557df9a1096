"""What a person sees who has no project yet: what this is for, in pictures, and what it saved when it was measured."""

from __future__ import annotations

import base64
import functools
import io
import zipfile

import numpy as np
import streamlit as st
from PIL import Image, ImageDraw

from pages.parts.text import count, duration
from semiprune_core.demo.figures import Figures, figures
from semiprune_core.importing.sources.clipart import CLIPART

COLUMNS, ROWS, TILE, GAP = 8, 6, 64, 6
FAINT = 0.14
CARD, INK = (255, 255, 255), (15, 118, 110)
COLOURS = ((15, 118, 110), (230, 159, 0), (86, 180, 233), (204, 121, 167))
STATIONS = (
    ("pool", "**1. The pool.** Thousands of images, and nobody has labeled one."),
    ("label", "**2. Label a tenth.** Drawn at random, one key per image, in the browser."),
    ("learn", "**3. The rest is learned.** Every image gets a label and a score: how hard is it?"),
    ("keep", "**4. Keep what teaches.** The coreset, to label and train on. The rest can wait."),
)


def draw() -> None:
    """The line as four pictures, with what a coreset is and what it saves."""
    st.markdown(
        "#### Label less, train less, know as much\n"
        "A **coreset** is the small part of a pool of images that teaches a model nearly as much as all of it."
    )
    if CLIPART.is_file():
        with st.grid(4, min_column_width=165):
            for station, words in STATIONS:
                with st.container():
                    _picture(station, words.replace("**", ""))
                    st.markdown(words)


def saved() -> None:
    """What the demo's own evaluation measured; nothing here is typed in by hand."""
    measured = figures()
    if measured is not None:
        _numbers(measured)


def _picture(station: str, words: str) -> None:
    data = base64.b64encode(station_picture(station)).decode()
    st.html(f'<img src="data:image/png;base64,{data}" alt="{words}" style="width: 100%; display: block">')


def _numbers(measured: Figures) -> None:
    coreset, full = measured.coreset, measured.full
    with st.container(border=True):
        st.markdown(f"**Measured on the demo**, {count(measured.n_pool, 'picture')} of clothes:")
        with st.grid(3, min_column_width=165):
            _metric("Labels to choose it", f"{measured.n_labeled:,}", f"of {measured.n_pool:,} images")
            _metric("Labels not needed", f"{measured.labels_saved:,}", f"{measured.n_kept:,} images kept")
            _metric("Accuracy, coreset", f"{coreset.mean:.1%}", f"± {100 * (coreset.half or 0):.1f}, {coreset.n} seeds")
            _metric("Accuracy, all images", f"{full.mean:.1%}", f"± {100 * (full.half or 0):.1f}, {full.n} seeds")
            _metric(
                "Accuracy, random half", f"{measured.random.mean:.1%}", f"± {100 * (measured.random.half or 0):.1f}"
            )
            _metric("One training", duration(60 * coreset.minutes), f"all images: {duration(60 * full.minutes)}")
        st.caption(
            f"Trained on true labels, tested on {coreset.n_test:,} other images; ± is half of the 95% interval over "
            "the seeds. The trainings take as many steps as the preset gives them, so time falls less than size. "
            "Your own pool will differ, which is why the app measures it."
        )


def _metric(name: str, value: str, note: str) -> None:
    st.metric(name, value, note, delta_color="off", delta_arrow="off")


@st.cache_data(show_spinner=False)
def station_picture(station: str) -> bytes:
    """The pool at one station of the line as a PNG without a background: an illustration with the bundled clip art."""
    width, height = (n * (TILE + GAP) - GAP for n in (COLUMNS, ROWS))
    sheet = Image.new("RGBA", (width, height))
    rng = np.random.default_rng(5)
    labeled = set(rng.choice(COLUMNS * ROWS, COLUMNS * ROWS // 10 + 1, replace=False).tolist())
    kept = labeled | set(rng.choice(COLUMNS * ROWS, COLUMNS * ROWS // 4, replace=False).tolist())
    for number, tile in enumerate(tile.copy() for tile in _tiles()):
        row, column = divmod(number, COLUMNS)
        dim = (station == "label" and number not in labeled) or (station == "keep" and number not in kept)
        if dim:
            tile.putalpha(tile.getchannel("A").point(lambda value: round(value * FAINT)))
        elif station != "pool":
            _frame(tile, COLOURS[number * 7 % len(COLOURS)], thick=number in labeled or station == "keep")
        sheet.paste(tile, (column * (TILE + GAP), row * (TILE + GAP)))
    out = io.BytesIO()
    sheet.save(out, "PNG")
    return out.getvalue()


@functools.lru_cache(maxsize=1)
def _tiles() -> tuple[Image.Image, ...]:
    """Drawings from all over the bundled pool, on white cards with round corners."""
    tiles = []
    mask = Image.new("L", (TILE, TILE))
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, TILE - 1, TILE - 1), 9, fill=255)
    with zipfile.ZipFile(CLIPART) as packed:
        names = sorted(name for name in packed.namelist() if name.endswith(".webp"))
        chosen = np.random.default_rng(11).permutation(len(names))[: COLUMNS * ROWS]
        for name in (names[number] for number in chosen):
            drawing = Image.open(io.BytesIO(packed.read(name))).convert("RGBA")
            drawing.thumbnail((TILE - 12, TILE - 12), Image.Resampling.LANCZOS)
            card = Image.new("RGBA", (TILE, TILE), (*CARD, 255))
            card.alpha_composite(drawing, ((TILE - drawing.width) // 2, (TILE - drawing.height) // 2))
            card.putalpha(mask)
            tiles.append(card)
    return tuple(tiles)


def _frame(tile: Image.Image, colour: tuple[int, int, int], *, thick: bool) -> None:
    box = (0, 0, TILE - 1, TILE - 1)
    ImageDraw.Draw(tile).rounded_rectangle(box, 9, outline=(*colour, 255), width=5 if thick else 2)
