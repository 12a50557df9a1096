"""Hugging Face ``imagefolder``: ``train/metadata.jsonl`` with file_name and label, the images below it.

Since a metadata file is present, ``datasets`` takes no labels from folders; the column ``label`` holds them. JSON lines
keep every class name: a CSV's ``NA`` would be read as nothing.
"""

from __future__ import annotations

import json

from semiprune_core.exporting.base import FORMATS, Place
from semiprune_core.exporting.content import FIRST_SCORES, Content

COLUMNS = ("image_id", "path", "label", "label_source", "pseudo_label", "confidence", *FIRST_SCORES, "rank")


@FORMATS.register(
    "huggingface",
    title="Hugging Face",
    explain='For load_dataset("imagefolder", data_dir=...): the images with a metadata table of labels and scores.',
    label_source="key label_source of train/metadata.jsonl",
    options=(),
    ways=("zip", "copy", "hardlink", "symlink"),
)
def write_huggingface(content: Content, place: Place) -> None:
    place.expect(len(content.kept_idx))
    columns = (*COLUMNS, *content.more_scores)
    lines = []
    with place.tree() as tree:
        for positions, rows in content.batches(content.kept_idx, exact=True):
            for position, row in zip(positions.tolist(), rows.to_pylist(), strict=True):
                name = tree.image("train/images", position)
                facts = {"file_name": name.removeprefix("train/"), **{column: row[column] for column in columns}}
                lines.append(json.dumps(facts, ensure_ascii=False))
                place.advance(1)
        tree.text("train/metadata.jsonl", "".join(f"{line}\n" for line in lines).encode())
