"""FiftyOne's FiftyOneImageClassificationDataset: ``labels.json``, and the images in ``data/`` or by reference.

``labels`` maps an image id to its label with confidence and attributes. With ``images="reference"`` nothing is copied:
``data.json`` maps the ids to the originals where they lie.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

from semiprune_core import files
from semiprune_core.exporting.base import FORMATS, Place
from semiprune_core.exporting.content import FIRST_SCORES, Content, original_paths


@FORMATS.register(
    "fiftyone",
    title="FiftyOne",
    explain="A FiftyOneImageClassificationDataset: labels with confidence and scores; images beside or by reference.",
    label_source="attribute label_source of each label",
    options=(),
    ways=("zip", "copy", "hardlink", "symlink", "reference"),
)
def write_fiftyone(content: Content, place: Place) -> None:
    place.expect(len(content.kept_idx))
    number = {name: index for index, name in enumerate(content.class_names)}
    attributes = ("image_id", "label_source", "pseudo_label", *FIRST_SCORES, "rank", *content.more_scores)
    labels: dict[str, Any] = {}
    where: dict[str, str] = {}
    with place.tree() as tree:
        for positions, rows in content.batches(content.kept_idx, exact=True):
            answers = rows.to_pylist()
            if place.options.images == "reference":
                names = [row["image_id"] for row in answers]
                where.update(zip(names, original_paths(content.pool, positions), strict=True))
                place.advance(rows.num_rows)
            else:
                names = []
                for position in positions.tolist():
                    names.append(PurePosixPath(tree.image("data", position)).stem)
                    place.advance(1)
            for name, row in zip(names, answers, strict=True):
                is_human = row["label_source"] == "human"
                labels[name] = {
                    "label": number[row["label"]],
                    "confidence": 1.0 if is_human else row["confidence"],
                    "attributes": {key: row[key] for key in attributes},
                }
        if where:
            tree.text("data.json", files.pretty_json(where))
        said = {"classes": list(content.class_names), "labels": labels}
        tree.text("labels.json", json.dumps(said, ensure_ascii=False).encode())
