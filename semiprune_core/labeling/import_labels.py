"""Labels from other tools, and the pool's own reference labels.

What cannot be taken over is listed row by row with its reason. Answers given with the model's answer in view (a
coreset's CSV, tasks with predictions) come back as reviews: human labels, which never serve unbiased estimates. What
comes back as it went out is nobody's new answer and changes nothing. An import is written in chunks, so that people go
on labeling meanwhile; all of it carries one group id, so one undo that names any of its events takes it back whole.
"""

from __future__ import annotations

import itertools
import unicodedata
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semiprune_core.errors import InvalidDataError, MissingStepError
from semiprune_core.labeling.classes import NewClass, class_name, resolve_merges
from semiprune_core.labeling.drawing import together
from semiprune_core.labeling.events import BY_HAND, FIRST_ROUND, REFERENCE, REVIEW_ROUND, Event, Held, check_annotator
from semiprune_core.labeling.exchange.csv_files import read_csv_rows
from semiprune_core.labeling.exchange.label_studio import read_label_studio_rows
from semiprune_core.labeling.exchange.rows import MOST_ROWS, Problems, Row, RowProblem
from semiprune_core.labeling.export_labels import LabeledPool
from semiprune_core.paths import shown
from semiprune_core.progress import Progress, Stopped
from semiprune_core.project import rights
from semiprune_core.project.pool import read_id, show_id
from semiprune_core.project.spreadsheet import plain_cell

if TYPE_CHECKING:
    from semiprune_core.labeling.store import LabelStore

CHUNK_ROWS = 500
"""Rows written in one transaction: small enough that a person's label never waits long for an import."""


@dataclass
class ImportResult:
    """What came of an import; ``group_id`` names it as a whole, ``last_event_id`` is what an undo may name."""

    group_id: str
    n_rows: int = 0
    n_saved: int = 0
    n_unchanged: int = 0
    problems: Problems = field(default_factory=Problems)
    new_classes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    last_event_id: str | None = None


@dataclass(frozen=True)
class ImportPreview:
    """What a CSV would bring: images of the pool with a known or new class by class, rows that name none of its images.

    ``n_left`` images would still be without a label.
    """

    n_rows: int
    per_class: Mapping[str, int]
    new_classes: tuple[str, ...]
    n_unknown: int
    n_left: int
    n_pool: int

    @property
    def n_images(self) -> int:
        return sum(self.per_class.values())

    @property
    def warning(self) -> str:
        """Said where nothing would be left to learn from without labels."""
        if self.n_left or not self.n_images:
            return ""
        return (
            f"With this file all {self.n_pool:,} images of the pool have a label: none is left unlabeled, so there is "
            "nothing to pseudo-label. Import the labels of a random part, or use the file as reference labels: a table "
            "with a column label on New project."
        )


def preview_csv(
    store: LabelStore, pool: LabeledPool, data: bytes, *, columns: Mapping[str, str] | None = None
) -> ImportPreview:
    """What :func:`import_csv` would find in a file; nothing is written."""
    seen = ImportResult("")
    rows = list(itertools.islice(read_csv_rows(data, "preview", seen.problems, columns), MOST_ROWS + 1))
    with store.database.read() as connection:
        known = {entry.name for entry in store.classes.read(connection)}
    names: dict[int, str] = {}
    image_ids = _find_images(pool, rows, seen)
    for row, image_id in zip(rows, image_ids):
        name = _name_in(row, known)
        if image_id is not None and name:
            names.setdefault(image_id, name)
    labeled = set(names) | set(store.labels().ids.tolist())
    places = pool.positions(np.array(sorted(labeled), dtype=np.uint64))
    n_pool = len(pool.ids)
    per_class = Counter(names.values())
    return ImportPreview(
        len(rows),
        dict(per_class.most_common()),
        tuple(sorted(set(per_class) - known)),
        image_ids.count(None),
        n_pool - int((places >= 0).sum()),
        n_pool,
    )


def import_csv(
    store: LabelStore, pool: LabeledPool, data: bytes, *, columns: Mapping[str, str] | None = None, **options: Any
) -> ImportResult:
    """Take labels from a CSV; options as in :func:`import_label_studio`, ``columns`` as in :func:`read_csv_rows`."""
    result = ImportResult(uuid.uuid4().hex)
    rows = read_csv_rows(data, options.get("annotator", ""), result.problems, columns)
    return _take_over(store, pool, rows, result, **options)


def import_label_studio(
    store: LabelStore,
    pool: LabeledPool,
    data: bytes,
    *,
    annotator: str,
    create_missing_classes: bool = False,
    replace: bool = False,
    actor: str | None = None,
    progress: Progress | None = None,
) -> ImportResult:
    """Take labels from Label Studio's JSON.

    ``annotator`` is who the labels belong to where the file does not say; ``actor`` who imports them (the annotator
    where None), which every event keeps. A class the project does not have is listed,
    or made with ``create_missing_classes``. A label that differs from what the same annotator said before is listed,
    or replaced with ``replace``.
    """
    result = ImportResult(uuid.uuid4().hex)
    rows = read_label_studio_rows(data, annotator, result.problems)
    return _take_over(
        store,
        pool,
        rows,
        result,
        annotator=annotator,
        create_missing_classes=create_missing_classes,
        replace=replace,
        actor=actor,
        progress=progress,
    )


def take_reference(
    store: LabelStore, pool: LabeledPool, *, drawing_id: int | None = None, progress: Progress | None = None
) -> ImportResult:
    """Take the pool's reference labels of a drawing (all open ones where None), and its classes; for benchmarks.

    A person's label always wins over them.
    """
    if drawing_id is None:
        with store.database.read() as connection:
            drawn, _ = together(store.drawings.read_open(connection))
    else:
        drawn = store.drawings.get(drawing_id).ids
    if not len(drawn):
        raise MissingStepError("No images were drawn yet. Draw the subset to label first.")
    result = ImportResult(uuid.uuid4().hex)
    positions = pool.positions(drawn)
    names, labels = pool.class_names, pool.reference_labels
    if not (labels >= 0).any():
        raise MissingStepError("The pool came without reference labels. Label the drawn images by hand.")
    names = _reference_classes(store, names, REFERENCE)

    def rows() -> Iterator[Row]:
        for row, (image_id, position) in enumerate(zip(drawn.tolist(), positions.tolist()), start=1):
            label = int(labels[position]) if position >= 0 else -1
            if label < 0:
                reason = "This drawn image has no reference label. Label it by hand."
                result.problems.append(RowProblem(row, show_id(image_id), "NO_REFERENCE", reason))
                continue
            yield Row(row, show_id(image_id), None, names[label], REFERENCE)

    return _take_over(
        store, pool, rows(), result, annotator=REFERENCE, replace=True, progress=progress, source=REFERENCE
    )


def adopt_reference(
    store: LabelStore, pool: LabeledPool, *, annotator: str, progress: Progress | None = None
) -> ImportResult:
    """Take every reference label of the pool as one that ``annotator`` gave; for images that people labeled elsewhere.

    Such labels train like any other. Their images were not drawn at random, so they measure nothing.
    """
    names, labels = pool.class_names, pool.reference_labels
    if not (labels >= 0).any():
        raise MissingStepError("The pool came without reference labels. Label images by hand, or import labels.")
    names = _reference_classes(store, names, annotator)
    ids = pool.ids
    rows = (
        Row(number, show_id(int(ids[position])), None, names[labels[position]], annotator)
        for number, position in enumerate(np.flatnonzero(labels >= 0).tolist(), start=1)
    )
    return _take_over(store, pool, rows, ImportResult(uuid.uuid4().hex), annotator=annotator, progress=progress)


def _reference_classes(store: LabelStore, names: tuple[str, ...], annotator: str) -> tuple[str, ...]:
    """What the pool's reference classes are called today; those that are no classes yet are added.

    A class that was renamed or merged since keeps its labels.
    """
    store.classes.add(store.classes.book().without_class(names), annotator=annotator)
    book = store.classes.book()
    return book.names_now(book.reference_ids(names), names)


def _take_over(
    store: LabelStore,
    pool: LabeledPool,
    rows: Iterable[Row],
    result: ImportResult,
    *,
    annotator: str,
    create_missing_classes: bool = False,
    replace: bool = False,
    actor: str | None = None,
    progress: Progress | None = None,
    source: str = "import",
) -> ImportResult:
    check_annotator(annotator)
    taken = list(itertools.islice(rows, MOST_ROWS + 1))
    if len(taken) > MOST_ROWS:
        raise InvalidDataError(f"The file holds more than {MOST_ROWS:,} labels. Split it.", code="FILE_TOO_LARGE")
    result.n_rows = len(taken)
    if create_missing_classes:
        _make_classes(store, taken, result, annotator)
    with store.database.read() as connection:
        sheet = store.classes.read(connection)
    into = resolve_merges(sheet)
    numbers = {entry.name: into.get(entry.class_id, entry.class_id) for entry in sheet}
    numbers |= {entry.name: entry.class_id for entry in sheet if entry.merged_into is None}
    image_ids = _find_images(pool, taken, result)
    state = _LabelState.read(store, numbers)
    if any(row.suggested is not None for row in taken):
        state.settled = _for_copies(pool, state.settled)
    importer = actor or rights.account() or annotator
    events: list[tuple[Row, Event]] = []
    for row, image_id in zip(taken, image_ids):
        event = _event_of(row, image_id, state, result, replace=replace, source=source, actor=importer)
        if event is not None:
            events.append((row, event))
    for start in range(0, len(events), CHUNK_ROWS):
        if progress is not None and progress.should_stop():
            raise Stopped
        part = events[start : start + CHUNK_ROWS]
        for (row, event), ack in zip(part, store.append([event for _, event in part])):
            if ack.status in ("saved", "already"):
                result.n_saved += 1
                result.last_event_id = event.event_id
            elif ack.status == "conflict":
                _already_labeled(row, event.annotator, ack.current, result)
            else:
                result.problems.append(RowProblem(row.row, _value(row), "REFUSED", ack.reason))
        if progress is not None:
            progress.report(start + len(part), len(events), unit="labels")
    result.problems.sort(key=lambda problem: problem.row)
    rights.record("imported labels", store.project, f"{result.n_saved:,} of {result.n_rows:,}")
    return result


def _make_classes(store: LabelStore, rows: Sequence[Row], result: ImportResult, annotator: str) -> None:
    with store.database.read() as connection:
        class_names = {entry.name for entry in store.classes.read(connection)}
    wanted: dict[str, None] = {}
    for row in rows:
        name = _name_in(row, class_names)
        if name and name not in class_names and _is_class_name(name):
            wanted.setdefault(name)
    if wanted:
        added = store.classes.add([NewClass(name) for name in wanted], annotator=annotator)
        result.new_classes = tuple(entry.name for entry in added.classes)
        result.warnings += added.warnings


def _is_class_name(text: str) -> bool:
    try:
        return class_name(text) == text
    except InvalidDataError:
        return False


def _name_in(row: Row, class_names: Collection[str]) -> str | None:
    """The class a row means: as written, or without the spreadsheet's apostrophe if only that is known."""
    if row.label is None:
        return None
    name = unicodedata.normalize("NFC", row.label).strip()
    plain = plain_cell(name)
    return plain if row.spreadsheet and name not in class_names and plain in class_names else name


def _find_images(pool: LabeledPool, rows: Sequence[Row], result: ImportResult) -> list[int | None]:
    """The image of every row, None (and a problem) where there is none or more than one.

    A spreadsheet may have taken an id for a number; such a row is found by its path.
    """
    image_ids: list[int | None] = [None] * len(rows)
    by_path: list[int] = []
    ids: list[tuple[int, int]] = []
    n_damaged = 0
    for number, row in enumerate(rows):
        if not row.image_id:
            by_path.append(number)
            continue
        try:
            ids.append((number, read_id(row.image_id.strip().lower())))
        except InvalidDataError as error:
            if row.path:
                by_path.append(number)
                n_damaged += 1
            else:
                result.problems.append(RowProblem(row.row, shown(row.image_id, 60), "BAD_IMAGE_ID", str(error)))
    positions = pool.positions(np.array([image_id for _, image_id in ids], dtype=np.uint64))
    for (number, image_id), position in zip(ids, positions.tolist()):
        if position >= 0:
            image_ids[number] = image_id
        elif rows[number].path and (rows[number].image_id or "").strip().isdigit():  # its last digits may be zeros now
            by_path.append(number)
            n_damaged += 1
        else:
            reason = "The pool has no image with this id."
            result.problems.append(RowProblem(rows[number].row, show_id(image_id), "UNKNOWN_IMAGE", reason))
    if n_damaged:
        words = "1 image id is" if n_damaged == 1 else f"{n_damaged:,} image ids are"
        result.warnings += (f"{words} damaged, as by a spreadsheet that takes them for numbers; the paths were used.",)
    if by_path:
        paths = pool.column("path")
        wanted = [_normal(rows[number].path or "") for number in by_path]
        as_written = _index_in(wanted, paths)
        wanted = [
            plain_cell(path) if place is None and rows[number].spreadsheet else path
            for number, path, place in zip(by_path, wanted, as_written)
        ]
        first = _index_in(wanted, paths)
        last = _index_in(wanted, paths.take(pa.array(np.arange(len(paths))[::-1])))
        for number, path, position, from_end in zip(by_path, wanted, first, last):
            line = rows[number].row
            if position is None or from_end is None:
                reason = "The pool has no image with this path." if path else "This row names no image."
                result.problems.append(RowProblem(line, shown(path), "UNKNOWN_PATH", reason))
            elif position != len(paths) - 1 - from_end:
                reason = "The pool has several images with this path (from several imports). Name it by its image_id."
                result.problems.append(RowProblem(line, shown(path), "AMBIGUOUS_PATH", reason))
            else:
                image_ids[number] = int(pool.ids[position])
    return image_ids


def _normal(path: str) -> str:
    return unicodedata.normalize("NFC", path).replace("\\", "/").removeprefix("./")


def _index_in(wanted: Sequence[str], paths: pa.Array) -> list[int | None]:
    """The places of paths, None where there is none; half a character is in no path."""
    possible = [path if path.isascii() or _is_text(path) else None for path in wanted]
    return pc.index_in(pa.array(possible, pa.string()), value_set=paths).to_pylist()


def _is_text(path: str) -> bool:
    return not any(unicodedata.category(letter) == "Cs" for letter in path)


def _for_copies(pool: LabeledPool, settled: Mapping[int, int]) -> Mapping[int, int]:
    """The settled classes, with those of copies that have none of their own: one content has one label."""
    positions = pool.positions(np.fromiter(settled, np.uint64, len(settled)))
    positions = np.sort(positions[positions >= 0])[::-1]  # backwards, so that the first one is written last
    leaders = pool.duplicate_of
    of_group = np.full(len(leaders), -1, dtype=np.int64)
    of_group[leaders[positions]] = positions
    source = of_group[leaders]
    labeled, ids = np.flatnonzero(source >= 0), pool.ids
    return {int(ids[one]): settled[int(ids[source[one]])] for one in labeled} | dict(settled)


@dataclass
class _LabelState:
    """What the project knows before an import: class numbers, what holds, the settled class of each image.

    ``held`` is by image and annotator for first labels, by image and "" for reviews; ``settled`` is by image;
    ``seen`` are the rows so far.
    """

    numbers: Mapping[str, int]
    held: Mapping[tuple[int, str], Held]
    settled: Mapping[int, int]
    seen: dict[tuple[int, str], Row] = field(default_factory=dict)

    @classmethod
    def read(cls, store: LabelStore, numbers: Mapping[str, int]) -> _LabelState:
        labels = store.labels()
        settled = dict(zip(labels.ids.tolist(), labels.class_ids.tolist()))
        rounds = (FIRST_ROUND, REVIEW_ROUND)
        return cls(
            numbers, {(held.image_id, held.holder): held for held in store.held() if held.round in rounds}, settled
        )


def _event_of(
    row: Row,
    image_id: int | None,
    state: _LabelState,
    result: ImportResult,
    *,
    replace: bool,
    source: str,
    actor: str,
) -> Event | None:
    """The event of a row; None when there is nothing to write, with the reason among the problems."""
    if image_id is None:
        return None
    name = _name_in(row, state.numbers)
    if name is not None and name not in state.numbers:
        reason = (
            "This row has no label." if not name else "The project has no such class. Add it, or let the import add it."
        )
        result.problems.append(RowProblem(row.row, shown(row.label or ""), "UNKNOWN_CLASS", reason))
        return None
    class_id = None if name is None else state.numbers[name]
    settled = state.settled.get(image_id)
    given = None if row.given is None else state.numbers.get(row.given)
    if settled is not None and given is not None and class_id == given:  # it came back as it went out
        result.n_unchanged += 1
        return None
    place = (image_id, row.annotator if row.suggested is None else "")
    if place in state.seen:
        if state.seen[place].label != row.label:
            reason = f"Row {state.seen[place].row} gives the same image a different label; the first one was used."
            result.problems.append(RowProblem(row.row, _value(row), "CONTRADICTS", reason))
        else:
            result.n_unchanged += 1
        return None
    state.seen[place] = row
    now = state.held.get(place)
    if now is not None and source == REFERENCE and now.source in BY_HAND:  # a person had this name once
        replace = False
    action = "skip" if class_id is None else "label"
    if row.suggested is not None:
        source = "review"
        is_there = settled is not None and class_id in (None, settled)  # a skip takes no label away
        if is_there or (settled is None and not row.is_answer and row.label == row.suggested):
            result.n_unchanged += 1
            return None
        if settled is not None and settled != given and not replace:
            _already_labeled(row, "Somebody", now, result)
            return None
    elif now is not None and now.action is not None and not replace and not now.says(action, class_id):
        _already_labeled(row, row.annotator, now, result)
        return None
    if now is not None and now.says(action, class_id):
        result.n_unchanged += 1
        return None
    try:
        return Event(
            event_id=f"{result.group_id}-{row.row}-{len(state.seen)}",
            annotator=row.annotator,
            action=action,
            image_id=image_id,
            class_id=class_id,
            group_id=result.group_id,
            source=source,
            lead_time_ms=row.lead_time_ms,
            expected_version=now.version if now else "",
            actor=actor,
        )
    except InvalidDataError as error:
        result.problems.append(RowProblem(row.row, _value(row), error.code, str(error)))
        return None


def _already_labeled(row: Row, annotator: str, now: Held | None, result: ImportResult) -> None:
    reason = f"{shown(annotator, 40)} has labeled this image differently"
    reason += " in the meantime." if now is None or now.action is None else f" (event {now.version})."
    result.problems.append(
        RowProblem(row.row, _value(row), "ALREADY_LABELED", f"{reason} Import with replace to change it.")
    )


def _value(row: Row) -> str:
    return shown(f"{row.path or row.image_id}: {'skipped' if row.label is None else row.label}")
