"""Hugging Face ``imagefolder``: ``train/metadata.csv`` with file_name and label, the images below it.

Since a metadata file is present, ``datasets`` takes no labels from folders; the column ``label`` holds them.
"""

from __future__ import annotations

from semiprune_core.exporting.base import FORMATS, Place
from semiprune_core.exporting.content import FIRST_SCORES, Content
from semiprune_core.exporting.formats.tables import small_csv

COLUMNS = ("image_id", "label", "label_source", "pseudo_label", "confidence", *FIRST_SCORES, "rank")


@FORMATS.register(
    "huggingface",
    title="Hugging Face",
    explain='For load_dataset("imagefolder", data_dir=...): the images with a metadata table of labels and scores.',
    label_source="column label_source of train/metadata.csv",
    options=("exact",),
    ways=("zip", "copy", "hardlink", "symlink"),
)
def write_huggingface(content: Content, place: Place) -> None:
    place.expect(len(content.kept_idx))
    columns = (*COLUMNS, *content.more_scores)
    table = []
    with place.tree() as tree:
        for positions, rows in content.batches(content.kept_idx, exact=True):
            for position, row in zip(positions.tolist(), rows.to_pylist(), strict=True):
                name = tree.image("train/images", position)
                table.append([name.removeprefix("train/"), *(row[column] for column in columns)])
                place.advance(1)
        tree.text("train/metadata.csv", small_csv(["file_name", *columns], table, exact=place.options.exact))
