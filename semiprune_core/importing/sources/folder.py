"""A folder on the server. Originals stay where they are.

Decisions: hidden files are skipped and counted; linked files are read if they stay inside the folder, linked folders
are not followed (their images are found where they lie); names that differ only in case are both kept and reported,
names that differ only in Unicode spelling are reported and left out.
"""

from __future__ import annotations

import contextlib
import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from semiprune_core.errors import SourceError, UnsafePathError
from semiprune_core.importing.sources import layout, tiny_imagenet
from semiprune_core.importing.sources.base import SOURCES, Entry, FileAt, Form, Origin
from semiprune_core.importing.sources.opening import listed
from semiprune_core.paths import PathGuard, leads_inside, normal_relative, open_real, shown
from semiprune_core.records import Problem


class FolderSource:
    """All images below ``root``, folder by folder, names in Unicode order."""

    origin: Origin = "file"

    def __init__(self, root: Path, labels: layout.Layout | tiny_imagenet.TinyLayout) -> None:
        self.root = root
        self.problems: list[Problem] = []
        self.class_names = labels.class_names if isinstance(labels, tiny_imagenet.TinyLayout) else None
        self.n_hidden = 0
        self._layout = labels

    def count(self) -> int:
        return sum(1 for _ in self.entries())

    def entries(self) -> Iterator[Entry]:
        self.problems.clear()
        self.n_hidden = 0
        for relative in self._walk():
            path = normal_relative(relative)
            label, split = self._layout.place(path)
            yield Entry(path, FileAt(str(self.root), os.path.join(self.root, relative)), label, split)

    def class_folders(self) -> tuple[str, ...]:
        """The folders whose names could be reference labels; () for a layout of its own."""
        if not isinstance(self._layout, layout.Layout):
            return ()
        tops = list(self._layout.splits) or [""]
        names = [f"{top}/{name}/_" if top else f"{name}/_" for top in tops for name in _subfolders(self.root / top)]
        return self._layout.class_folders(names)

    def _walk(self) -> Iterator[str]:
        """Relative names of usable files as they are on disk, depth first; everything else becomes a problem."""
        waiting = [("", True)]
        while waiting:
            relative, is_folder = waiting.pop()
            if is_folder:
                waiting += self._children(relative)
            else:
                yield relative

    def _children(self, folder: str) -> list[tuple[str, bool]]:
        """What of a folder is to be visited and whether it is a folder itself, last name first."""
        try:
            children = listed(self.root / folder)
        except OSError as error:
            self._note(
                folder or ".",
                "FOLDER_UNREADABLE",
                f"could not be listed ({error.strerror}) and was left out. Make it readable.",
            )
            return []
        seen = [(name, kind) for name, kind in children if not self._leaves_out(name)]
        seen = [(n, kind) for n, kind in seen if not self._layout.ignores(f"{folder}/{n}" if folder else n)]
        twins = layout.twins(name for name, _ in seen)
        usable = []
        for name, kind in sorted(seen, key=lambda item: unicodedata.normalize("NFC", item[0]), reverse=True):
            relative = f"{folder}/{name}" if folder else name
            if self._is_usable(relative, name, kind, twins):
                usable.append((relative, kind == "folder"))
        return usable

    def _leaves_out(self, name: str) -> bool:
        self.n_hidden += (hidden := layout.is_hidden(name))
        return hidden

    def _is_usable(self, relative: str, name: str, kind: str, twins: layout.Twins) -> bool:
        if not _is_utf8(name):
            return self._note(relative, "NAME_NOT_UTF8", "has a name that is not UTF-8 and was left out. Rename it.")
        try:
            normal_relative(relative)
        except UnsafePathError:
            return self._note(relative, "NAME_UNUSABLE", "has a name that other systems read as a path. Rename it.")
        if "\\" in name:
            return self._note(relative, "NAME_UNUSABLE", "has a backslash in its name and was left out. Rename it.")
        if name in twins.equal:
            return self._note(
                relative, "NAME_TWIN", "has a twin whose name looks the same (NFC and NFD). Rename one of the two."
            )
        if kind == "folder":
            return True
        if kind == "other":
            return self._note(relative, "NOT_A_FILE", "is a device, a pipe or a socket and was left out.")
        if kind == "link" and not self._stays_inside(relative):
            return False
        if layout.suffix_of(name) not in layout.IMAGE_SUFFIXES:
            self.problems.append(layout.not_an_image(relative))
            return False
        if name in twins.similar:
            self._note(relative, "NAME_TWIN", "has a twin whose name differs only in case; both were imported.")
        return True

    def _stays_inside(self, relative: str) -> bool:
        place = self.root / relative
        if not leads_inside(place, self.root):
            return self._note(relative, "PATH_OUTSIDE_ROOT", "is a link out of its folder. Copy the file itself.")
        if place.is_dir():
            return self._note(relative, "LINKED_FOLDER", "is a link to a folder and was not followed.")
        if not place.is_file():
            return self._note(relative, "FILE_MISSING", "is a broken link. Remove it.")
        return True

    def _note(self, relative: str, code: str, what: str) -> bool:
        """List a problem; False, so that a check can end with it."""
        path = relative.encode("utf-8", "backslashreplace").decode()
        self.problems.append(Problem(path, code, f"{shown(path)} {what}"))
        return False


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def guarded_folder(location: str, guard: PathGuard) -> Path:
    """The real path of a folder a person named."""
    root = guard.resolve(location)
    if not root.is_dir():
        raise SourceError(f"{shown(location)} is not a folder. Check its name.", code="FOLDER_MISSING")
    try:
        os.close(open_real(root))
    except OSError as error:
        raise SourceError(
            f"The folder {shown(location)} cannot be listed ({error.strerror}). Make it readable.",
            code="FOLDER_UNREADABLE",
        ) from error
    return root


def _subfolders(folder: Path) -> list[str]:
    """Visible sub-folders."""
    return sorted(name for name, kind in _visible(folder) if kind == "folder")


def _visible(folder: Path) -> list[tuple[str, str]]:
    """(name, kind) of what is not hidden; nothing where the folder cannot be read, which the listing itself reports."""
    with contextlib.suppress(OSError):
        return [(name, kind) for name, kind in listed(folder) if not layout.is_hidden(name)]
    return []


def _only_subfolder(folder: Path) -> Path | None:
    """The one sub-folder of a folder that holds nothing else, unless its name is a split."""
    visible = _visible(folder)
    if len(visible) != 1 or visible[0][1] != "folder":
        return None
    name = visible[0][0]
    if name.lower() in layout.SPLIT_FOLDERS or not os.access(folder / name, os.R_OK | os.X_OK):
        return None
    return folder / name


@SOURCES.register(
    "folder",
    title="Folder on the server",
    form=Form(
        title="Server folder",
        explain="A folder this server can read. Class folders become reference labels.",
        label="Folder",
        example="~/pictures/my-pool",
        is_a="folder",
        icon="folder",
    ),
)
def open_folder(location: str, *, guard: PathGuard, scratch: Path, folder_labels: str = layout.AUTO) -> FolderSource:
    """Open a folder; a single folder around everything is looked through."""
    root = guarded_folder(location, guard)
    while (inner := _only_subfolder(root)) is not None:
        root = inner
    if tiny_imagenet.is_tiny_imagenet(root):
        return FolderSource(root, tiny_imagenet.read_layout(root))
    top = _subfolders(root)
    found = layout.layout_of(top, [n for n in top if layout.has_class_folders(_subfolders(root / n))])
    return FolderSource(root, layout.with_folder_labels(found, folder_labels))
