"""Class probabilities as NumPy arrays, for cleanlab and whoever wants more than the best answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from semiprune_core.exporting import readmes
from semiprune_core.exporting.base import FORMATS, Place
from semiprune_core.exporting.content import Content, export_ids

VALUES_AT_ONCE = 1 << 23


@FORMATS.register(
    "probabilities",
    title="Class probabilities",
    explain="The model's probability of every class for each kept image, with ids and labels, as cleanlab wants them.",
    label_source="the array human: True where a person gave the label",
    options=(),
)
def write_probabilities(content: Content, place: Place) -> None:
    kept, n_classes = content.kept_idx, len(content.class_names)
    place.expect(len(kept))
    with place.open("probs", ".npy", rows=len(kept)) as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (len(kept), n_classes)}
        np.lib.format.write_array_header_1_0(file, header)
        step = max(1, VALUES_AT_ONCE // n_classes)
        for start in range(0, len(kept), step):
            part = kept[start : start + step]
            file.write(content.class_probs(part).astype("<f4").tobytes())
            place.advance(len(part))
    arrays = {
        "ids": np.array(export_ids(content.pool.ids[kept]).cast(pa.string()).to_pylist(), dtype="U17"),
        "labels": content.labels.labels[kept].astype(np.int64),
        "human": content.labels.human_mask[kept],
    }
    for role, array in arrays.items():
        with place.open(role, ".npy", rows=len(kept)) as file:
            np.save(file, array, allow_pickle=False)
    place.notes["class_names"] = list(content.class_names)
    with place.open_text("probabilities-readme", ".md", rows=0) as file:
        file.write(readmes.probabilities(content.run.artifact.id, content.class_names))
