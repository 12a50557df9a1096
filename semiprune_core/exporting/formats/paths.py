"""Plain lists: the paths of the kept images, and line by line beside them their labels and who gave those."""

from __future__ import annotations

from semiprune_core.errors import InvalidDataError
from semiprune_core.exporting.base import FORMATS, Place
from semiprune_core.exporting.content import Content, original_paths
from semiprune_core.paths import shown


@FORMATS.register(
    "paths",
    title="List of paths",
    explain="A text file with one path per line; two more give the label and its source on the same line numbers.",
    label_source="the list of sources: line n speaks of path n",
    options=("absolute",),
)
def write_paths(content: Content, place: Place) -> None:
    n = len(content.kept_idx)
    place.expect(3 * n)
    lists = {"paths": "path", "labels": "label", "sources": "label_source"}
    for role, column in lists.items():
        with place.open_text(role, ".txt", rows=n) as file:
            for positions, rows in content.batches(content.kept_idx, exact=True):
                lines = rows[column].to_pylist()
                if role == "paths" and place.options.absolute:
                    lines = original_paths(content.pool, positions)
                file.writelines(f"{_line(line)}\n" for line in lines)
                place.advance(rows.num_rows)


def _line(text: str) -> str:
    if len(text.splitlines()) > 1 or text.endswith(("\n", "\r")):
        raise InvalidDataError(
            f"'{shown(text)}' holds a line break and cannot stand in a list of lines. Export as CSV or JSON lines."
        )
    return text
