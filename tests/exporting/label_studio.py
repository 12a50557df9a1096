"""A project with odd names on its way through Label Studio, and what must come of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from semiprune_core.exporting import ExportOptions, export_coreset
from semiprune_core.labeling import Event, open_store
from semiprune_core.labeling.exchange.pictures import export_answers
from semiprune_core.project.pool import read_id
from tests.exporting.conftest import add_scores, imported, select_in

CLASSES = ("+1", "NA", "a/b", "C, D", "=x", 'say "hi"', "two  words", "Bär <&>")
SOURCE = "Bilder ü #1%"
FORMS = {"JSON": "json", "JSON_MIN": "min.json", "CSV": "csv"}
N_HUMAN = 6


def make_project(folder: Path):
    """24 pictures under odd names, the same ones every time."""
    rng, source = np.random.default_rng(7), folder / SOURCE
    for number in range(24):
        path = source / ("plain" if number % 2 else "a b & c") / f"=é '{number}' 100%.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)).save(path)
    return add_scores(imported(folder, "folder", source), CLASSES)


@dataclass
class Sent:
    """What went out: a coreset's tasks, with their interface; and the annotators' answers."""

    run: object
    tasks: list
    answers: list
    config: str


def send(project, folder: Path) -> Sent:
    """Ada labeled six images of the coreset and one beside it, ben two of the six, once otherwise."""
    store, run, pool = open_store(project), select_in(project, 0.25), project.pool()
    store.classes.add(CLASSES, annotator="ada")
    numbers = {one.name: one.class_id for one in store.classes.all()}
    ids = pool.ids[np.sort(run.coreset().indices)[:N_HUMAN]].tolist()
    events = [_label(f"a{n}", "ada", image, numbers[CLASSES[n]]) for n, image in enumerate(ids)]
    events += [_label("b0", "ben", ids[0], numbers[CLASSES[0]]), _label("b1", "ben", ids[5], numbers[CLASSES[7]])]
    assert {ack.status for ack in store.append(events)} == {"saved"}
    export = export_coreset(project, run, "labelstudio", ExportOptions(images="reference"))
    export_answers(store, pool, folder / "answers.json")
    return Sent(
        run,
        json.loads(export.files["labelstudio"].read_text("utf-8")),
        json.loads((folder / "answers.json").read_text("utf-8")),
        export.files["labelstudio-config"].read_text("utf-8"),
    )


def _label(event_id, annotator, image, class_id):
    return Event(event_id=event_id, annotator=annotator, action="label", image_id=image, class_id=class_id)


def other(name: str) -> str:
    return CLASSES[(CLASSES.index(name) + 1) % len(CLASSES)]


def planned(tasks: list) -> dict[str, tuple[str, str]]:
    """One label by a person corrected, one prediction confirmed, one changed: image id -> (what is done, class)."""
    human = [task["data"] for task in tasks if task["data"]["label_source"] == "human"]
    model = [task["data"] for task in tasks if task["data"]["label_source"] == "pseudo"]
    return {
        human[0]["image_id"]: ("correct", other(human[0]["human_label"])),
        model[0]["image_id"]: ("annotate", model[0]["pseudo_label"]),
        model[1]["image_id"]: ("annotate", other(model[1]["pseudo_label"])),
    }


def names_now(store) -> dict[int, str]:
    """Image id -> class of every label that counts."""
    names, labels = {one.class_id: one.name for one in store.classes.all()}, store.labels()
    return {int(i): names[int(c)] for i, c in zip(labels.ids, labels.class_ids, strict=True)}


def expected(before: dict[int, str], plan: dict[str, tuple[str, str]]) -> dict[int, str]:
    return before | {read_id(image): name for image, (_, name) in plan.items()}
