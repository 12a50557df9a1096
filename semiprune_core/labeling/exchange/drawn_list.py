"""The drawn images as a list: what is labeled and what is not, for other tools and for people elsewhere."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import pyarrow as pa

from semiprune_core.files import open_atomic
from semiprune_core.labeling.drawing import together
from semiprune_core.labeling.exchange.label_studio import LOCAL_FILES
from semiprune_core.labeling.export_labels import label_studio_config
from semiprune_core.labeling.progress_report import progress
from semiprune_core.project.pool import Pool, export_id, mime_of
from semiprune_core.project.spreadsheet import safe_cell

if TYPE_CHECKING:
    from semiprune_core.labeling.store import LabelStore

COLUMNS = ("image_id", "path", "state", "label")
LABELED, DISPUTED, SKIPPED, OPEN = "labeled", "disputed", "skipped", "open"


class DrawnImage(NamedTuple):
    """One image of the open drawings; ``label`` is empty where it has none."""

    image_id: int
    position: int
    path: str
    state: str
    label: str


def drawn_images(store: LabelStore, pool: Pool) -> list[DrawnImage]:
    """The images of all open drawings in their order, each once; those that have left the pool are left out."""
    with store.database.read() as connection:
        ids, _ = together(store.drawings.read_open(connection))
        names = {entry.class_id: entry.name for entry in store.classes.read(connection)}
        labels = store.labels_in(connection)
    skipped = set(progress(store).skipped_ids.tolist())
    disputed = set(labels.disputed_ids.tolist())
    class_of = dict(zip(labels.ids.tolist(), labels.class_ids.tolist(), strict=True))
    positions = pool.positions(ids)
    ids, positions = ids[positions >= 0], positions[positions >= 0]
    paths = pool.column("path").take(pa.array(positions.tolist(), pa.int64())).to_pylist()
    images = []
    for image_id, position, path in zip(ids.tolist(), positions.tolist(), paths, strict=True):
        label = names[class_of[image_id]] if image_id in class_of else ""
        without = DISPUTED if image_id in disputed else SKIPPED if image_id in skipped else OPEN
        images.append(DrawnImage(image_id, position, path, LABELED if label else without, label))
    return images


def export_drawn_csv(store: LabelStore, pool: Pool, path: str | Path) -> int:
    """One row for each drawn image, safe to open in a spreadsheet; returns how many."""
    images = drawn_images(store, pool)
    with open_atomic(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for image in images:
            writer.writerow([export_id(image.image_id), safe_cell(image.path), image.state, safe_cell(image.label)])
    return len(images)


def export_drawn_tasks(store: LabelStore, pool: Pool, path: str | Path) -> int:
    """A ZIP of Label Studio tasks for the drawn images without a label, with the pictures; returns how many.

    It unpacks into one folder, for the root of Label Studio's local files. ``data.image_id`` lets the answers find
    their images when Label Studio's export is imported here.
    """
    folder = f"{store.project}-drawn"
    wanted = [image for image in drawn_images(store, pool) if not image.label]
    tasks = []
    with open_atomic(path, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for image in wanted:
            data = pool.original(image.position)
            name = f"{folder}/images/{export_id(image.image_id)}.{mime_of(data).partition('/')[2]}"
            archive.writestr(name, data)
            tasks.append({"data": {"image": LOCAL_FILES + quote(name), "image_id": export_id(image.image_id)}})
        archive.writestr(f"{folder}/tasks.json", json.dumps(tasks, ensure_ascii=False, indent=1))
        archive.writestr(f"{folder}/interface.xml", label_studio_config(store.classes.all()))
    return len(wanted)
