"""LightlyStudio's CSV in long form: file_path_abs, class_name, confidence, annotation_source, exactly as they are.

LightlyStudio writes this form but has no reader for it; the README beside it holds a script that imports it.
"""

from __future__ import annotations

import csv

from semiprune_core.exporting import readmes
from semiprune_core.exporting.base import FORMATS, Place
from semiprune_core.exporting.content import Content, original_paths


@FORMATS.register(
    "lightly",
    title="LightlyStudio CSV",
    explain="Absolute paths with class, confidence and source, and the script that imports them into LightlyStudio.",
    label_source="column annotation_source: human or pseudo",
    options=(),
)
def write_lightly(content: Content, place: Place) -> None:
    place.expect(len(content.kept_idx))
    with place.open_text("lightly", ".csv", rows=len(content.kept_idx)) as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["file_path_abs", "class_name", "confidence", "annotation_source"])
        for positions, rows in content.batches(content.kept_idx, exact=True):
            paths = original_paths(content.pool, positions)
            for path, row in zip(paths, rows.select(["label", "confidence", "label_source"]).to_pylist(), strict=True):
                is_human = row["label_source"] == "human"
                confidence = 1.0 if is_human else row["confidence"]
                table.writerow([path, row["label"], f"{confidence:.6g}", row["label_source"]])
            place.advance(rows.num_rows)
    folders = dict.fromkeys(segment.artifact.facts["root"] for segment in content.pool.segments)
    with place.open_text("lightly-readme", ".md", rows=0) as file:
        file.write(readmes.lightly(content.run.artifact.id, list(folders)))
