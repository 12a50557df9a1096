"""Labels to other tools: CSV, and Label Studio's tasks with the interface that fits them."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import numpy as np
import pyarrow as pa

from semiprune_core.files import open_atomic
from semiprune_core.labeling.classes import LabelClass, NewClass, resolve_merges
from semiprune_core.labeling.events import FIRST_ROUND, Held
from semiprune_core.labeling.exchange.label_studio import LOCAL_FILES
from semiprune_core.project.pool import export_id
from semiprune_core.project.spreadsheet import safe_cell
from semiprune_core.records import IntArray

if TYPE_CHECKING:
    from semiprune_core.labeling.store import LabelStore

COLUMNS = ("image_id", "path", "label", "annotator")


class LabeledPool(Protocol):
    """What labels are exchanged about; :class:`semiprune_core.project.pool.Pool` is one."""

    @property
    def ids(self) -> np.ndarray: ...
    @property
    def class_names(self) -> tuple[str, ...]: ...
    @property
    def reference_labels(self) -> IntArray: ...
    @property
    def duplicate_of(self) -> IntArray: ...
    def column(self, name: str) -> pa.Array: ...
    def positions(self, ids: np.ndarray) -> IntArray: ...


class Served(Protocol):
    """Where Label Studio finds pictures."""

    def address(self, position: int) -> str: ...


def export_csv(
    store: LabelStore, pool: LabeledPool, path: str | Path, *, exact: bool = False, every_answer: bool = False
) -> int:
    """Write labels as CSV in the pool's order; returns the number of rows.

    One row per labeled image with its settled label, or with ``every_answer`` one per annotator and image.
    The default is safe to open in a spreadsheet; ``exact`` is byte for byte what is stored, for machines: only that
    one comes back unchanged into a project that does not know its classes yet.
    """
    keep = str if exact else safe_cell
    answers = _answers(store, every_answer=every_answer)
    positions = pool.positions(np.array([held.image_id for held, _ in answers], dtype=np.uint64))
    order = sorted((p, number) for number, p in enumerate(positions.tolist()) if p >= 0)
    paths = pool.column("path").take(pa.array([p for p, _ in order], pa.int64())).to_pylist()
    with open_atomic(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for (_, number), where in zip(order, paths):
            held, name = answers[number]
            writer.writerow([export_id(held.image_id), keep(where), keep(name), keep(held.annotator or "")])
    return len(order)


def _answers(store: LabelStore, *, every_answer: bool) -> list[tuple[Held, str]]:
    """What is exported: what holds, with the class's name; ordered by image, then annotator."""
    with store.database.read() as connection:
        sheet = store.classes.read(connection)
    names, into = {entry.class_id: entry.name for entry in sheet}, resolve_merges(sheet)
    chosen = [held for held in store.held() if held.class_id is not None]
    if every_answer:
        chosen = [held for held in chosen if held.round == FIRST_ROUND]
    else:
        deciding = set(store.labels().seqs.tolist())
        chosen = [held for held in chosen if held.seq in deciding]
    chosen.sort(key=lambda held: (held.image_id, held.holder))
    return [(held, names[into.get(held.class_id or 0, held.class_id or 0)]) for held in chosen]


def label_studio_config(classes: Sequence[LabelClass | NewClass]) -> str:
    """The labeling interface that fits our tasks, for Label Studio's settings."""
    choices = "".join(
        f"<Choice value={quoteattr(entry.name)}" + (f" hotkey={quoteattr(entry.key)}" if entry.key else "") + "/>"
        for entry in classes
    )
    return (
        '<View><Image name="image" value="$image"/>'
        f'<Choices name="choice" toName="image" choice="single">{choices}</Choices></View>'
    )


def export_label_studio(store: LabelStore, pool: LabeledPool, path: str | Path, *, served: Served | None = None) -> int:
    """Write every annotator's answers as Label Studio tasks in the pool's order; returns the number of tasks.

    ``served`` knows under which address Label Studio finds the pictures. ``data`` says what went out, so that what
    comes back unchanged is known for what it is.
    """
    with store.database.read() as connection:
        sheet = store.classes.read(connection)
    names, into = {entry.class_id: entry.name for entry in sheet}, resolve_merges(sheet)
    leads = {row["event_id"]: row["lead_time_ms"] for row in store.events()}
    held = [answer for answer in store.held() if answer.round == FIRST_ROUND and answer.action is not None]
    held.sort(key=lambda answer: (answer.image_id, answer.holder))
    by_image = [list(group) for _, group in itertools.groupby(held, key=lambda answer: answer.image_id)]
    positions = pool.positions(np.array([answers[0].image_id for answers in by_image], dtype=np.uint64)).tolist()
    tasks = [(position, answers) for position, answers in zip(positions, by_image) if position >= 0]
    tasks.sort(key=lambda task: task[0])
    paths = pool.column("path").take(pa.array([position for position, _ in tasks], pa.int64())).to_pylist()
    settled = store.labels()
    labels = dict(zip(settled.ids.tolist(), settled.class_ids.tolist()))
    with open_atomic(path, "w", encoding="utf-8") as file:
        file.write("[")
        for number, ((position, answers), where) in enumerate(zip(tasks, paths)):
            image_id = answers[0].image_id
            classes = [None if one.class_id is None else into.get(one.class_id, one.class_id) for one in answers]
            data = {
                "image": served.address(position) if served else LOCAL_FILES + quote(where),
                "image_id": export_id(image_id),
                "path": where,
                "human_label": names[labels[image_id]] if image_id in labels else "",
                "annotators": [answer.holder for answer in answers],
                "answers": [None if class_id is None else names[class_id] for class_id in classes],
            }
            annotations = []
            for answer, class_id in zip(answers, classes):
                lead = leads.get(answer.event_id)
                annotation: dict[str, Any] = {
                    "result": [] if class_id is None else [choice(names[class_id])],
                    "was_cancelled": class_id is None,
                    "ground_truth": False,
                }
                if lead is not None:
                    annotation["lead_time"] = lead / 1000
                annotations.append(annotation)
            file.write(",\n" if number else "\n")
            json.dump({"data": data, "annotations": annotations}, file, ensure_ascii=False)
        file.write("\n]\n")
    return len(tasks)


def choice(name: str) -> dict[str, Any]:
    """One answer as Label Studio writes it, for the interface of :func:`label_studio_config`."""
    return {"id": "r1", "from_name": "choice", "to_name": "image", "type": "choices", "value": {"choices": [name]}}
