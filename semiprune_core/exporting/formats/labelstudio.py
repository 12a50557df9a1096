"""Label Studio: the coreset as tasks with the model's answers as predictions, the most doubtful first.

Images that a person labeled already carry that label as an annotation and come last. ``data.image_id`` lets the answers
find their images again when Label Studio's export is taken back in on the page Label.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import numpy as np

from semiprune_core.exporting.base import FORMATS, Place
from semiprune_core.exporting.content import Content
from semiprune_core.labeling.classes import NewClass
from semiprune_core.labeling.export_labels import choice, label_studio_config
from semiprune_core.labeling.label_files import LOCAL_FILES


@FORMATS.register(
    "labelstudio",
    title="Label Studio tasks",
    explain="Tasks with the pseudo-labels as predictions, the most doubtful first, with their labeling interface.",
    label_source="data.label_source of each task; human labels are annotations, pseudo-labels predictions",
    options=(),
)
def write_labelstudio(content: Content, place: Place) -> None:
    kept = content.kept_idx
    place.expect(len(kept))
    order = np.lexsort((content.confidence[kept], content.labels.human_mask[kept]))
    version = f"{content.pseudo.artifact.id}-{content.pseudo.artifact.hash[:12]}"
    with place.open_text("labelstudio", ".json", rows=len(kept)) as file:
        separator = "[\n"
        for _, rows in content.batches(kept[order], exact=True):
            for row in rows.to_pylist():
                file.write(separator + json.dumps(_task(row, version), ensure_ascii=False))
                separator = ",\n"
            place.advance(rows.num_rows)
        file.write("\n]\n" if len(kept) else "[]\n")
    with place.open_text("labelstudio-config", ".xml", rows=0) as file:
        file.write(label_studio_config([NewClass(name) for name in content.class_names]) + "\n")


def _task(row: dict[str, Any], version: str) -> dict[str, Any]:
    task: dict[str, Any] = {
        "data": {
            "image": LOCAL_FILES + quote(row["path"]),
            "image_id": row["image_id"],
            "label_source": row["label_source"],
            "rank": row["rank"],
        },
        "predictions": [
            {
                "model_version": version,
                "score": round(row["confidence"], 6),
                "result": [choice(row["pseudo_label"])],
            }
        ],
    }
    if row["label_source"] == "human":
        task["annotations"] = [{"result": [choice(row["label"])], "was_cancelled": False, "ground_truth": False}]
    return task
