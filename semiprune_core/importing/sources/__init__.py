"""Where images come from: one file per kind of source, all streams of entries."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

from semiprune_core.errors import InvalidSettingError
from semiprune_core.importing.sources.base import SOURCES, VARIANTS, Entry, Source, SourceSpec
from semiprune_core.paths import PathGuard
from semiprune_core.registry import import_installed, import_siblings

import_siblings(__name__, __path__)
import_installed("semiprune.sources", SOURCES)

__all__ = [
    "SOURCES",
    "VARIANTS",
    "Entry",
    "Source",
    "SourceSpec",
    "class_folders",
    "kinds_by_suffix",
    "open_source",
    "parse_source",
    "takes_folder_labels",
]


def kinds_by_suffix() -> dict[str, str]:
    """Which source the ending of a file means."""
    return {suffix: name for name in SOURCES for suffix in SOURCES.facts(name).get("suffixes", ())}


def parse_source(text: str) -> SourceSpec:
    """The source a person typed: a path, ``NAME:LOCATION`` such as ``torchvision:CIFAR10``, or a bundled pool's name.

    >>> parse_source("torchvision:CIFAR10").location
    'CIFAR10'
    """
    if text in SOURCES and SOURCES.facts(text).get("bundled"):
        return SourceSpec(text)
    name, mark, rest = text.partition(":")
    if mark and name in SOURCES:
        parse = SOURCES.facts(name).get("parse")
        return parse(rest) if parse else SourceSpec(name, rest)
    PathGuard.check_text(text)
    is_folder = os.path.isdir(os.path.expanduser(text))
    kind = "folder" if is_folder else kinds_by_suffix().get(Path(text).suffix.lower(), "folder")
    return SourceSpec(kind, text)


def class_folders(spec: SourceSpec, *, guard: PathGuard, scratch: Path) -> tuple[str, ...]:
    """The folders of a source whose names could be reference labels; () where its labels come from elsewhere."""
    if not takes_folder_labels(spec):
        return ()
    named = getattr(SOURCES[spec.kind](spec.location, guard=guard, scratch=scratch), "class_folders", None)
    return tuple(named()) if named is not None else ()


def takes_folder_labels(spec: SourceSpec) -> bool:
    """Whether a source may read reference labels off its folders."""
    return spec.kind in SOURCES and "folder_labels" in inspect.signature(SOURCES[spec.kind]).parameters


def open_source(spec: SourceSpec, *, guard: PathGuard, scratch: Path) -> Source:
    """Open a source and put its variants on; ``scratch`` is an existing folder that outlives the import's reading."""
    opener = SOURCES[spec.kind]
    _check_options(f"source '{spec.kind}'", opener, spec.options)
    source = opener(spec.location, guard=guard, scratch=scratch, **spec.options)
    for variant in spec.variants:
        options = {key: value for key, value in variant.items() if key != "name"}
        wrapper = VARIANTS[str(variant.get("name"))]
        _check_options(f"variant '{variant.get('name')}'", wrapper, options)
        source = wrapper(source, **options)
    return source


def _check_options(whose: str, function: Any, options: Any) -> None:
    """Refuse options that a source or variant does not have."""
    parameters = inspect.signature(function).parameters.values()
    known = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} - {"guard", "scratch"}
    for name in options:
        if name not in known:
            raise InvalidSettingError(
                f"The {whose} has no option '{name}'. Known: {', '.join(sorted(known)) or 'none'}."
            )
