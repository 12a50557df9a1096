"""Tiny-ImageNet's folder layout: labels of ``val/`` in a text file, class names in another.

train/<wnid>/images/*.JPEG    pool
val/images/*.JPEG             test, labels in val/val_annotations.txt (name, wnid, box)
test/images/*.JPEG            no labels were published; left out, with the annotation files beside the images
words.txt                     wnid, tab, names
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from semiprune_core.importing.sources.base import POOL_SPLIT, TEST_SPLIT
from semiprune_core.importing.sources.opening import listed, named
from semiprune_core.paths import open_beneath

ANNOTATIONS = "val/val_annotations.txt"
TEXTS = {"words.txt", "wnids.txt"}


@dataclass(frozen=True)
class TinyLayout:
    """Labels by wnid folder for ``train``, by file name for ``val``."""

    names: dict[str, str]
    """wnid -> class name, in the order of wnids."""
    val_labels: dict[str, str]
    """File name in val/images -> wnid."""

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(self.names.values())

    def place(self, path: str) -> tuple[str | None, str]:
        parts = path.split("/")
        if parts[0] == "val":
            return self.names.get(self.val_labels.get(parts[-1], "")), TEST_SPLIT
        return self.names.get(parts[1]) if len(parts) > 2 else None, POOL_SPLIT

    def ignores(self, relative: str) -> bool:
        """The published files that are no images, and the unlabeled test images."""
        name = relative.rpartition("/")[2]
        return relative == "test" or name in TEXTS or relative == ANNOTATIONS or name.endswith("_boxes.txt")


def is_tiny_imagenet(root: Path) -> bool:
    return (root / ANNOTATIONS).is_file() and (root / "train").is_dir()


def read_layout(root: Path) -> TinyLayout:
    with named("train"):
        wnids = sorted(name for name, kind in listed(root / "train") if kind == "folder")
    words = dict.fromkeys(wnids, "")
    for line in _lines(root, "words.txt"):
        wnid, _, synonyms = line.partition("\t")
        if wnid in words:
            words[wnid] = synonyms.split(",")[0].strip()
    common = Counter(words.values())
    names = {wnid: name if name and common[name] == 1 else f"{name} {wnid}".strip() for wnid, name in words.items()}
    rows = (line.split("\t") for line in _lines(root, ANNOTATIONS))
    return TinyLayout(names, {row[0]: row[1] for row in rows if len(row) > 1})


def _lines(root: Path, name: str) -> list[str]:
    if not (root / name).is_file():
        return []
    with named(name), open(open_beneath(str(root), str(root / name)), encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()
