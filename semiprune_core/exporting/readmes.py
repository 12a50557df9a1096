"""What stands in an export's own README: how the tool it is for opens it."""

from __future__ import annotations

from collections.abc import Sequence

from semiprune_core.labeling.exchange.pictures import Served


def label_studio(coreset: str, tasks: str, config: str, served: Served | None) -> str:
    """How to set up Label Studio for these tasks; ``served`` is None where the pictures lie beside this text."""
    if served is None:
        root, storages = "the folder that holds this file", "`images` in that folder, with its full path"
    else:
        root = f"`{served.document_root}`"
        storages = " and ".join(f"`{folder}`" for folder in served.storages)
    value = "/path/to/this/folder" if served is None else served.document_root
    return f"""# {coreset} in Label Studio

1. Let Label Studio serve pictures from {root}:

        export LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true
        export LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT="{value}"
        label-studio start

2. Make a project. Settings, Labeling Interface, Code: paste `{config}`.
3. Settings, Cloud Storage, Add Source Storage, Local Files. The absolute local path is {storages}.
   Save it without synchronizing, which would make a task of every picture.
   The storage must lie below the document root; the root itself is refused.
4. Import `{tasks}`.

The pseudo-labels are predictions, the most doubtful first; labels by people are annotations and come last.

To take the answers back, export from Label Studio as JSON, JSON_MIN or CSV and import that file on the Label page, or

    semiprune labels import NAME FILE

What was not changed counts as what it was; corrections, confirmed and changed predictions become labels by people.
`data` must stay as it is: `image_id`, `pseudo_label` and `human_label` tell these apart.
"""


def lightly(coreset: str, folders: list[str]) -> str:
    """The script that imports our CSV into LightlyStudio, which has no reader for it."""
    return f'''# {coreset} in LightlyStudio

LightlyStudio has no reader for its own CSV; this script imports it. The images must lie where they were exported.
Images of these folders that are not in the coreset are shown without an annotation.

```python
import csv
import sys

import lightly_studio as ls
from lightly_studio.core.annotation.annotation_create import CreateClassification

with open(sys.argv[1], newline="", encoding="utf-8") as file:
    rows = {{row["file_path_abs"]: row for row in csv.DictReader(file)}}
dataset = ls.ImageDataset.create("{coreset}")
for folder in {folders!r}:
    dataset.add_images_from_path(folder, embed=False)  # True: with LightlyStudio's own embeddings
for sample in dataset:
    if row := rows.get(sample.file_path_abs):
        label = CreateClassification(class_name=row["class_name"], confidence=float(row["confidence"]))
        sample.add_annotation(label, annotation_source=row["annotation_source"])
ls.start_gui()
```

Save it as `import_coreset.py` and run `python import_coreset.py {coreset}-lightly-....csv`.
'''


def fiftyone(coreset: str, by_reference: bool) -> str:
    """How FiftyOne opens the folder."""
    where = (
        "The images stay where they are: `labels.json` names them by their full paths, so this opens on the machine it "
        "was exported on. Leave the empty folder `data` in place, FiftyOne asks for it."
        if by_reference
        else "The images are in `data`."
    )
    return f"""# {coreset} in FiftyOne

```python
import fiftyone as fo

dataset = fo.Dataset.from_dir(
    dataset_dir="path/to/this/folder",
    dataset_type=fo.types.FiftyOneImageClassificationDataset,
)
fo.launch_app(dataset)
```

{where} Each label carries its confidence and, as attributes, its source (`human` or `pseudo`), the pseudo-label and the
scores.
"""


def probabilities(coreset: str, class_names: Sequence[str]) -> str:
    """What the arrays are, and how cleanlab takes them."""
    return f"""# Class probabilities of {coreset}

Row n of every array speaks of the same image, in the pool's order.

- `probs` (N, {len(class_names)}) float32: the model's probability of each class; rows sum to 1. They were kept in half
  precision, and of more than 100 classes the 100 most likely; the rest is spread evenly.
- `labels` (N,): the class to train on. `human` (N,): True where a person gave it. `ids` (N,): `image_id`.

`class_names` in the manifest lists the classes in the order of the columns.

```python
import numpy as np
from cleanlab.filter import find_label_issues

probs, labels, ids = (np.load(name) for name in ("PROBS.npy", "LABELS.npy", "IDS.npy"))  # the files beside this one
for row in find_label_issues(labels, probs, return_indices_ranked_by="self_confidence"):
    print(ids[row])
```

A pseudo-label is the class of the highest probability, so only labels by people can differ from it. Runs on pretrained
features answer labeled images by folds that did not see them; nets trained from scratch or fine-tuned have learned from
the labels that were not held out, and agree with those more than they should.
"""
