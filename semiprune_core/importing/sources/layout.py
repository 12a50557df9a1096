"""What folders mean: class folders are reference labels, ``train``/``test``/``val`` are splits.

Shared by folders, archives and uploads, so that the same tree gives the same labels however it comes.

    <class>/**/x.png                 label <class>; files beside the class folders have none
    train/<class>/**, test/<class>/**    split layout: only split folders at the top, ``train`` among them
    val/                             the test split; part of the pool where a ``test`` has class folders
    <one folder>/...                 a single folder around everything is looked through
    _unlabeled/                      no label (FiftyOne's convention)
    2024-05-01/, DCIM/, 100CANON/    no label: dates and a camera's folders are no classes, unless a person says so
"""

from __future__ import annotations

import dataclasses
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from semiprune_core.checks import check_choice
from semiprune_core.importing.sources.base import POOL_SPLIT, TEST_SPLIT
from semiprune_core.paths import shown
from semiprune_core.records import Problem

TRAIN, TEST, VAL = {"train", "training"}, {"test", "testing"}, {"val", "valid", "validation"}
SPLIT_FOLDERS = TRAIN | TEST | VAL
NOT_CLASSES = {"images", "_unlabeled"}
IMAGE_SUFFIXES = frozenset(  # what images.FORMATS reads
    (
        "jpg",
        "jpeg",
        "jpe",
        "jfif",
        "png",
        "webp",
        "avif",
        "heic",
        "heif",
        "bmp",
        "dib",
        "gif",
        "tif",
        "tiff",
        "ppm",
        "pgm",
        "pbm",
        "pnm",
    )
)
ARCHIVE_SUFFIXES = frozenset(("zip", "7z", "rar", "tar", "gz", "tgz", "bz2", "xz", "zst", "npz"))
AUTO, YES, NO = "auto", "yes", "no"
FOLDER_LABELS = (AUTO, YES, NO)
"""Whether class folders are reference labels: but for dates and a camera's folders, all of them, none."""
_DATE = re.compile(r"(19|20)\d\d([-_. ]?(0[1-9]|1[0-2])([-_. ]?(0[1-9]|[12]\d|3[01]))?)?([ T_-].*)?")
_CAMERA = re.compile(r"DCIM|[1-9]\d\d[A-Z_][A-Z0-9_]{4}", re.IGNORECASE)
HIDDEN_NAMES = frozenset({"thumbs.db", "desktop.ini", "__macosx", "$recycle.bin", "system volume information"})


def is_hidden(name: str) -> bool:
    """What systems leave in folders and nobody means to import: dot files, Thumbs.db, __MACOSX."""
    return name.startswith(".") or name.lower() in HIDDEN_NAMES


def suffix_of(name: str) -> str:
    return name.rpartition(".")[2].lower() if "." in name else ""


def split_of(text: str) -> str | None:
    """The split a word stands for, None for other words; ``val`` is the test split."""
    word = text.strip().lower()
    if word in TRAIN | {POOL_SPLIT, "unlabeled", ""}:
        return POOL_SPLIT
    return TEST_SPLIT if word in TEST | VAL else None


@dataclass(frozen=True)
class Layout:
    """Reads label and split off a relative path. ``splits`` maps top folders to splits; empty without split layout."""

    splits: Mapping[str, str] = field(default_factory=dict)
    folder_labels: str = AUTO

    def place(self, path: str) -> tuple[str | None, str]:
        """(label, split) of an image."""
        parts = path.split("/")
        split = self.splits.get(parts[0], POOL_SPLIT)
        folders = parts[1:-1] if self.splits else parts[:-1]
        return (folders[0] if folders and self.is_class(folders[0]) else None), split

    def is_class(self, folder: str) -> bool:
        """Whether the name of a folder is a reference label."""
        if folder == "_unlabeled" or self.folder_labels == NO:
            return False
        return self.folder_labels == YES or not is_storage(folder)

    def class_folders(self, paths: Iterable[str]) -> tuple[str, ...]:
        """The folders among the relative ``paths`` that could be classes, in order; without labels too."""
        depth = 1 if self.splits else 0
        parts = (path.split("/")[:-1] for path in paths)
        return tuple(sorted({folders[depth] for folders in parts if len(folders) > depth} - {"_unlabeled"}))

    def ignores(self, relative: str) -> bool:
        """Whether a file or folder is no part of the data and not worth a word."""
        return False


def is_storage(name: str) -> bool:
    """Whether a folder's name says when or by which camera pictures were taken, not what they show.

    >>> [is_storage(name) for name in ("2024-05-01", "2023_07 Rome", "DCIM", "100CANON", "7", "cat", "n01443537")]
    [True, True, True, True, False, False, False]
    """
    return bool(_DATE.fullmatch(name) or _CAMERA.fullmatch(name))


def with_folder_labels(layout: Layout, folder_labels: str) -> Layout:
    check_choice("folder_labels", folder_labels, FOLDER_LABELS)
    return dataclasses.replace(layout, folder_labels=folder_labels)


def layout_of(top_folders: Iterable[str], with_classes: Iterable[str]) -> Layout:
    """The layout of a tree with these top folders; ``with_classes`` are those that hold class folders."""
    by_word = {name.lower(): name for name in top_folders}
    if not by_word or not set(by_word) <= SPLIT_FOLDERS or not set(by_word) & TRAIN:
        return Layout()
    labeled = {name.lower() for name in with_classes}
    val_split = POOL_SPLIT if labeled & TEST else TEST_SPLIT
    split = {**dict.fromkeys(TRAIN, POOL_SPLIT), **dict.fromkeys(TEST, TEST_SPLIT), **dict.fromkeys(VAL, val_split)}
    return Layout({name: split[word] for word, name in by_word.items()})


def layout_of_paths(paths: Iterable[str]) -> Layout:
    """The layout of a tree known by the relative paths of its files."""
    inner: dict[str, set[str]] = {}
    for path in paths:
        folders = path.split("/")[:-1]
        if folders:
            if folders[0].lower() not in SPLIT_FOLDERS:
                return Layout()
            inner.setdefault(folders[0], set()).update(folders[1:2])
    return layout_of(inner, [name for name, folders in inner.items() if has_class_folders(folders)])


class Wrapper:
    """Finds the folder around everything while paths go by."""

    def __init__(self) -> None:
        self._common: list[str] | None = None

    def see(self, path: str) -> None:
        folders = path.split("/")[:-1]
        if self._common is None:
            self._common = folders
        elif self._common != folders[: len(self._common)]:
            self._common = list(os.path.commonprefix([self._common, folders]))

    @property
    def prefix(self) -> str:
        """The folder with its slash, empty where there is none; a split folder is never taken for a wrapper."""
        parts = self._common or []
        end = next((number for number, part in enumerate(parts) if part.lower() in SPLIT_FOLDERS), len(parts))
        return "".join(f"{part}/" for part in parts[:end])


def has_hidden_part(path: str) -> bool:
    return any(is_hidden(part) for part in path.split("/"))


def has_class_folders(folders: Iterable[str]) -> bool:
    """Whether these sub-folders of a split look like classes."""
    return bool(set(folders) - NOT_CLASSES)


@dataclass(frozen=True)
class Twins:
    """Names of one folder that some file systems cannot keep apart."""

    equal: frozenset[str]
    """The same but for Unicode spelling (NFC, NFD): one path in our spelling, so neither is imported."""
    similar: frozenset[str]
    """The same but for case: both are imported, and both are reported."""


def twins(names: Iterable[str]) -> Twins:
    spelled = {name: unicodedata.normalize("NFC", name) for name in names}
    equal = Counter(spelled.values())
    similar = Counter(name.casefold() for name in equal)
    return Twins(
        frozenset(name for name, nfc in spelled.items() if equal[nfc] > 1),
        frozenset(name for name, nfc in spelled.items() if equal[nfc] == 1 and similar[nfc.casefold()] > 1),
    )


def not_an_image(path: str) -> Problem:
    """The problem of a file whose name ends unlike an image."""
    suffix = suffix_of(path.rpartition("/")[2])
    kind = f"ends in .{shown(suffix, 20)}" if suffix else "has no file extension"
    return Problem(
        path,
        "NOT_AN_IMAGE",
        f"{shown(path)} {kind} and was left out. Images end in .jpg, .png, .webp, .bmp, .gif, .tif or .ppm.",
    )
