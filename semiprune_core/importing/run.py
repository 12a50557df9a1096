"""The import itself: open the source, decode, write a segment, tell how far it is."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from semiprune_core.errors import SourceError
from semiprune_core.importing.leftovers import scratch_folder
from semiprune_core.importing.sources import SOURCES, open_source
from semiprune_core.importing.sources.base import Entry, FileAt, Source, SourceSpec
from semiprune_core.importing.workers import DecodePool, Measured, import_task, measure_chunk
from semiprune_core.importing.writer import SegmentWriter
from semiprune_core.paths import is_inside, shown
from semiprune_core.progress import Progress
from semiprune_core.project.artifacts import Artifact, open_artifact
from semiprune_core.project.pool import SIZES, PoolSettings
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.records import Problem
from semiprune_core.settings import Settings

PEEK = 32
LARGEST_SUGGESTED = 64


@dataclass(frozen=True, kw_only=True)
class ImportSettings(Settings):
    """What a person chose: the source, and the training cache's form (``pool``).

    What ``pool`` does not name of size and channels is chosen from the first images, with ``fit``; "" is the one that
    suits the source.
    """

    source: Mapping[str, Any] = field(default_factory=dict)
    pool: Mapping[str, Any] | None = None
    fit: str = ""
    n_workers: int = 0
    """0: one per core."""
    features: bool | None = None
    """Whether features are computed afterwards; None: as the project says, which is yes unless it was switched off."""
    annotator: str = ""
    """Who gave the labels of the source, so that they count as a person's; "" keeps them as a reference."""


def usual_fit(kind: str) -> str:
    """How images of a kind of source become square unless a person says otherwise."""
    return str(SOURCES.facts(kind).get("fit", PoolSettings().fit))


def suggest_pool_settings(
    source: Source, decoders: DecodePool, *, fit: str = "crop", should_stop: Callable[[], bool] = lambda: False
) -> PoolSettings:
    """Size and channels that suit the first images: grey if all are, and no larger than they need on a CPU."""
    first = itertools.islice(source.entries(), PEEK)
    looks = [cast(Measured, chunk) for chunk in decoders.run(measure_chunk, first, should_stop=should_stop)]
    sides = [side for look in looks for side in look.sides]
    return settings_for(sides, sum(look.n_grey for look in looks), fit=fit)


def settings_for(sides: Sequence[int], n_grey: int, *, fit: str = "crop") -> PoolSettings:
    """Size and channels for images with these shorter ``sides``, of which ``n_grey`` are grey."""
    wanted = float(np.median(sides)) if sides else LARGEST_SUGGESTED
    nearest = min((size for size in SIZES if size <= LARGEST_SUGGESTED), key=lambda size: abs(np.log(size / wanted)))
    all_grey = bool(sides) and n_grey == len(sides)
    return PoolSettings(size=nearest, channels=1 if all_grey else 3, fit=fit)


def import_source(project: Project, settings: ImportSettings, progress: Progress) -> Artifact:
    """Import a source into ``project`` as a new segment of its pool.

    A file that cannot be used is listed with its reason; an unsafe source raises and leaves nothing behind.
    """
    spec = SourceSpec.from_json(settings.source)
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(scratch_folder(project))
        source = open_source(spec, guard=project.workspace.guard, scratch=scratch)
        total = source.count()
        if total == 0:
            first = f" The first problem: {source.problems[0].message}" if source.problems else ""
            raise SourceError(f"No images were found in {_in_words(spec)}.{first}", code="SOURCE_EMPTY")
        decoders = stack.enter_context(DecodePool(n_workers=settings.n_workers or os.cpu_count() or 1))
        pool = project.pool_settings or _pool_settings(settings, source, decoders, progress)
        known_ids = project.everything().ids if project.has_pool() else np.empty(0, dtype=np.uint64)
        draft = stack.enter_context(
            project.draft("pool", settings={"source": spec.to_json(), "pool": pool.to_json()}, inputs={})
        )
        packed = source.origin == "packed"
        roots: set[str] = set()
        task = import_task(pool, scratch if packed else None)
        with SegmentWriter(draft.folder, pool, packed=packed, known_ids=known_ids) as writer:
            done = 0
            entries = _noting_roots(source.entries(), roots)
            for chunk in decoders.run(task, entries, should_stop=progress.should_stop):
                writer.add(chunk)
                done += chunk.n_entries
                progress.report(done, max(total, done), unit="images", problems=writer.n_problems)
            writer.add_problems(source.problems)
            draft.facts.update(writer.finish())
        if draft.facts["n_images"] == 0:
            raise _nothing_new(draft.facts, total, writer.first_problems)
        draft.facts.update(
            origin=source.origin,
            root=roots.pop() if len(roots) == 1 else None,
            class_names=list(source.class_names or sorted(draft.facts["labels"])),
        )
    if project.pool_settings is None:
        project.update(pool=pool.to_json())
    remove_upload(project.workspace, spec)
    return open_artifact(draft.folder)


def _pool_settings(settings: ImportSettings, source: Source, decoders: DecodePool, progress: Progress) -> PoolSettings:
    """The training cache's form: as it was chosen, the rest from the first images."""
    given, fit = dict(settings.pool or {}), settings.fit or usual_fit(str(settings.source["kind"]))
    if {"size", "channels"} <= given.keys():
        return PoolSettings.from_json({"fit": fit, **given})
    return suggest_pool_settings(source, decoders, fit=fit, should_stop=progress.should_stop).replace(**given)


def _noting_roots(entries: Iterator[Entry], roots: set[str]) -> Iterator[Entry]:
    for entry in entries:
        if isinstance(entry.locator, FileAt):
            roots.add(entry.locator.root)
        yield entry


def _in_words(spec: SourceSpec) -> str:
    return "the uploaded files" if spec.kind == "uploads" else shown(Path(spec.location).name or spec.kind)


def _nothing_new(facts: Mapping[str, Any], total: int, first: Sequence[Problem]) -> SourceError:
    if facts["n_already_there"]:
        return SourceError(
            f"All {facts['n_already_there']} usable images are already in the pool. Choose a source with new ones.",
            code="NOTHING_NEW",
        )
    return SourceError(
        f"None of the {total} files could be used. " + " ".join(problem.message for problem in first),
        code="SOURCE_EMPTY",
    )


def is_upload(workspace: Workspace, spec: SourceSpec) -> bool:
    """Whether a source is made of files that came through the browser."""
    location, uploads = Path(spec.location), workspace.uploads_folder
    return bool(spec.location) and location.is_absolute() and is_inside(location, uploads) and location != uploads


def can_repeat(workspace: Workspace, settings: ImportSettings) -> bool:
    """Whether an import that ended could run once more: uploaded files go when they were refused."""
    spec = SourceSpec.from_json(settings.source)
    return not is_upload(workspace, spec) or Path(spec.location).exists()


def remove_upload(workspace: Workspace, spec: SourceSpec) -> None:
    """Delete the uploaded files behind a source, once they are in the pool or refused."""
    if is_upload(workspace, spec):
        uploads = workspace.uploads_folder
        shutil.rmtree(uploads / Path(spec.location).relative_to(uploads).parts[0], ignore_errors=True)
