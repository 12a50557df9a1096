"""Images dropped into the browser: ``files/<number>`` in an upload folder, their names in ``index.jsonl``.

Each line of the index is ``{"file": "0", "name": "cats/a.png", "bytes": 123}``; of a name sent twice the last arrival
counts, as it does in the browser. Originals are packed into the pool, because the upload folder goes away.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from semiprune_core.errors import SourceError, UnsafePathError
from semiprune_core.importing.sources import layout
from semiprune_core.importing.sources.base import SOURCES, Entry, FileAt, Origin, SourceSpec
from semiprune_core.importing.sources.folder import guarded_folder
from semiprune_core.paths import PathGuard, normal_relative, shown
from semiprune_core.records import Problem

INDEX = "index.jsonl"
ARCHIVES = {".zip": "zip", ".npz": "npz"}


class UploadSource:
    """The files of one upload, by name."""

    origin: Origin = "packed"
    class_names: tuple[str, ...] | None = None

    def __init__(self, folder: Path, folder_labels: str = layout.AUTO) -> None:
        self.problems: list[Problem] = []
        self._files = folder / "files"
        self._index = _read_index(folder / INDEX)
        wrapper = layout.Wrapper()
        for name in self._index:
            wrapper.see(name)
        self._prefix = wrapper.prefix
        found = layout.layout_of_paths(name.removeprefix(self._prefix) for name in self._index)
        self._layout = layout.with_folder_labels(found, folder_labels)

    def class_folders(self) -> tuple[str, ...]:
        """The folders whose names could be reference labels."""
        return self._layout.class_folders(name.removeprefix(self._prefix) for name in self._index)

    def count(self) -> int:
        return sum(1 for _ in self.entries())

    def entries(self) -> Iterator[Entry]:
        self.problems.clear()
        twins = layout.twins(self._index)
        for name in sorted(self._index, key=lambda name: name.split("/")):
            path = name.removeprefix(self._prefix)
            if layout.suffix_of(path.rpartition("/")[2]) not in layout.IMAGE_SUFFIXES:
                self.problems.append(layout.not_an_image(path))
                continue
            if name in twins.similar:
                text = f"{shown(path)} has a twin whose name differs only in case; both were imported."
                self.problems.append(Problem(path, "NAME_TWIN", text))
            label, split = self._layout.place(path)
            yield Entry(path, FileAt(str(self._files), str(self._files / self._index[name])), label, split)


def uploaded_source(folder: Path) -> SourceSpec:
    """What an upload is: one ZIP or ``.npz`` under its own name, or images; several archives at once are refused."""
    index = _read_index(folder / INDEX)
    archives = [name for name in index if PurePosixPath(name).suffix.lower() in ARCHIVES]
    if not archives:
        return SourceSpec("uploads", str(folder))
    if len(index) > 1:
        raise SourceError(
            f"{shown(archives[0])} is an archive among {len(index)} files. Drop one ZIP or .npz at a time, or images.",
            code="ONE_ARCHIVE",
        )
    name = PurePosixPath(archives[0]).name
    if not (folder / name).exists():
        os.link(folder / "files" / index[archives[0]], folder / name)  # so that messages name it as the person does
    return SourceSpec(ARCHIVES[PurePosixPath(name).suffix.lower()], str(folder / name))


def _read_index(path: Path) -> dict[str, str]:
    """Name -> file, from the index an upload has written; hidden files are skipped."""
    if not path.is_file():
        raise SourceError("This upload holds no files. Drop the images again.", code="UPLOAD_EMPTY")
    index: dict[str, str] = {}
    for line in path.read_bytes().rstrip(b"\n").split(b"\n"):  # a name may hold other ends of lines, such as U+2028
        try:
            entry = json.loads(line.decode())
            name, file = normal_relative(entry["name"]), str(int(entry["file"]))
            name.encode()
        except (
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            OverflowError,
            RecursionError,
            UnsafePathError,
        ) as error:
            raise SourceError(
                f"The upload's list of files is damaged ({shown(str(error))}). Drop the images again.",
                code="UPLOAD_DAMAGED",
            ) from error
        if not layout.has_hidden_part(name):
            index[name] = file
    return index


@SOURCES.register("uploads", title="Images from the browser")
def open_uploads(location: str, *, guard: PathGuard, scratch: Path, folder_labels: str = layout.AUTO) -> UploadSource:
    return UploadSource(guarded_folder(location, guard), folder_labels)
