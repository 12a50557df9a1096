"""JSON lines: one object per kept image, texts as they are."""

from __future__ import annotations

import json

from semiprune_core.exporting.base import FORMATS, Place
from semiprune_core.exporting.content import Content


@FORMATS.register(
    "jsonl",
    title="JSON lines",
    explain="One JSON object per kept image, for scripts and data loaders; texts exactly as they are.",
    label_source="key label_source: human or pseudo",
    options=("absolute",),
)
def write_jsonl(content: Content, place: Place) -> None:
    place.expect(len(content.kept_idx))
    absolute = place.options.absolute
    place.notes["columns"] = list(content.columns_with(absolute=absolute))
    with place.open_text("kept", ".jsonl", rows=len(content.kept_idx)) as file:
        for _, rows in content.batches(content.kept_idx, exact=True, absolute=absolute):
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows.to_pylist())
            place.advance(rows.num_rows)
