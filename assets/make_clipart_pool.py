"""Make clipart_pool.zip and its credits from Debian's packages openclipart-png and openclipart-svg.

``python assets/make_clipart_pool.py [PNG_FOLDER [SVG_FOLDER]]`` after ``apt-get install openclipart-png
openclipart-svg``. The drawings stand in class folders; near-copies of them are left in.
"""

from __future__ import annotations

import html
import io
import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageChops

PNG = Path("/usr/share/openclipart/png")
SVG = Path("/usr/share/openclipart/svg")
TARGET = Path(__file__).with_name("clipart_pool.zip")
CREDITS = Path(__file__).with_name("clipart_pool.CREDITS.txt")
SIDE = 144
QUALITY = 78
MOST_PIXELS = 30_000_000
WHITE = 250
"""Grey values from here on are the paper that a drawing stands on."""


@dataclass(frozen=True)
class Kind:
    """A class: the folders it is taken from, and words in a file's name that keep a drawing out of it."""

    folders: tuple[str, ...]
    without: tuple[str, ...] = ()
    most: int = 1000
    deep: bool = True


# A drawing that stands in several folders (as a link) belongs to the first of these classes.
KINDS = {
    "road signs": Kind(("transportation/roadsigns",)),
    "flags": Kind(
        ("signs_and_symbols/flags",), ("semaphore", "historic", "miscellany", "golf_", "copileft", "kansas"), 270
    ),
    "pictograms": Kind(("transportation/aiga-symbols",)),
    "cards": Kind(("recreation/games/cards/white", "recreation/games/cards/ornamental")),
    "smileys": Kind(("people/smilies",), ("3_faces", "skull")),
    "clothing": Kind(("people/clothing",), ("pantyhose", "underwear")),
    "animals": Kind(("animals",), ("dragon_flag", "lock")),
    "plants": Kind(("plants",), ("secateurs",)),
    "food": Kind(("food",)),
    "music": Kind(("recreation/music",), ("bach", "beethov", "handel", "coltrane")),
    "buildings": Kind(("buildings",), ("furniture",)),
    "maps": Kind(("geography",), ("astronomy", "gps", "flag", "umbrella", "basket", "telescope", "eiffel", "platypus")),
    "vehicles": Kind(
        ("transportation/vehicles", "transportation"),
        ("aiga", "roadsigns", "sign", "ahead", "road", "cross", "ampel", "anchor", "lane", "cycles", "_suitcase")
        + ("cycle_", "parking", "pass_", "no_", "turn", "lighthouse", "grain", "tunnel", "end_", "kaboom", "boating"),
    ),
    "tools": Kind(("tools",), ("weapons", "toys", "cow", "pipe", "cigar")),
    "people": Kind(
        ("people", "people/stickmen"), ("sexy", "stripper", "female_rollandin", "silhouette_", "martin_l"), deep=False
    ),
}


def drawings(root: Path, kind: Kind) -> Iterator[Path]:
    """The real files of a class in a fixed order, without those that its words keep out."""
    seen = set()
    for folder in kind.folders:
        for path in sorted((root / folder).glob("**/*.png" if kind.deep else "*.png")):
            name = str(path.relative_to(root)).lower()
            real = path.resolve()
            if real not in seen and not any(word in name for word in kind.without):
                seen.add(real)
                yield real


def small(path: Path) -> tuple[Image.Image, dict[str, str]] | None:
    """The drawing on white without the empty paper around it, and what the file says of itself; None for huge ones."""
    with Image.open(path) as image:
        if image.width * image.height > MOST_PIXELS:
            return None
        notes = {key: " ".join(str(image.info.get(key, "")).split()) for key in ("Title", "Author")}
        drawing = image.convert("RGBA")
    flat = Image.new("RGB", drawing.size, "white")
    flat.paste(drawing, (0, 0), drawing)
    ink = ImageChops.invert(flat.convert("L")).point(lambda value: 255 if value > 255 - WHITE else 0)
    box = ink.getbbox()
    if box is not None:
        margin = max(2, round(0.03 * max(box[2] - box[0], box[3] - box[1])))
        left, upper, right, lower = box
        flat = flat.crop(
            (max(0, left - margin), max(0, upper - margin), min(flat.width, right + margin), min(flat.height, lower + margin))
        )
    flat.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS, reducing_gap=3)
    return flat, notes


def author_in_svg(root: Path, drawing: Path) -> str:
    """The creator that the drawing's SVG names; empty where it names none."""
    path = (root / drawing).with_suffix(".svg")
    text = path.read_text(errors="replace") if path.is_file() else ""
    named = re.search(r"<dc:creator>.*?<dc:title[^>]*>(.*?)</dc:title>", text, re.DOTALL)
    return " ".join(html.unescape(named[1]).split()) if named else ""


def thinned(paths: list[Path], most: int) -> list[Path]:
    """At most so many, evenly spread."""
    return [paths[number * len(paths) // most] for number in range(most)] if len(paths) > most else paths


def main(png: Path = PNG, svg: Path = SVG) -> None:
    Image.MAX_IMAGE_PIXELS = None  # small() looks at the size itself
    png = png.resolve()
    taken: set[Path] = set()
    lines = []
    with zipfile.ZipFile(TARGET, "w", zipfile.ZIP_STORED) as pool:
        for name, kind in KINDS.items():
            paths = [path for path in drawings(png, kind) if path not in taken]
            for path in thinned(paths, kind.most):
                made = small(path)
                if made is None or min(made[0].size) < 8:
                    continue
                taken.add(path)
                image, notes = made
                data = io.BytesIO()
                image.save(data, "WEBP", quality=QUALITY, method=6)
                member = f"{name}/{path.parent.name}-{path.stem}.webp"
                pool.writestr(zipfile.ZipInfo(member), data.getvalue())
                author = notes["Author"] or author_in_svg(svg, path.relative_to(png)) or "not named"
                lines.append(f"{member} | {notes['Title'] or path.stem} | {author}")
    head = CREDITS_HEAD.format(n=len(lines), side=SIDE)
    CREDITS.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


CREDITS_HEAD = """\
clipart_pool.zip holds {n:,} drawings of the Open Clip Art Library (http://www.openclipart.org) as Debian's package
openclipart-png carries them, made smaller (long side {side} pixels at most, empty paper around them cut off) by
make_clipart_pool.py. Their authors have dedicated them to the public domain (Creative Commons Public Domain
Dedication, see the package's copyright file). We thank them. Each line: file, title, author.

"""

if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
