"""Label files: the rows of a CSV, whichever tool wrote it. Label Studio's JSON is in ``label_studio``.

A file that cannot be read is refused as a whole; a row that cannot is listed with its reason.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence

from semiprune_core.checks import check_choice
from semiprune_core.errors import InvalidDataError
from semiprune_core.labeling.exchange.label_studio import CHOICE, CSV_MARKS, read_csv_items
from semiprune_core.labeling.exchange.rows import Problems, Row, decode_text
from semiprune_core.paths import shown

CSV_ROLES = ("path", "image_id", "label", "annotator")
"""What the columns of a label CSV are for, and how they are called unless somebody says otherwise."""
_OFTEN = {
    "path": ("file", "filename", "file_name", "filepath", "file_path", "image", "image_path", "name"),
    "image_id": ("id", "imageid"),
    "label": ("class", "category", "class_name", "label_name", "target"),
    "annotator": ("who", "user", "labeler"),
}


def csv_columns(data: bytes) -> tuple[str, ...]:
    """The names of a CSV's columns, as written; () for an empty file."""
    text = decode_text(data).lstrip("\r\n")
    try:
        return tuple((name or "").strip() for name in _table(text).fieldnames or ())
    except csv.Error as error:
        raise InvalidDataError(f"The CSV's header cannot be read: {error}.", code="CSV_DAMAGED") from error


def is_label_studio(names: Sequence[str]) -> bool:
    """Whether a CSV with these columns was written by Label Studio, whose columns are known."""
    lower = {name.lower() for name in names}
    return CHOICE in lower and "label" not in lower and len(lower & CSV_MARKS) > 1


def guess_columns(names: Sequence[str]) -> dict[str, str]:
    """What columns of these names are likely for; to be shown, not taken without a word.

    >>> guess_columns(["File_Name", "Class"])
    {'path': 'File_Name', 'label': 'Class'}
    """
    by_name = {name.lower(): name for name in reversed(names)}
    found = {}
    for role in CSV_ROLES:
        match = next((by_name[word] for word in (role, *_OFTEN[role]) if word in by_name), None)
        if match is not None:
            found[role] = match
    return found


def _table(text: str) -> csv.DictReader[str]:
    header = text.lstrip("\r\n").split("\n", 1)[0]
    separator = max(",;\t", key=header.count)
    return csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, strict=True)


def read_csv_rows(
    data: bytes, annotator: str, problems: Problems, columns: Mapping[str, str] | None = None
) -> Iterator[Row]:
    """Rows of a label CSV: ``path`` or ``image_id``, ``label``, optional ``annotator``; comma, semicolon or tab.

    ``columns`` says for any of CSV_ROLES which column of the file it is, where that has another name.

    In a coreset's CSV (with ``label_source`` and ``pseudo_label``) a model's label counts only where it was changed.
    A CSV of Label Studio's is known by its columns.
    """
    text = decode_text(data)
    if not text.strip():
        raise InvalidDataError(
            "The CSV is empty. It needs a header with path or image_id, and label.", code="CSV_EMPTY"
        )
    rows = _table(text)
    try:
        by_name = {(name or "").strip().lower(): name for name in rows.fieldnames or ()}
        if is_label_studio(tuple(by_name)) and not columns:
            items = ({name: row.get(column) or "" for name, column in by_name.items()} for row in rows)
            yield from read_csv_items(enumerate(items, start=2), annotator, problems)
            return
        present = _with_roles(by_name, columns or {})
        if "label" not in present or not {"path", "image_id"} & set(present):
            there = ", ".join(shown(name, 40) for name in by_name if name) or "none"
            raise InvalidDataError(
                f"The CSV needs the columns path or image_id, and label; it has: {there}. "
                "Choose which of them is meant (--columns path=...,label=... on the command line).",
                code="CSV_NO_PATH_COLUMN",
            )

        is_coreset = {"label_source", "pseudo_label"} <= set(present)

        def cell(row: Mapping[str, str | None], name: str) -> str:
            return row.get(present[name]) or "" if name in present else ""

        for number, row in enumerate(rows, start=2):
            image_id, path, label = cell(row, "image_id"), cell(row, "path"), cell(row, "label")
            yield Row(
                number,
                image_id,
                path,
                label,
                cell(row, "annotator") or annotator,
                spreadsheet=True,
                suggested=cell(row, "pseudo_label") if is_coreset else None,
                is_answer=not is_coreset or cell(row, "label_source") == "human",
            )
    except csv.Error as error:
        code = "CSV_CELL_TOO_LARGE" if "field limit" in str(error) else "CSV_DAMAGED"
        raise InvalidDataError(f"The CSV cannot be read near line {rows.line_num}: {error}.", code=code) from error


def _with_roles(by_name: Mapping[str, str], columns: Mapping[str, str]) -> dict[str, str]:
    """The file's columns by what they are for, those that were named put in their places."""
    present = dict(by_name)
    for role, wanted in columns.items():
        check_choice("column", role, CSV_ROLES)
        name = wanted.strip().lower()
        if name not in by_name:
            there = ", ".join(shown(column, 40) for column in by_name if column) or "none"
            raise InvalidDataError(
                f"The CSV has no column '{shown(wanted, 40)}'; it has: {there}.", code="CSV_NO_PATH_COLUMN"
            )
        present[role] = by_name[name]
    return present
