"""FiftyOne's FiftyOneImageClassificationDataset: ``labels.json``, and the images in ``data/`` or by reference.

``labels`` maps an image to its label with confidence and attributes: by its name in ``data/``, or with
``images="reference"`` by the path of its original, which FiftyOne opens where it lies.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

from semiprune_core.exporting import readmes
from semiprune_core.exporting.base import FORMATS, Place
from semiprune_core.exporting.content import FIRST_SCORES, Content, original_paths

DATA = "data"


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
    attributes = ("image_id", "path", "label_source", "pseudo_label", *FIRST_SCORES, "rank", *content.more_scores)
    labels: dict[str, Any] = {}
    by_reference = place.options.images == "reference"
    with place.tree() as tree:
        for positions, rows in content.batches(content.kept_idx, exact=True):
            if by_reference:
                names = original_paths(content.pool, positions)
                place.advance(rows.num_rows)
            else:
                names = []
                for position in positions.tolist():
                    names.append(PurePosixPath(tree.image(DATA, position)).stem)
                    place.advance(1)
            for name, row in zip(names, rows.to_pylist(), strict=True):
                is_human = row["label_source"] == "human"
                labels[name] = {
                    "label": number[row["label"]],
                    "confidence": 1.0 if is_human else row["confidence"],
                    "attributes": {key: row[key] for key in attributes},
                }
        if by_reference:
            tree.text(f"{DATA}/.keep", b"")  # FiftyOne refuses a dataset without this folder
        said = {"classes": list(content.class_names), "labels": labels}
        tree.text("labels.json", json.dumps(said, ensure_ascii=False).encode())
        tree.text("README.md", readmes.fiftyone(content.run.artifact.id, by_reference).encode())
