"""Parquet: the CSV's columns with their types, texts as they are."""

from __future__ import annotations

import pyarrow.parquet as pq

from semiprune_core.exporting.base import FORMATS, Place
from semiprune_core.exporting.content import Content

REPEATED = ("label", "label_source", "pseudo_label")
"""Columns with few values; the others differ from row to row, and a dictionary would only cost time."""


@FORMATS.register(
    "parquet",
    title="Parquet",
    explain="The same two tables for pandas, Spark or DuckDB: typed, compressed, texts exactly as they are.",
    label_source="column label_source: human or pseudo",
    options=("absolute",),
    whole_pool=True,
)
def write_parquet(content: Content, place: Place) -> None:
    place.expect(len(content.all_idx) + len(content.kept_idx))
    absolute = place.options.absolute
    schema = content.rows(content.all_idx[:0], exact=True, absolute=absolute).schema
    place.notes["columns"] = schema.names
    for role, positions in (("kept", content.kept_idx), ("all", content.all_idx)):
        with (
            place.open(role, ".parquet", rows=len(positions)) as file,
            pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=list(REPEATED)) as writer,
        ):
            for _, rows in content.batches(positions, exact=True, absolute=absolute):
                writer.write_table(rows)
                place.advance(rows.num_rows)
