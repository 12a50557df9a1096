"""CSV: one row per kept image, and a twin with all rows and ``kept`` = 0 or 1.

Texts that a spreadsheet would run as a formula get an apostrophe in front; the ``exact`` variant leaves them alone.
"""

from __future__ import annotations

import pyarrow.csv

from semiprune_core.exporting.base import FORMATS, Place
from semiprune_core.exporting.content import Content


@FORMATS.register(
    "csv",
    title="CSV",
    explain="The kept images as a table, and a twin with every image of the pool; opens in any spreadsheet.",
    label_source="column label_source: human or pseudo",
    options=("exact", "absolute"),
    whole_pool=True,
)
def write_csv(content: Content, place: Place) -> None:
    options, absolute = pyarrow.csv.WriteOptions(include_header=False), place.options.absolute
    columns = content.columns_with(absolute=absolute)
    place.notes["columns"] = list(columns)
    place.expect(len(content.all_idx) + len(content.kept_idx))
    for role, positions in (("kept", content.kept_idx), ("all", content.all_idx)):
        with place.open(role, ".csv", rows=len(positions)) as file:
            file.write((",".join(columns) + "\n").encode("ascii"))
            for _, rows in content.batches(positions, exact=place.options.exact, absolute=absolute):
                pyarrow.csv.write_csv(rows, file, options)
                place.advance(rows.num_rows)
