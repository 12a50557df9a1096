"""What every export is made of: the rows of a coreset, in the pool's order, a chunk at a time.

``label`` is what to train on and ``label_source`` says who gave it: what people have said by now, also after the
training, stands over the model's answer. ``pseudo_label`` and ``confidence`` are the model's own answer. ``rank`` is 1
for the image that was chosen first and empty for those dropped.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semiprune_core.errors import InvalidSettingError, MissingStepError
from semiprune_core.labeling import class_book, has_store, open_store
from semiprune_core.project.pool import ID_LETTER, Pool
from semiprune_core.project.spreadsheet import RISKY, safe_cell
from semiprune_core.project.workspace import Project
from semiprune_core.records import UNLABELED, Coreset, IntArray, PseudoLabels
from semiprune_core.results import CoresetRun, PseudoRun, ScoreRun, check_same_pool, made_from
from semiprune_core.scores import ScoreTable
from semiprune_core.training import labels_are

FIRST_SCORES = ("aum", "dual", "el2n", "forgetting", "mean_prob")
COLUMNS = (
    "image_id",
    "path",
    "kept",
    "label",
    "label_source",
    "pseudo_label",
    "confidence",
    *FIRST_SCORES,
    "rank",
)
"""What every table begins with; the other scores of the coreset's score table follow."""
FILE = "file"
"""Where the original lies on this machine; only where full paths are asked for."""
SOURCES = ("pseudo", "human")
ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class Content:
    """A coreset with its pool, labels and scores.

    ``all_idx`` are the positions an export speaks of, ``kept_idx`` those of the coreset, both rising;
    ``best_first_idx`` are the kept ones in the order they were chosen.
    """

    run: CoresetRun
    pool: Pool
    pseudo: PseudoRun
    labels: PseudoLabels
    scores: ScoreTable
    coreset: Coreset
    all_idx: IntArray
    kept_idx: IntArray
    best_first_idx: IntArray
    label_snapshot: str | None
    """Hash of the human labels that are in ``labels``."""

    @property
    def more_scores(self) -> tuple[str, ...]:
        """The scores behind the first ones, in the order of their table."""
        return tuple(name for name in self.scores.columns if name not in FIRST_SCORES)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of every table of this export."""
        return (*COLUMNS, *self.more_scores)

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.labels.class_names

    @cached_property
    def rank(self) -> IntArray:
        """(N,) 1 for the image chosen first, 0 for those dropped."""
        rank = np.zeros(len(self.pool), dtype=np.int64)
        rank[self.coreset.indices] = np.arange(1, len(self.coreset.indices) + 1)
        return rank

    @cached_property
    def predicted(self) -> IntArray:
        return np.asarray(self.pseudo.predicted())

    @cached_property
    def confidence(self) -> np.ndarray:
        """(N,) of the model's own answer."""
        return np.asarray(self.pseudo.confidence(), dtype=np.float32)

    def class_probs(self, positions: IntArray) -> np.ndarray:
        """(n, C) float32, the model's probabilities of ``class_names``; those of a merged class are added up."""
        kept = self.pseudo.probs()
        if kept is None:
            name = self.run.artifact.folder.parents[1].name
            raise MissingStepError(
                f"{self.pseudo.artifact.id} was made before class probabilities were kept, as the packed demo's was. "
                f"To export them, train once more (semiprune train {name}), then score and select again."
            )
        names = self.pseudo.class_names
        probs = kept.dense(positions, len(names))
        book = class_book(self.run.artifact.folder.parents[1])
        whole = np.zeros((len(positions), len(self.class_names)), dtype=np.float32)
        for place, target in enumerate(book.merged_places(self.pseudo.class_ids, names, self.class_names)):
            whole[:, target] += probs[:, place]
        return whole

    @property
    def n_human(self) -> int:
        """How many of the kept images carry a person's label."""
        return int(self.labels.human_mask[self.kept_idx].sum())

    def kept_per_class(self) -> dict[str, int]:
        counts = np.bincount(self.labels.labels[self.kept_idx], minlength=len(self.class_names))
        return dict(zip(self.class_names, counts.tolist(), strict=True))

    def vanished(self) -> list[str]:
        """Classes with images in the pool and none in the coreset."""
        counts = np.bincount(self.labels.labels, minlength=len(self.class_names))
        return [name for (name, kept), of in zip(self.kept_per_class().items(), counts, strict=True) if of and not kept]

    def selection_sha256(self) -> str:
        """The ids of the kept images, best first, in one number."""
        return selection_sha256(self.pool, self.coreset.indices)

    def columns_with(self, *, absolute: bool) -> tuple[str, ...]:
        """The columns of a table, with FILE at the end where full paths are asked for."""
        return (*self.columns, FILE) if absolute else self.columns

    def rows(self, positions: IntArray, *, exact: bool, absolute: bool = False) -> pa.Table:
        """The rows of these images with all columns; texts spreadsheet-safe unless ``exact``."""
        names = [name if exact else safe_cell(name) for name in self.class_names]
        paths = self.pool.column("path").take(pa.array(positions))
        rank = self.rank[positions]
        columns: dict[str, Any] = {
            "image_id": export_ids(self.pool.ids[positions]),
            "path": paths if exact else safe_texts(paths),
            "kept": pa.array((rank > 0).astype(np.int8)),
            "label": _named(self.labels.labels[positions], names),
            "label_source": _named(self.labels.human_mask[positions], list(SOURCES)),
            "pseudo_label": _named(self.predicted[positions], names),
            "confidence": pa.array(self.confidence[positions]),
            **{name: pa.array(self.scores[name][positions]) for name in (*FIRST_SCORES, *self.more_scores)},
            "rank": pa.array(rank, mask=rank == 0),
        }
        if absolute:
            files = pa.array(original_paths(self.pool, positions), pa.string())
            columns[FILE] = files if exact else safe_texts(files)
        return pa.table({name: columns[name] for name in self.columns_with(absolute=absolute)})

    def batches(
        self, positions: IntArray, *, exact: bool, absolute: bool = False
    ) -> Iterator[tuple[IntArray, pa.Table]]:
        """Many images a chunk at a time: their positions and their rows."""
        for start in range(0, len(positions), ROWS_AT_ONCE):
            part = positions[start : start + ROWS_AT_ONCE]
            yield part, self.rows(part, exact=exact, absolute=absolute)

    def sample(self, n: int) -> Content:
        """A small export like this one: every so many of its rows."""
        thin = [part[:: max(1, -(-len(part) // n))] for part in (self.all_idx, self.kept_idx, self.best_first_idx)]
        return dataclasses.replace(self, all_idx=thin[0], kept_idx=thin[1], best_first_idx=thin[2])


def open_content(project: Project, run: CoresetRun) -> Content:
    pool = project.pool()
    check_same_pool(run.artifact, pool)
    pseudo = PseudoRun(made_from(project, run.artifact, "pseudo"))
    scores = ScoreRun(made_from(project, run.artifact, "scores")).table()
    coreset = run.coreset()
    labels, snapshot = labels_now(project, pool, pseudo)
    return Content(
        run,
        pool,
        pseudo,
        labels,
        scores,
        coreset,
        np.arange(len(pool)),
        np.sort(coreset.indices),
        coreset.indices,
        snapshot,
    )


def labels_now(project: Project, pool: Pool, pseudo: PseudoRun) -> tuple[PseudoLabels, str | None]:
    """The run's labels with what people say now over them, and the hash of the human labels.

    A class that came up after the training is added behind the others, and the model's answers follow a merge. A human
    label that was taken back since gives way to the model's answer.
    """
    labels, trained_on = pseudo.labels(), pseudo.artifact.inputs.get("labels")
    if not has_store(project):
        return labels, trained_on
    now = open_store(project).snapshot()
    if not len(now) or labels_are(project, trained_on, now):
        return labels, trained_on
    names = (*labels.class_names, *(name for name in now.class_names if name not in labels.class_names))
    said, _ = now.on_pool(pool.ids, pool.duplicate_of)
    human = said != UNLABELED
    place = np.array([names.index(name) for name in now.class_names])
    stands_for = np.array(class_book(project.folder).merged_places(pseudo.class_ids, labels.class_names, names))
    predicted = stands_for[np.asarray(pseudo.predicted())]
    confidence = np.asarray(pseudo.confidence(), dtype=np.float32)
    return (
        PseudoLabels(np.where(human, place[said], predicted), np.where(human, np.float32(1), confidence), human, names),
        now.hash,
    )


def original_paths(pool: Pool, positions: IntArray) -> list[str]:
    """Where the originals of these images lie on this server; refused for a pool that keeps them packed."""
    for name in ("path", "file"):
        pool.column(name)
    found = []
    for position in positions.tolist():
        path = pool.original_file(position)
        if path is None:
            raise InvalidSettingError(
                "This pool keeps its originals packed inside the project, so there are no paths to give. "
                "Export them as image folders."
            )
        found.append(str(path))
    return found


def selection_sha256(pool: Pool, indices: IntArray) -> str:
    return hashlib.sha256(np.ascontiguousarray(pool.ids[indices], dtype=">u8").tobytes()).hexdigest()


def export_ids(ids: np.ndarray) -> pa.Array:
    """``export_id`` for a whole column: (N,) uint64 to a letter and 16 hex digits."""
    digits = np.ascontiguousarray(ids, dtype=">u8").tobytes().hex().encode("ascii")
    letters = np.full((len(ids), 17), ord(ID_LETTER), dtype=np.uint8)
    letters[:, 1:] = np.frombuffer(digits, dtype=np.uint8).reshape(-1, 16)
    offsets = np.arange(0, letters.size + 1, 17, dtype=np.int64)
    return pa.LargeStringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(letters.tobytes()))


def safe_texts(column: pa.Array) -> pa.Array:
    """``safe_cell`` for a whole column."""
    if not pc.any(pc.match_substring_regex(column, RISKY)).as_py():
        return column
    once = pc.replace_substring_regex(column, RISKY, r"\1'\2")
    return pc.replace_substring_regex(once, RISKY, r"\1'\2")


def _named(codes: np.ndarray, names: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names)).cast(pa.string())
