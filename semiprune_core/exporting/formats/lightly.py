"""LightlyStudio's CSV in long form: file_path_abs, class_name, confidence, annotation_source."""

from __future__ import annotations

import csv

from semiprune_core.exporting.base import FORMATS, Place
from semiprune_core.exporting.content import Content, original_paths
from semiprune_core.project.spreadsheet import safe_cell


@FORMATS.register(
    "lightly",
    title="LightlyStudio CSV",
    explain="Absolute paths with class, confidence and source, as LightlyStudio reads annotations.",
    label_source="column annotation_source: human or pseudo",
    options=("exact",),
)
def write_lightly(content: Content, place: Place) -> None:
    place.expect(len(content.kept_idx))
    guard = str if place.options.exact else safe_cell
    with place.open_text("lightly", ".csv", rows=len(content.kept_idx)) as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["file_path_abs", "class_name", "confidence", "annotation_source"])
        for positions, rows in content.batches(content.kept_idx, exact=True):
            paths = original_paths(content.pool, positions)
            for path, row in zip(paths, rows.select(["label", "confidence", "label_source"]).to_pylist(), strict=True):
                is_human = row["label_source"] == "human"
                confidence = 1.0 if is_human else row["confidence"]
                table.writerow([guard(path), guard(row["label"]), f"{confidence:.6g}", row["label_source"]])
            place.advance(rows.num_rows)
