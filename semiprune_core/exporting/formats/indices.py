"""NumPy arrays: the kept positions in the pool, best first, with their class numbers and who gave the labels."""

from __future__ import annotations

import numpy as np

from semiprune_core.exporting.base import FORMATS, Place
from semiprune_core.exporting.content import Content


@FORMATS.register(
    "indices",
    title="NumPy indices",
    explain="Positions in the pool, best first, for your own arrays; with class numbers and a mask of human labels.",
    label_source="the array human: True where a person gave the label",
    options=(),
)
def write_indices(content: Content, place: Place) -> None:
    kept = content.best_first_idx
    place.expect(len(kept))
    arrays = {
        "indices": kept.astype(np.int64),
        "labels": content.labels.labels[kept].astype(np.int64),
        "human": content.labels.human_mask[kept],
    }
    for role, array in arrays.items():
        with place.open(role, ".npy", rows=len(kept)) as file:
            np.save(file, array, allow_pickle=False)
    place.notes["class_names"] = list(content.class_names)
    place.advance(len(kept))
