"""Annotation files of other tools (.json): COCO, FiftyOne's labels.json, Label Studio's JSON and JSON_MIN.

The images lie below the file's own folder or the option ``root``. An image with one class has it as its label; with
several it is imported without one and listed.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from semiprune_core.errors import SourceError
from semiprune_core.importing import limited
from semiprune_core.importing.sources.archive import guarded_file
from semiprune_core.importing.sources.base import SOURCES, Form
from semiprune_core.importing.sources.folder import guarded_folder
from semiprune_core.importing.sources.given import SEVERAL, GivenSource
from semiprune_core.importing.sources.opening import opened
from semiprune_core.paths import PathGuard, shown

LOCAL_FILES = "/data/local-files/?d="
DATA = "data"


def read_annotations(path: str) -> Iterator[list[str]]:
    """Rows of (path, label, split, remark). Only for a limited process."""
    with opened(path) as file:
        data = file.read()
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{shown(Path(path).name)} is not JSON: {error}.", code="JSON_DAMAGED") from error
    if isinstance(value, list):
        yield from _label_studio(value)
    elif isinstance(value, Mapping) and isinstance(value.get("images"), list) and "categories" in value:
        yield from _coco(value)
    elif isinstance(value, Mapping) and isinstance(value.get("labels"), Mapping):
        yield from _fiftyone(value, Path(path).parent)
    else:
        raise SourceError(
            f"{shown(Path(path).name)} is neither COCO nor FiftyOne's labels.json nor a Label Studio export.",
            code="JSON_SHAPE",
        )


def _row(path: Any, labels: Iterable[Any]) -> list[str]:
    names = {label for label in labels if isinstance(label, str) and label}
    only = names.pop() if len(names) == 1 else ""
    return [path if isinstance(path, str) else "", only, "", SEVERAL if names else ""]


def _maps(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects of a list."""
    yield from (item for item in value if isinstance(item, Mapping)) if isinstance(value, list) else ()


def _coco(value: Mapping[str, Any]) -> Iterator[list[str]]:
    names = {str(one.get("id")): one.get("name") for one in _maps(value["categories"])}
    labels: dict[str, set[Any]] = {}
    for one in _maps(value.get("annotations")):
        labels.setdefault(str(one.get("image_id")), set()).add(names.get(str(one.get("category_id"))))
    for image in _maps(value["images"]):
        yield _row(image.get("file_name"), labels.get(str(image.get("id")), ()))


def _fiftyone(value: Mapping[str, Any], folder: Path) -> Iterator[list[str]]:
    """Names in ``labels`` are those of files in ``data`` without their ending, or full paths."""
    classes = value.get("classes")
    names = {}
    for place, _, files in os.walk(folder / DATA):
        for file in files:
            relative = (Path(place) / file).relative_to(folder / DATA).as_posix()
            names[os.path.splitext(relative)[0]] = relative
    for name, label in value["labels"].items():
        label = label.get("label") if isinstance(label, Mapping) else label
        if isinstance(label, int) and isinstance(classes, list) and 0 <= label < len(classes):
            label = classes[label]
        yield _row(names.get(name, name), [label])


def _label_studio(tasks: list[Any]) -> Iterator[list[str]]:
    for task in _maps(tasks):
        facts = task.get("data", task)
        image = facts.get("image") if isinstance(facts, Mapping) else None
        if isinstance(image, str) and image.startswith(LOCAL_FILES):
            image = unquote(image.removeprefix(LOCAL_FILES))
        labels = [task.get("choice")] if "annotations" not in task else []
        for annotation in _maps(task.get("annotations")):
            if annotation.get("was_cancelled") is not True:
                labels += [name for result in _maps(annotation.get("result")) for name in _choices(result)]
        yield _row(image, labels)


def _choices(result: Mapping[str, Any]) -> list[Any]:
    value = result.get("value")
    choices = value.get("choices") if isinstance(value, Mapping) else None
    return choices if isinstance(choices, list) else []


@SOURCES.register(
    "annotations",
    title="Annotations of another tool",
    suffixes=(".json",),
    beside=True,
    form=Form(
        title="COCO, FiftyOne, Label Studio",
        explain="Their JSON beside the images: COCO, FiftyOne's labels.json, or an export of Label Studio.",
        label="JSON file",
        example="~/pictures/annotations.json",
        is_a="file",
        icon="data_object",
    ),
)
def open_annotations(location: str, *, guard: PathGuard, scratch: Path, root: str | None = None) -> GivenSource:
    """Open an annotation file; its paths are relative to its own folder, or to ``root``."""
    path = guarded_file(location, guard, "annotation file")
    read = functools.partial(limited.stream, read_annotations, os.fspath(path), name=path.name)
    return GivenSource(path, guarded_folder(root, guard) if root else path.parent, read)
