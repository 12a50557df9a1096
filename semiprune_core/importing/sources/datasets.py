"""The paper's data sets through torchvision, from a local folder or by download.

CIFAR-10, CIFAR-100 and Fashion-MNIST go through an array in the scratch folder; the others stay in their files.
Train is the pool, test (or val) the test split. SUN397 and Caltech-101 come without one in torchvision: a seeded random
fifth is taken (``test_share``). ImageNet and Tiny-ImageNet are read from their ``train`` and ``val`` folders.
"""

from __future__ import annotations

import os
import urllib.error
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from semiprune_core.checks import check_range
from semiprune_core.errors import SourceError, UnknownNameError
from semiprune_core.importing.sources import tiny_imagenet
from semiprune_core.importing.sources.arrays import ArraySource
from semiprune_core.importing.sources.base import (
    POOL_SPLIT,
    SOURCES,
    TEST_SPLIT,
    Entry,
    FileAt,
    Form,
    Origin,
    Source,
    SourceSpec,
)
from semiprune_core.importing.sources.folder import FolderSource, guarded_folder
from semiprune_core.importing.sources.layout import Layout
from semiprune_core.paths import PathGuard, normal_relative, shown
from semiprune_core.records import Problem

IN_MEMORY = ("CIFAR10", "CIFAR100", "FashionMNIST")
IN_FILES = ("Food101", "SUN397", "Caltech101")
IN_FOLDERS = ("ImageNet", "TinyImageNet")
NAMES = (*IN_MEMORY, *IN_FILES, *IN_FOLDERS)


def _torchvision() -> Any:
    """Torchvision's data sets; a pair of torch and torchvision that do not belong together is named as such."""
    try:
        import torchvision.datasets
    except (ImportError, RuntimeError, AttributeError) as error:  # "operator torchvision::nms does not exist"
        raise SourceError(
            f"torch and torchvision do not match here ({shown(str(error), 80)}). "
            "Run `make install` to install a matching pair.",
            code="TORCHVISION_BROKEN",
        ) from error
    return torchvision.datasets


def _made(name: str, root: Path, download: bool, make: Callable[[], Any]) -> Any:
    """A torchvision data set, or a sentence on why there is none."""
    try:
        return make()
    except (RuntimeError, OSError, urllib.error.URLError) as error:
        reason = shown(str(error), 160)
        if download:
            raise SourceError(
                f"{name} could not be downloaded into {root} ({reason}). Check the network, or copy the data there.",
                code="DOWNLOAD_FAILED",
            ) from error
        raise SourceError(
            f"{name} was not found in {root} ({reason}). Give the folder that holds it, or choose to download it.",
            code="DATASET_MISSING",
        ) from error


def parse_dataset(text: str) -> SourceSpec:
    """What stands behind ``torchvision:``, a name and perhaps its folder, ``NAME[:ROOT]``."""
    name, _, root = text.partition(":")
    return SourceSpec("torchvision", name, {"root": root} if root else {})


@SOURCES.register(
    "torchvision",
    title="Known data set",
    parse=parse_dataset,
    form=Form(
        title="Known data set",
        explain="CIFAR, Food-101, SUN397 and others, from a local folder.",
        label="Folder that holds it",
        example="~/datasets",
        is_a="text",
        icon="dataset",
    ),
)
def open_dataset(
    location: str,
    *,
    guard: PathGuard,
    scratch: Path,
    root: str = "",
    download: bool = False,
    test_share: float = 0.2,
) -> Source:
    """Open a data set by torchvision's name for it; ``root`` is the folder that holds it or receives the download."""
    by_word = {name.lower(): name for name in NAMES}
    name = by_word.get(location.lower().replace("-", ""))
    if name is None:
        raise UnknownNameError(f"Unknown data set '{shown(location)}'. Known: {', '.join(NAMES)}.")
    if not root:
        raise SourceError(
            f"Give the folder that holds {name}, or where to download it: torchvision:{name}:FOLDER.",
            code="DATASET_MISSING",
        )
    check_range("test_share", test_share, low=0, high=1, high_open=True)
    if download:
        guard.resolve(root).mkdir(parents=True, exist_ok=True)
    folder = guarded_folder(root, guard)
    if name in IN_MEMORY:
        return _open_arrays(name, folder, download, scratch)
    if name in IN_FILES:
        return _open_files(name, folder, download, test_share)
    return _open_image_folders(name, folder)


def _open_arrays(name: str, root: Path, download: bool, scratch: Path) -> ArraySource:
    kind = getattr(_torchvision(), name)
    parts = [
        _made(name, root, download, partial(kind, str(root), train=is_train, download=download))
        for is_train in (True, False)
    ]
    sizes = [len(part) for part in parts]
    shape = tuple(parts[0].data.shape[1:])
    images = np.lib.format.open_memmap(scratch / "images.npy", "w+", np.uint8, (sum(sizes), *shape))
    images[: sizes[0]], images[sizes[0] :] = (np.asarray(part.data) for part in parts)
    images.flush()
    columns = {
        "images": images,
        "labels": np.concatenate([np.asarray(part.targets) for part in parts]),
        "class_names": np.array(parts[0].classes),
        "split": np.repeat([POOL_SPLIT, TEST_SPLIT], sizes),
        "paths": np.array([f"{s}/{n:05d}.png" for s, size in zip(("train", "test"), sizes) for n in range(size)]),
    }
    return ArraySource(name, scratch / "images.npy", columns)


@dataclass(frozen=True)
class _Files:
    """Image files below one folder with their class numbers and splits, (n,) each."""

    root: Path
    paths: Sequence[str]
    labels: np.ndarray
    test_mask: np.ndarray


class FileListSource:
    """Files that a data set lists itself."""

    origin: Origin = "file"

    def __init__(self, files: _Files, class_names: tuple[str, ...]) -> None:
        self.problems: list[Problem] = []
        self.class_names: tuple[str, ...] | None = class_names
        self._names, self._files = class_names, files

    def count(self) -> int:
        return len(self._files.paths)

    def entries(self) -> Iterator[Entry]:
        root = str(self._files.root)
        for path, label, is_test in zip(self._files.paths, self._files.labels, self._files.test_mask, strict=True):
            place = FileAt(root, os.path.join(root, path))
            yield Entry(normal_relative(path), place, self._names[label], TEST_SPLIT if is_test else POOL_SPLIT)


def _open_files(name: str, root: Path, download: bool, test_share: float) -> FileListSource:
    kind = getattr(_torchvision(), name)
    splits = ("train", "test") if name == "Food101" else (None,)
    parts = [
        _made(name, root, download, partial(kind, str(root), **({"split": split} if split else {}), download=download))
        for split in splits
    ]
    if name == "Caltech101":
        base, class_names = Path(parts[0].root) / "101_ObjectCategories", tuple(parts[0].categories)
        listed = [
            (f"{class_names[label]}/image_{number:04d}.jpg", label, False)
            for label, number in zip(parts[0].y, parts[0].index, strict=True)
        ]
    else:
        base = root / ("food-101/images" if name == "Food101" else "SUN397")
        class_names = tuple(parts[0].classes)
        listed = [
            (os.path.relpath(file, base), label, number == 1)
            for number, part in enumerate(parts)
            for file, label in zip(part._image_files, part._labels, strict=True)
        ]
    listed.sort()
    test_mask = np.array([is_test for _, _, is_test in listed], dtype=bool)
    if len(splits) == 1:
        n = len(listed)
        test_mask[np.random.default_rng(0).permutation(n)[: round(n * test_share)]] = True
    files = _Files(
        Path(os.path.realpath(base)),
        [path for path, _, _ in listed],
        np.array([label for _, label, _ in listed], dtype=np.int64),
        test_mask,
    )
    return FileListSource(files, class_names)


def _open_image_folders(name: str, root: Path) -> FolderSource:
    if name == "TinyImageNet":
        if not tiny_imagenet.is_tiny_imagenet(root):
            raise _no_folders(name, root, f"train/ and {tiny_imagenet.ANNOTATIONS}")
        return FolderSource(root, tiny_imagenet.read_layout(root))
    if not (root / "train").is_dir() or not (root / "val").is_dir():
        raise _no_folders(name, root, "train/<class>/ and val/<class>/")
    return FolderSource(root, Layout({"train": POOL_SPLIT, "val": TEST_SPLIT}))


def _no_folders(name: str, root: Path, wanted: str) -> SourceError:
    return SourceError(
        f"{name} was not found in {root}: expected {wanted}. It cannot be downloaded here; "
        "get it from its authors and unpack it there.",
        code="DATASET_MISSING",
    )
