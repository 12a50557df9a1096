"""Label Studio: the coreset as tasks with the model's answers as predictions, the most doubtful first.

Images that a person labeled already carry that label as an annotation and come last. ``data`` holds what lets the
answers find their images again and shows what was changed, since all of Label Studio's exports give it back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import numpy as np

from semiprune_core.errors import InvalidSettingError
from semiprune_core.exporting import readmes
from semiprune_core.exporting.base import FORMATS, Place
from semiprune_core.exporting.content import Content, original_paths
from semiprune_core.labeling.classes import NewClass
from semiprune_core.labeling.exchange.label_studio import LOCAL_FILES
from semiprune_core.labeling.exchange.pictures import served_pictures
from semiprune_core.labeling.export_labels import choice, label_studio_config

TASKS, CONFIG, README = "labelstudio", "labelstudio-config", "labelstudio-readme"
IMAGES = "images"


@FORMATS.register(
    "labelstudio",
    title="Label Studio tasks",
    explain="Tasks with the pseudo-labels as predictions, the most doubtful first, their labeling interface, and how "
    "to set up Label Studio so that it shows the pictures.",
    label_source="data.label_source of each task; human labels are annotations, pseudo-labels predictions",
    options=(),
    ways=("reference", "zip", "copy", "hardlink", "symlink"),
)
def write_labelstudio(content: Content, place: Place) -> None:
    place.expect(len(content.kept_idx))
    n, config = len(content.kept_idx), label_studio_config([NewClass(name) for name in content.class_names]) + "\n"
    if place.options.images != "reference":
        with place.tree() as tree:
            address = lambda position: LOCAL_FILES + quote(tree.image(IMAGES, position))  # noqa: E731
            tree.text(f"{TASKS}.json", "".join(_lines(content, place, address)).encode())
            tree.text(f"{CONFIG}.xml", config.encode())
            tree.text(
                "README.md",
                readmes.label_studio(content.run.artifact.id, f"{TASKS}.json", f"{CONFIG}.xml", None).encode(),
            )
        return
    served = served_pictures(content.pool)
    if served is None:
        raise InvalidSettingError(
            "This pool keeps its originals packed inside the project, so Label Studio would find no pictures. "
            "Hand them over with the tasks: images in a ZIP or as copies (--images zip)."
        )
    original_paths(content.pool, content.kept_idx)  # refused where one is gone
    with place.open_text(TASKS, ".json", rows=n) as file:
        file.writelines(_lines(content, place, served.address))
    with place.open_text(CONFIG, ".xml", rows=0) as file:
        file.write(config)
    with place.open_text(README, ".md", rows=0) as file:
        file.write(readmes.label_studio(content.run.artifact.id, f"{TASKS}-....json", f"{CONFIG}-....xml", served))


def _lines(content: Content, place: Place, address: Callable[[int], str]) -> Iterator[str]:
    """The tasks as JSON, most doubtful first, people's last."""
    kept = content.kept_idx
    order = np.lexsort((content.confidence[kept], content.labels.human_mask[kept]))
    version = f"{content.pseudo.artifact.id}-{content.pseudo.artifact.hash[:12]}"
    separator = "[\n"
    for positions, rows in content.batches(kept[order], exact=True):
        for position, row in zip(positions.tolist(), rows.to_pylist(), strict=True):
            yield separator + json.dumps(_task(row, version, address(position)), ensure_ascii=False)
            separator = ",\n"
            place.advance(1)
    yield "\n]\n" if len(kept) else "[]\n"


def _task(row: dict[str, Any], version: str, address: str) -> dict[str, Any]:
    is_human = row["label_source"] == "human"
    task: dict[str, Any] = {
        "data": {
            "image": address,
            "image_id": row["image_id"],
            "path": row["path"],
            "label_source": row["label_source"],
            "pseudo_label": row["pseudo_label"],
            "human_label": row["label"] if is_human else "",
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
    if is_human:
        task["annotations"] = [{"result": [choice(row["label"])], "was_cancelled": False, "ground_truth": False}]
    return task
