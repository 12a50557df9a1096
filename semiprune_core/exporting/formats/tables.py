"""Small tables inside a tree."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from semiprune_core.project.spreadsheet import safe_cell


def small_csv(header: Sequence[str], rows: Iterable[Sequence[Any]], *, exact: bool) -> bytes:
    """A CSV as bytes; texts spreadsheet-safe unless ``exact``."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(header)
    for row in rows:
        table.writerow([safe_cell(cell) if isinstance(cell, str) and not exact else cell for cell in row])
    return text.getvalue().encode()
