"""From the originals of a project's images to its ``features`` artifact.

Images that an earlier artifact of the same encoder covers are taken from it. The others are computed block by block;
each block is a file in ``folder`` until all are there, so that a stop or a kill costs one block and the next call goes
on with the same bits. A block is always computed by itself in batches of one size: its features do not depend on where
the work was interrupted.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from semiprune_core import files
from semiprune_core.embeddings.encoders import Encoder, open_encoder, own_side, state_hash, weights_files, widths_of
from semiprune_core.embeddings.engines import Engine, open_engine
from semiprune_core.embeddings.originals import Seen, decoded, originals
from semiprune_core.errors import InvalidDataError
from semiprune_core.features.submit import EmbedSettings
from semiprune_core.importing import images
from semiprune_core.learning.device import choose_device
from semiprune_core.paths import shown
from semiprune_core.progress import Progress, Stopped
from semiprune_core.project.artifacts import open_artifact
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import FloatArray
from semiprune_core.results.features import FILES, KIND, FeatureRun, feature_runs, find_features, segments_of

BLOCK = 512
"""Images to a file: what a stop or a kill costs at most."""
FIRST_PROBLEMS = 5
PLAIN, MIRRORED = slice(None), slice(None, None, -1)
"""The views of an image, as columns of its pixels."""


def embed(project: Project, settings: EmbedSettings, progress: Progress, *, folder: Path) -> FeatureRun:
    """The features of all images of ``project``; what is there already is not computed again."""
    guard = project.workspace.guard
    side = settings.size or own_side(settings.encoder)
    pool, segments = project.everything(), segments_of(project)
    seen = {"encoder": settings.encoder, "mirrored": settings.mirrored, "size": side, "fit": _fit(pool)}
    read = weights_files(settings.encoder, settings.weights, guard=guard)
    there = _there(project, seen, segments, read)
    if there is not None:
        return there
    encoder = open_encoder(settings.encoder, settings.weights, guard=guard)
    identity = _identity(seen, encoder)
    earlier = find_features(project, identity)
    if earlier is not None and earlier.segments == segments:
        return earlier
    if earlier is not None and earlier.segments != segments[: len(earlier.segments)]:
        earlier = None
    begin = int(pool.starts[len(earlier.segments)]) if earlier is not None else 0
    device = choose_device(settings.device).type
    engine, n_dimensions = opened_engine(encoder, side, device, settings.engine)
    views = (PLAIN, MIRRORED) if settings.mirrored else (PLAIN,)
    _compute(pool, begin, engine, views, side, identity["fit"], progress, folder, n_workers=settings.n_workers)
    problems = _problems(folder)
    inputs = {"pool": pool.hash, "weights": identity["weights_hash"]}
    with project.draft(KIND, settings=identity, inputs=inputs) as draft:
        _assemble(draft.folder, pool, begin, folder, earlier, n_dimensions, len(views))
        draft.device = device
        draft.facts.update(
            n_images=len(pool.split("pool")),
            n_test=len(pool.split("test")),
            n_dimensions=n_dimensions,
            widths=list(widths_of(encoder, side) or (n_dimensions,)),
            n_computed=len(pool) - begin,
            segments=list(segments),
            weights_files=read,
            engine=engine.name,
            n_problems=len(problems) + (int(earlier.artifact.facts["n_problems"]) if earlier else 0),
            problems=problems[:FIRST_PROBLEMS],
        )
    _clear(folder)
    return FeatureRun(open_artifact(draft.folder))


def _there(
    project: Project, seen: dict[str, Any], segments: tuple[str, ...], weights_read: str | None
) -> FeatureRun | None:
    """Features that are there already, as far as that can be told without opening the encoder, which takes seconds."""
    for run in reversed(feature_runs(project) if weights_read is not None else ()):
        is_same = run.artifact.facts.get("weights_files") == weights_read and run.segments == segments
        if is_same and seen.items() <= dict(run.artifact.settings).items():
            return run
    return None


def _identity(seen: dict[str, Any], encoder: Encoder) -> dict[str, Any]:
    return {
        **seen,
        "weights_hash": state_hash(encoder.net),
        "mean": list(encoder.mean),
        "std": list(encoder.std),
    }


def _fit(pool: Pool) -> str:
    """How images become square: as the project's own training images did."""
    return str(pool.segments[0].artifact.settings["pool"]["fit"])


def opened_engine(encoder: Encoder, side: int, device: str, engine: str) -> tuple[Engine, int]:
    """The engine and how many numbers it gives for an image.

    It is tried on one: an encoder that cannot see images of this size says so before the work begins.
    """
    try:
        opened = open_engine(encoder, side, device=device, engine=engine)
        answer = opened(np.zeros((1, side, side, 3), np.uint8))
    except (RuntimeError, AssertionError) as error:
        reason = shown(next(iter(str(error).splitlines()), type(error).__name__), 160)
        raise InvalidDataError(
            f"This encoder cannot see images of {side} x {side} pixels ({reason}). Choose another size."
        ) from error
    if answer.ndim != 2 or not answer.shape[1] or not np.isfinite(answer).all():
        raise InvalidDataError("This encoder gives no finite features. Check that its weights belong to it.")
    return opened, answer.shape[1]


def _compute(
    pool: Pool,
    begin: int,
    engine: Engine,
    views: Sequence[slice],
    side: int,
    fit: str,
    progress: Progress,
    folder: Path,
    *,
    n_workers: int,
) -> None:
    """Write the blocks of rows from ``begin`` on that are not there yet: the answers to all views side by side."""
    n = len(pool)
    folder.mkdir(parents=True, exist_ok=True)
    missing = list(itertools.dropwhile(lambda block: _path(folder, block).is_file(), _blocks(begin, n)))
    if not missing:
        return
    problems: list[str] = []
    with contextlib.closing(
        decoded(
            originals(pool, missing[0].start),
            side=side,
            fit=fit,
            n_workers=n_workers,
            should_stop=progress.should_stop,
        )
    ) as chunks:
        pixels = _pixels(chunks, pool, missing[0].start, side, problems)
        for block in missing:
            parts = []
            for first in range(block.start, block.stop, engine.batch):
                _go_on(progress, first - begin, n - begin)
                batch = np.stack(list(itertools.islice(pixels, min(engine.batch, block.stop - first))))
                parts.append(np.hstack([engine(batch[:, :, view]) for view in views]))
            if problems:
                files.write_json(_path(folder, block).with_suffix(".json"), problems)
                problems.clear()
            with files.open_atomic(_path(folder, block)) as file:
                np.save(file, np.concatenate(parts), allow_pickle=False)
    progress.report(n - begin, n - begin, unit="images")


def _go_on(progress: Progress, done: int, total: int) -> None:
    progress.report(done, total, unit="images")
    if progress.should_stop():
        raise Stopped


def _blocks(begin: int, n: int) -> list[range]:
    return [range(start, min(start + BLOCK, n)) for start in range(begin, n, BLOCK)]


def _path(folder: Path, block: range) -> Path:
    return folder / f"rows-{block.start:09d}-{block.stop:09d}.npy"


def _pixels(chunks: Iterator[Seen], pool: Pool, row: int, side: int, problems: list[str]) -> Iterator[np.ndarray]:
    """(side, side, 3) uint8 of each row in turn; a training copy stands in for an original that cannot be used."""
    for chunk in chunks:
        assert chunk.images is not None
        problems += [problem.message for problem in chunk.problems]
        place = dict(zip(chunk.seen, chunk.images, strict=True))
        for current in range(row, row + chunk.n_entries):
            yield place[current] if current in place else _training_copy(pool, current, side)
        row += chunk.n_entries


def _training_copy(pool: Pool, row: int, side: int) -> np.ndarray:
    return images.fit(pool.take(np.array([row])).images()[0], side, 3, "stretch")


def _assemble(
    target: Path, pool: Pool, begin: int, folder: Path, earlier: FeatureRun | None, n_dimensions: int, n_views: int
) -> None:
    """Write the arrays of both splits, block by block: the features, and those of mirrored images in half precision."""
    blocks = _blocks(begin, len(pool))
    for split, names in FILES.items():
        rows = pool.split(split).rows
        if not len(rows) and split == "test":
            continue
        for view, name in enumerate(names[:n_views]):
            kind = np.float16 if view else np.float32
            out = np.lib.format.open_memmap(target / name, mode="w+", dtype=kind, shape=(len(rows), n_dimensions))
            if earlier is not None and earlier.artifact.path(name).is_file():
                _copy(np.load(earlier.artifact.path(name), mmap_mode="r", allow_pickle=False), out)
            for block in blocks:
                low, high = np.searchsorted(rows, [block.start, block.stop])
                values = np.load(_path(folder, block), mmap_mode="r", allow_pickle=False)
                values = values[:, view * n_dimensions : (view + 1) * n_dimensions]
                if not np.isfinite(values).all():
                    raise InvalidDataError("The features hold values that are not finite. Choose another encoder.")
                out[low:high] = values[rows[low:high] - block.start]
            out.flush()


def _copy(values: FloatArray, out: FloatArray) -> None:
    for start in range(0, len(values), BLOCK):
        out[start : start + BLOCK][: len(values) - start] = values[start : start + BLOCK]


def _problems(folder: Path) -> list[str]:
    """What was wrong with originals, in the order of their images."""
    return [message for path in sorted(folder.glob("rows-*.json")) for message in files.read_json(path)]


def _clear(folder: Path) -> None:
    for path in folder.glob("rows-*"):
        path.unlink()
