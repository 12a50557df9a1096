"""What an export format is, and how what it writes becomes an export.

A format is a function ``(content, place) -> None`` in its own file. It opens files by their role, or one tree of
images, through the :class:`Place` it is given. Facts given at registration:

    title          for people
    explain        one sentence for the page
    label_source   where it says, for each image, whether its label is a person's or the model's
    options        the fields of ExportOptions that change it
    whole_pool     optional: True where a twin holds every image of the pool
    ways           for formats that hand over images: the values of ``images`` they know, the default first

Everything is written into a folder aside and takes its name at the end, the manifest last: an export is there when its
manifest is. Every name carries the coreset's id and the content's hash, so two different exports never share one, and
the same coreset exported twice gives the same bytes under the same names.
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from semiprune_core import files
from semiprune_core.checks import check_choice
from semiprune_core.exporting.content import Content
from semiprune_core.exporting.trees import SUMS, WAYS, FolderTree, Tree, ZipTree
from semiprune_core.progress import Progress, Stopped
from semiprune_core.project.artifacts import versions
from semiprune_core.registry import Registry
from semiprune_core.settings import Settings

SCHEMA = 1
NAME_DIGITS = 12
MANIFEST_SUFFIX = ".manifest.json"
FOLDER_ROLE = "folder"
INSIDE = "coreset.json"
"""A tree that leaves the building carries what is known about it under this name."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions(Settings):
    """What a person chooses besides the format; a format looks at those it declares."""

    exact: bool = False
    """Texts as they are; otherwise those that begin like a formula get an apostrophe in front."""
    images: str | None = None
    """How images are handed over (see WAYS); None: the format's own way."""
    absolute: bool = False
    """Full paths on this machine: in a column of their own, and in a list instead of paths inside the pool."""

    def check(self) -> None:
        if self.images is not None:
            check_choice("images", self.images, WAYS)


@dataclass
class Part:
    """One file or folder of an export before it has its name."""

    path: Path
    suffix: str
    rows: int


@dataclass
class Place:
    """Where a format writes, what it was asked for, and what it wants to say."""

    folder: Path
    content: Content
    options: ExportOptions
    progress: Progress | None = None
    parts: dict[str, Part] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    """More facts for the manifest."""
    _done: int = 0
    _total: int = 0

    @contextlib.contextmanager
    def open(self, role: str, suffix: str, *, rows: int) -> Iterator[IO[bytes]]:
        """A new file of the export; ``rows`` is how many images it speaks of."""
        part = Part(self.folder / f"{role}{suffix}", suffix, rows)
        with _flushed(part.path) as file:
            yield file
        self.parts[role] = part

    @contextlib.contextmanager
    def open_text(self, role: str, suffix: str, *, rows: int) -> Iterator[io.TextIOWrapper]:
        """The same for UTF-8 text with plain line ends."""
        with self.open(role, suffix, rows=rows) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            yield text
            text.flush()
            text.detach()

    @contextlib.contextmanager
    def tree(self) -> Iterator[Tree]:
        """A tree of images and small files: a ZIP or a folder, as the options say."""
        rows = len(self.content.kept_idx)
        if self.options.images == "zip":
            with self.open("images", ".zip", rows=rows) as file, ZipTree(file, self.content.pool) as archive:
                yield archive
                self._label(archive)
        else:
            root = self.folder / FOLDER_ROLE
            tree = FolderTree(root, self.content.pool, str(self.options.images))
            yield tree
            self._label(tree)
            self.parts[FOLDER_ROLE] = Part(root, "", rows)

    def _label(self, tree: Tree) -> None:
        """What must be known about a tree, inside of it: how it was chosen, and its files in ``sha256sum``'s form."""
        tree.text(INSIDE, files.pretty_json(self.facts()))
        tree.text(SUMS, tree.sums())

    def expect(self, total: int) -> None:
        self._total = total

    def advance(self, n: int) -> None:
        """``n`` more images are written; a stop asked for meanwhile is honoured here."""
        self._done += n
        if self.progress is not None:
            self.progress.report(self._done, max(self._total, self._done), unit="images")
            if self.progress.should_stop():
                raise Stopped

    def facts(self) -> dict[str, Any]:
        """What there is to know about the coreset; nothing that differs between two equal exports."""
        content, artifact = self.content, self.content.run.artifact
        settings = dict(artifact.settings)
        n_kept, n_human = len(content.coreset.indices), content.n_human
        return {
            "schema": SCHEMA,
            "coreset": artifact.id,
            "coreset_hash": artifact.hash,
            "method": settings.pop("method"),
            "pruning_ratio": settings.pop("pruning_ratio"),
            "seed": artifact.manifest["seed"],
            "settings": settings,
            "inputs": dict(artifact.inputs),
            "label_snapshot": content.label_snapshot,
            "selection_sha256": content.selection_sha256(),
            "counts": {
                "n_pool": len(content.pool),
                "n_kept": n_kept,
                "n_human": n_human,
                "n_pseudo": n_kept - n_human,
            },
            "kept_per_class": content.kept_per_class(),
            "kept_means": "kept = 1 is part of the coreset, kept = 0 was pruned",
            "columns": list(content.columns),
            "warnings": list(self.warnings),
            **self.notes,
            "versions": versions(),
        }


Format = Callable[[Content, Place], None]
FORMATS: Registry[Format] = Registry("export format", required=("explain", "label_source", "options"))


@dataclass(frozen=True)
class Export:
    """A finished export: its manifest, and the files it names."""

    path: Path
    manifest: Mapping[str, Any]

    @property
    def id(self) -> str:
        return self.path.name.removesuffix(MANIFEST_SUFFIX)

    @property
    def format(self) -> str:
        return str(self.manifest["format"])

    @property
    def files(self) -> dict[str, Path]:
        """Role -> file or folder."""
        return {role: self.path.with_name(entry["name"]) for role, entry in self.manifest["files"].items()}

    @property
    def n_bytes(self) -> int:
        return sum(entry["bytes"] for entry in self.manifest["files"].values())

    def to_json(self) -> dict[str, str]:
        return {**{role: str(path) for role, path in self.files.items()}, "manifest": str(self.path)}


def options_for(name: str, options: ExportOptions) -> ExportOptions:
    """The options as this format sees them: those it does not know at their defaults, its own way with images."""
    facts = FORMATS.facts(name)
    ways = facts.get("ways")
    seen = {option: getattr(options, option) for option in facts["options"]}
    if ways:
        seen["images"] = options.images or ways[0]
        check_choice(f"images of the format {name}", seen["images"], ways)
    return ExportOptions(**seen)


@contextlib.contextmanager
def folder_aside(parent: Path) -> Iterator[Path]:
    """A folder beside the finished ones that is gone afterwards, whatever happened."""
    with files.named_disk_errors(parent):
        parent.mkdir(parents=True, exist_ok=True)
    aside = parent / f".{secrets.token_hex(4)}.part"
    try:
        with files.named_disk_errors(parent):
            aside.mkdir()
            yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def publish(name: str, place: Place, parent: Path) -> Export:
    """Give the parts their names, the manifest last; nothing more is written, so nothing can be left half done."""
    shown = {option: getattr(place.options, option) for option in FORMATS.facts(name)["options"]}
    if place.options.images is not None:
        shown["images"] = place.options.images
    base = place.content.run.artifact.id + ("-exact" if place.options.exact else "")
    said: dict[str, Any] = {}
    finals: list[tuple[Path, Path]] = []
    for role, part in place.parts.items():
        is_folder = part.path.is_dir()
        digest = files.sha256_file(part.path / SUMS if is_folder else part.path)
        middle = {FOLDER_ROLE: f"{name}-{place.options.images}", "images": name}.get(role, role)
        final = parent / f"{base}-{middle}-{digest[:NAME_DIGITS]}{part.suffix}"
        said[role] = {"name": final.name, "rows": part.rows, "sha256": digest, "bytes": _bytes(part.path)}
        if is_folder:
            said[role]["sha256_of"] = SUMS
        finals.append((part.path, final))
    manifest = place.facts()
    tail = {"format": name, "options": shown, "label_source": FORMATS.facts(name)["label_source"], "files": said}
    manifest |= {**tail, "versions": manifest.pop("versions")}
    aside = place.folder / INSIDE
    with _flushed(aside) as file:
        file.write(files.pretty_json(manifest))
    path = parent / f"{base}-{name}-{files.sha256_json(manifest)[:NAME_DIGITS]}{MANIFEST_SUFFIX}"
    for number, (part_path, final) in enumerate(finals):
        if final.is_dir():  # the same content once more: the fresh one takes its place
            os.rename(final, place.folder / f"old-{number}")
        os.replace(part_path, final)
    os.replace(aside, path)
    files.sync_folder(parent)
    return Export(path, manifest)


def open_export(path: Path) -> Export:
    return Export(path, files.read_json(path))


def _bytes(path: Path) -> int:
    return files.tree_bytes(path) if path.is_dir() else path.stat().st_size


@contextlib.contextmanager
def _flushed(path: Path) -> Iterator[IO[bytes]]:
    """A new file that is on the disk when the block ends."""
    with open(path, "xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
