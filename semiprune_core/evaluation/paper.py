"""The paper's own numbers, for pools that are one of its data sets.

``assets/paper_results.csv`` holds them: dataset, table (``coresets``, ``scores`` for its ablation over scores,
``same_annotation_budget``), method, title, pruning_ratio, test_accuracy_percent; from "Label-Efficient Dataset Pruning
via Semi-Supervised Pseudo-Labeling" (SemiPrune), means over three or five runs as the paper has them.
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semiprune_core.learning.presets import PAPER_SUPERVISED, supervised_preset
from semiprune_core.paths import studio_folder
from semiprune_core.project.workspace import Project

RESULTS = studio_folder() / "assets" / "paper_results.csv"
SAME_BUDGET = "same_annotation_budget"
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@dataclass(frozen=True)
class PaperSet:
    """One of the paper's data sets; ``n_images`` of its training part, where that has one published size."""

    title: str
    n_classes: tuple[int, ...]
    n_images: int | None = None


PAPER_SETS = {
    "cifar10": PaperSet("CIFAR-10", (10,), 50_000),
    "cifar100": PaperSet("CIFAR-100", (100,), 50_000),
    "food101": PaperSet("Food-101", (101,), 75_750),
    "sun397": PaperSet("SUN397", (397,)),
    "caltech101": PaperSet("Caltech-101", (101, 102)),
    "tinyimagenet": PaperSet("Tiny-ImageNet", (200,), 100_000),
    "imagenet": PaperSet("ImageNet-1K", (1000,), 1_281_167),
}
NAMED = {"imagenet": "imagenet1k", "tinyimagenet": "tiny-imagenet"}
"""How the paper's tables call them, where that differs."""
ALSO = {"score_extrapolation": ("extrapolation_knn", "extrapolation_gnn")}
"""Methods of ours that are one row of the paper, where their names differ."""


@dataclass(frozen=True)
class PaperNumbers:
    """What the paper reports for a data set: percent by (method, ratio), and of the full data."""

    dataset: str
    title: str
    by_cell: Mapping[tuple[str, float], float]
    full: float | None
    note: str


@functools.lru_cache(maxsize=1)
def _rows() -> tuple[dict[str, str], ...]:
    with open(RESULTS, encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def data_set_of(project: Project) -> str | None:
    """The name in the paper's tables of the data set that ``project``'s pool is (or is a part of); None for others.

    A pool is recognised by its source (``torchvision:CIFAR10``), by a file or project called so that has as many
    classes, or by the ten class names of CIFAR-10; corrupted and long-tailed variants as the paper has them.
    """
    segments = project.artifacts("pool")
    sources = [segment.settings.get("source") or {} for segment in segments]
    if not sources:
        return None
    class_names = project.pool().class_names
    bases = {_base_of(source, class_names, project.title) for source in sources}
    variants = {_variant_of(source) for source in sources}
    if len(bases) != 1 or len(variants) != 1:
        return None
    base, variant = bases.pop(), variants.pop()
    if base is None or variant is None:
        return None
    name = NAMED.get(base, base) + variant
    return name if any(row["dataset"] == name for row in _rows()) else None


def _base_of(source: Mapping[str, Any], class_names: tuple[str, ...], title: str) -> str | None:
    location = str(source.get("location", ""))
    if source.get("kind") == "torchvision":
        word = _word(location)
        return word if word in PAPER_SETS else None
    if {name.lower() for name in class_names} == set(CIFAR10):
        return "cifar10"
    names = [_word(Path(location).stem), _word(title)]
    fits = [
        word
        for word, paper_set in PAPER_SETS.items()
        if len(class_names) in paper_set.n_classes and any(word in name for name in names)
    ]
    return max(fits, key=len, default=None)


def _variant_of(source: Mapping[str, Any]) -> str | None:
    """What the paper's tables append to a data set's name; None for a variant that the paper does not have."""
    variants = source.get("variants") or []
    if not variants:
        return ""
    if len(variants) > 1:
        return None
    name, options = variants[0].get("name"), variants[0]
    if name == "corrupt":
        is_same = round(float(options.get("share", 0.3)), 6) == 0.3 and options.get("severity") == "paper"
        return "-c" if is_same else None
    return f"-lt-{float(options.get('factor', 0.1)):g}" if name == "longtail" else None


def paper_numbers(
    project: Project,
    titles: Mapping[str, str],
    *,
    preset: str,
    truth: str,
    epochs: int | None = None,
    same_annotation_budget: bool = False,
) -> PaperNumbers | None:
    """The paper's numbers for this pool and these methods (``titles`` by method name); None for another pool.

    ``preset``, ``epochs`` (None: the preset's) and ``truth`` are what coresets were trained with here; its note says
    whether the numbers can be compared.
    """
    name = data_set_of(project)
    if name is None:
        return None
    tables = (SAME_BUDGET,) if same_annotation_budget else ("coresets", "scores")
    rows = [row for row in _rows() if row["dataset"] == name and row["table"] in tables]
    by_cell: dict[Any, Any] = {}
    full = None
    for row in rows:
        value, ratio = float(row["test_accuracy_percent"]), float(row["pruning_ratio"])
        if row["method"] == "full":
            full = value
        else:
            by_cell |= {(method, ratio): value for method in _same_methods(row, titles)}
    if not by_cell:
        return None
    return PaperNumbers(name, title_of(name), by_cell, full, _note(project, name, preset, truth, epochs))


def _same_methods(row: Mapping[str, str], titles: Mapping[str, str]) -> list[str]:
    """Which of our methods a row of the paper is: those of its name or of its title."""
    names = {row["method"], *ALSO.get(row["method"], ())}
    return [method for method, title in titles.items() if method in names or _word(title) == _word(row["title"])]


def _base(name: str) -> str:
    """The data set that a variant of the paper's tables was made from, as its preset is called."""
    return max((preset for preset in PAPER_SUPERVISED if name.startswith(preset)), key=len)


def _paper_set(name: str) -> PaperSet:
    back = {theirs: ours for ours, theirs in NAMED.items()}
    return PAPER_SETS[back.get(_base(name), _base(name))]


def title_of(name: str) -> str:
    """How a data set of the paper's tables is written: "CIFAR-100, corrupted", "CIFAR-100, long-tailed (0.1)"."""
    title = _paper_set(name).title
    if name.endswith("-c"):
        return f"{title}, corrupted"
    return f"{title}, long-tailed ({name.rpartition('-')[2]})" if "-lt-" in name else title


def _note(project: Project, name: str, preset: str, truth: str, epochs: int | None) -> str:
    paper_set, n = _paper_set(name), len(project.pool())
    words = f"The paper's numbers for {title_of(name)}, means of three or five runs."
    differs = []
    if paper_set.n_images and "-lt-" not in name and n < 0.99 * paper_set.n_images:
        differs.append(f"The paper's pool has {paper_set.n_images:,} images, this one {n:,}")
    theirs = f"paper:{_base(name)}"
    usual = supervised_preset(theirs).epochs
    if preset != theirs:
        differs.append(f"coresets were trained here with the preset {preset}, not with {theirs}")
    elif epochs not in (None, usual):
        differs.append(f"coresets were trained here for {epochs} epochs, not for the {usual} of {theirs}")
    if truth == "pseudo":
        differs.append("coresets had pseudo-labels here, true labels in the paper")
    if not differs:
        return f"{words} Coresets were trained the same way here, with the preset {preset} and true labels."
    reasons = "; ".join(differs)
    return f"{words} {reasons[0].upper()}{reasons[1:]}: compare the order, not the numbers."
