"""``find``: the images most like one, like a file, or like words."""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path
from typing import Any

from semiprune_core import files
from semiprune_core.checks import check_range
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.errors import InvalidDataError, InvalidSettingError
from semiprune_core.find import like_image, like_picture, like_words, most_alike
from semiprune_core.importing.sources.opening import opened
from semiprune_core.importing.sources.reading import MAX_FILE_BYTES
from semiprune_core.paths import real_path
from semiprune_core.project.pool import Pool, read_id, show_id
from semiprune_core.project.spreadsheet import safe_cell
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.records import FloatArray

COLUMNS = ("image_id", "path", "split")


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument("--like", metavar="ID_OR_FILE", help="an image's id, or a picture's file")
    parser.add_argument("--text", metavar="WORDS", help="what to look for; needs CLIP")
    parser.add_argument("--n", type=int, default=20, metavar="N", help="how many images (default: 20)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write them as CSV")


def _run(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    if (args.like is None) == (args.text is None):
        raise InvalidSettingError("Say what to look for: --like ID_OR_FILE or --text WORDS.")
    check_range("--n", args.n, low=1)
    project = workspace.project(args.name)
    everything = project.everything()
    if args.like is not None:
        likeness = _like(project, everything, args.like)
    else:
        likeness = like_words(project, everything, args.text)
    rows = _rows(everything, likeness, args.n)
    if args.out:
        files.write_text(args.out, _csv(rows))
    text = "\n".join(f"{row['likeness']:.3f}  {row['image_id']}  {row['path']}" for row in rows)
    return Outcome({"project": project.name, "found": rows}, text)


def _like(project: Project, everything: Pool, named: str) -> FloatArray:
    """A file of this name goes before an id that looks the same."""
    path = real_path(named)
    if not path.is_file():
        try:
            image_id = read_id(named)
        except InvalidDataError:
            raise InvalidSettingError(
                f"{named} is neither an image's id (16 hex digits) nor a file. Check the spelling."
            ) from None
        return like_image(project, everything, image_id)
    with opened(path) as file:
        return like_picture(project, everything, file.read(MAX_FILE_BYTES + 1), path.name)


def _rows(everything: Pool, likeness: FloatArray, n: int) -> list[dict[str, Any]]:
    order = most_alike(likeness, most=n)
    return [
        {"likeness": round(float(likeness[position]), 4), **facts, "image_id": show_id(facts["image_id"])}
        for position, facts in zip(order, everything.facts(order, COLUMNS), strict=True)
    ]


def _csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["likeness", *COLUMNS])
    for row in rows:
        table.writerow([row["likeness"], row["image_id"], safe_cell(row["path"]), row["split"]])
    return text.getvalue()


COMMANDS.register("find")(
    Command("find the images most like one, like a picture's file, or like words", _configure, _run)
)
