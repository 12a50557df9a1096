"""Labels from and to other tools: CSV, Label Studio's JSON, and the pool's own reference labels.

What cannot be taken over is listed row by row with its reason. Answers given with the model's answer in view (a
coreset's CSV, tasks with predictions) come back as reviews: human labels, which never serve unbiased estimates. An
import is written in chunks, so that people go on labeling meanwhile; all of it carries one group id, so one undo that
names any of its events takes it back whole.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import unicodedata
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, unquote
from xml.sax.saxutils import quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semiprune_core.errors import InvalidDataError, MissingStepError
from semiprune_core.files import open_atomic
from semiprune_core.labeling.classes import LabelClass, NewClass, class_name, resolve_merges
from semiprune_core.labeling.drawing import together
from semiprune_core.labeling.events import FIRST_ROUND, REVIEW_ROUND, Event, Held, check_annotator
from semiprune_core.paths import shown
from semiprune_core.pool import read_id, show_id
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import IntArray

if TYPE_CHECKING:
    from semiprune_core.labeling.store import LabelStore

CHUNK_ROWS = 500
"""Rows written in one transaction: small enough that a person's label never waits long for an import."""
REFERENCE = "reference"
LOCAL_FILES = "/data/local-files/?d="
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
COLUMNS = ("image_id", "path", "label", "annotator")


class LabeledPool(Protocol):
    """What labels are exchanged about; :class:`semiprune_core.pool.Pool` is one."""

    @property
    def ids(self) -> np.ndarray: ...
    @property
    def table(self) -> pa.Table: ...
    @property
    def class_names(self) -> tuple[str, ...]: ...
    @property
    def reference_labels(self) -> IntArray: ...
    def positions(self, ids: np.ndarray) -> IntArray: ...


@dataclass(frozen=True, slots=True)
class RowProblem:
    """A row that was not taken over. ``row`` counts from 1 and includes a CSV's header, as a spreadsheet shows it."""

    row: int
    value: str
    code: str
    message: str


@dataclass
class ImportResult:
    """What came of an import; ``group_id`` names it as a whole, ``last_event_id`` is what an undo may name."""

    group_id: str
    n_rows: int = 0
    n_saved: int = 0
    n_unchanged: int = 0
    problems: list[RowProblem] = field(default_factory=list)
    new_classes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    last_event_id: str | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    """One label to take over: an image by id or by path, a class by name (None for skipped).

    ``spreadsheet`` cells may carry the apostrophe of :func:`spreadsheet_safe`. ``suggested`` is the model's answer that
    was in view; a row that is not an ``is_answer`` only repeats it where it was not changed.
    """

    row: int
    image_id: str | None
    path: str | None
    label: str | None
    annotator: str
    lead_time_ms: int | None = None
    spreadsheet: bool = False
    suggested: str | None = None
    is_answer: bool = True


# --- reading ---------------------------------------------------------------------------------------------------------


def decode_text(data: bytes) -> str:
    """UTF-8 (with or without a mark) or UTF-16 with its mark; anything else is refused with its line."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError as error:
            raise InvalidDataError(
                "The file begins as UTF-16 but is damaged. Save it as UTF-8.", code="ENCODING"
            ) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidDataError(
            f"The file is not UTF-8: line {line} holds the byte 0x{data[error.start]:02x}. Save it as UTF-8.",
            code="CSV_ENCODING",
        ) from error


def read_csv_rows(data: bytes, annotator: str) -> Iterator[_Row]:
    """Rows of a label CSV: ``path`` or ``image_id``, ``label``, optional ``annotator``; comma, semicolon or tab.

    In a coreset's CSV (with ``label_source`` and ``pseudo_label``) a model's label counts only where it was changed.
    """
    text = decode_text(data)
    if not text.strip():
        raise InvalidDataError(
            "The CSV is empty. It needs a header with path or image_id, and label.", code="CSV_EMPTY"
        )
    header = text.lstrip("\r\n").split("\n", 1)[0]
    separator = max(",;\t", key=header.count)
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        columns = {(name or "").strip().lower(): name for name in rows.fieldnames or ()}
        if "label" not in columns or not {"path", "image_id"} & set(columns):
            found = ", ".join(shown(name, 40) for name in columns if name) or "none"
            raise InvalidDataError(
                f"The CSV needs the columns path or image_id, and label; it has: {found}.", code="CSV_NO_PATH_COLUMN"
            )

        is_coreset = {"label_source", "pseudo_label"} <= set(columns)

        def cell(row: Mapping[str, str | None], name: str) -> str:
            return row.get(columns[name]) or "" if name in columns else ""

        for number, row in enumerate(rows, start=2):
            image_id, path, label = cell(row, "image_id"), cell(row, "path"), cell(row, "label")
            yield _Row(
                number,
                image_id,
                path,
                label,
                cell(row, "annotator") or annotator,
                spreadsheet=True,
                suggested=cell(row, "pseudo_label") if is_coreset else None,
                is_answer=not is_coreset or cell(row, "label_source") == "human",
            )
    except csv.Error as error:
        code = "CSV_CELL_TOO_LARGE" if "field limit" in str(error) else "CSV_DAMAGED"
        raise InvalidDataError(f"The CSV cannot be read near line {rows.line_num}: {error}.", code=code) from error


def read_label_studio_rows(data: bytes, annotator: str, problems: list[RowProblem]) -> Iterator[_Row]:
    """Rows of a Label Studio export, JSON or JSON_MIN; tasks without an answer are passed over."""
    try:
        tasks = json.loads(decode_text(data))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidDataError(f"The file is not JSON: {error}.", code="JSON_DAMAGED") from error
    if not isinstance(tasks, list):
        raise InvalidDataError("A Label Studio export is a list of tasks; this file is not.", code="JSON_SHAPE")
    for number, task in enumerate(tasks, start=1):
        if not isinstance(task, Mapping):
            problems.append(RowProblem(number, shown(str(task), 60), "JSON_SHAPE", "This task is not a JSON object."))
            continue
        facts = task.get("data", task)
        facts = facts if isinstance(facts, Mapping) else {}
        path = facts.get("image")
        image_id = facts.get("image_id")
        image_id = image_id if isinstance(image_id, str) else None
        if image_id is None and not isinstance(path, str):
            problems.append(RowProblem(number, "", "NO_IMAGE", "This task names no image."))
            continue
        path = _local_path(path) if isinstance(path, str) else None
        if "annotations" not in task and "choice" in task:  # JSON_MIN
            name = _who(task, None, 0, annotator)
            yield from _answer(number, image_id, path, task["choice"], name, task, problems)
            continue
        annotations = task.get("annotations") or []
        names, suggested = facts.get("annotators"), _prediction(task)
        for place, annotation in enumerate(annotations if isinstance(annotations, list) else []):
            if not isinstance(annotation, Mapping):
                problems.append(RowProblem(number, "", "JSON_SHAPE", "An annotation is not a JSON object."))
                continue
            name = _who(annotation, names, place, annotator)
            if annotation.get("was_cancelled") is True:
                yield _Row(number, image_id, path, None, name, _lead_ms(annotation), suggested=suggested)
                continue
            choices = [
                result["value"].get("choices")
                for result in annotation.get("result") or []
                if isinstance(result, Mapping)
                and result.get("type") == "choices"
                and isinstance(result.get("value"), Mapping)
            ]
            if choices:
                chosen = choices[0] if len(choices) == 1 else [choice for part in choices for choice in part or []]
                yield from _answer(number, image_id, path, chosen, name, annotation, problems, suggested)


def _prediction(task: Mapping[str, Any]) -> str | None:
    """What a task showed as the model's answer; None where it showed none."""
    for prediction in _list(task.get("predictions")):
        for result in _list(prediction.get("result") if isinstance(prediction, Mapping) else None):
            value = result.get("value") if isinstance(result, Mapping) else None
            choices = _list(value.get("choices") if isinstance(value, Mapping) else None)
            if choices and isinstance(choices[0], str):
                return choices[0]
    return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _answer(
    number: int,
    image_id: str | None,
    path: str | None,
    chosen: Any,
    annotator: str,
    annotation: Mapping[str, Any],
    problems: list[RowProblem],
    suggested: str | None = None,
) -> Iterator[_Row]:
    if isinstance(chosen, Mapping):
        chosen = chosen.get("choices")
    if isinstance(chosen, str):
        chosen = [chosen]
    if not isinstance(chosen, list) or len(chosen) != 1 or not isinstance(chosen[0], str):
        said = shown(json.dumps(chosen, ensure_ascii=False), 60)
        problems.append(RowProblem(number, said, "NOT_ONE_CLASS", "An image has one class here; this answer has not."))
        return
    yield _Row(number, image_id, path, chosen[0], annotator, _lead_ms(annotation), suggested=suggested)


def _local_path(text: str) -> str:
    return unquote(text[len(LOCAL_FILES) :]) if text.startswith(LOCAL_FILES) else text


def _lead_ms(annotation: Mapping[str, Any]) -> int | None:
    lead = annotation.get("lead_time")
    is_number = isinstance(lead, int | float) and not isinstance(lead, bool)
    return int(lead * 1000) if is_number and 0 <= lead < 1e9 else None


def _who(annotation: Mapping[str, Any], names: Any, place: int, otherwise: str) -> str:
    """Whose answer it is: our own list of names, an e-mail address, a number of Label Studio's, or the importer."""
    if isinstance(names, list) and place < len(names) and isinstance(names[place], str):
        return names[place]
    who = annotation.get("completed_by", annotation.get("annotator"))
    if isinstance(who, Mapping):
        who = who.get("email") or who.get("id")
    if isinstance(who, bool) or not isinstance(who, int | str) or who == "":
        return otherwise
    return f"label-studio {who}" if isinstance(who, int) else who


# --- taking over -----------------------------------------------------------------------------------------------------


def import_csv(store: LabelStore, pool: LabeledPool, data: bytes, **options: Any) -> ImportResult:
    """Take labels from a CSV; options as in :func:`import_label_studio`."""
    rows = read_csv_rows(data, options.get("annotator", ""))
    return _take_over(store, pool, rows, ImportResult(uuid.uuid4().hex), **options)


def import_label_studio(
    store: LabelStore,
    pool: LabeledPool,
    data: bytes,
    *,
    annotator: str,
    create_missing_classes: bool = False,
    replace: bool = False,
    progress: Progress | None = None,
) -> ImportResult:
    """Take labels from Label Studio's JSON.

    ``annotator`` is who the labels belong to where the file does not say. A class the project does not have is listed,
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
    store.classes.add(names, annotator=REFERENCE)

    def rows() -> Iterator[_Row]:
        for row, (image_id, position) in enumerate(zip(drawn.tolist(), positions.tolist()), start=1):
            label = int(labels[position]) if position >= 0 else -1
            if label < 0:
                said = "This drawn image has no reference label. Label it by hand."
                result.problems.append(RowProblem(row, show_id(image_id), "NO_REFERENCE", said))
                continue
            yield _Row(row, show_id(image_id), None, names[label], REFERENCE)

    return _take_over(
        store, pool, rows(), result, annotator=REFERENCE, replace=True, progress=progress, source=REFERENCE
    )


def _take_over(
    store: LabelStore,
    pool: LabeledPool,
    rows: Iterable[_Row],
    result: ImportResult,
    *,
    annotator: str,
    create_missing_classes: bool = False,
    replace: bool = False,
    progress: Progress | None = None,
    source: str = "import",
) -> ImportResult:
    check_annotator(annotator)
    taken = list(rows)
    result.n_rows = len(taken)
    if create_missing_classes:
        _make_classes(store, taken, result, annotator)
    with store.database.read() as connection:
        sheet = store.classes.read(connection)
    into = resolve_merges(sheet)
    numbers = {one.name: into.get(one.class_id, one.class_id) for one in sheet}
    numbers |= {one.name: one.class_id for one in sheet if one.merged_into is None}
    image_ids = _find_images(pool, taken, result)
    known = _Known.read(store, numbers)
    events: list[tuple[_Row, Event]] = []
    for row, image_id in zip(taken, image_ids):
        event = _event_of(row, image_id, known, result, replace=replace, source=source)
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
    return result


def _make_classes(store: LabelStore, rows: Sequence[_Row], result: ImportResult, annotator: str) -> None:
    with store.database.read() as connection:
        known = {one.name for one in store.classes.read(connection)}
    wanted: dict[str, None] = {}
    for row in rows:
        name = _name_in(row, known)
        if name and name not in known and _is_class_name(name):
            wanted.setdefault(name)
    if wanted:
        added = store.classes.add([NewClass(name) for name in wanted], annotator=annotator)
        result.new_classes, result.warnings = tuple(one.name for one in added.classes), added.warnings


def _is_class_name(text: str) -> bool:
    try:
        return class_name(text) == text
    except InvalidDataError:
        return False


def _name_in(row: _Row, known: Collection[str]) -> str | None:
    """The class a row means: as written, or without the spreadsheet's apostrophe if only that is known."""
    if row.label is None:
        return None
    name = unicodedata.normalize("NFC", row.label).strip()
    plain = without_guard(name)
    return plain if row.spreadsheet and name not in known and plain in known else name


def _find_images(pool: LabeledPool, rows: Sequence[_Row], result: ImportResult) -> list[int | None]:
    """The image of every row, None (and a problem) where there is none or more than one."""
    found: list[int | None] = [None] * len(rows)
    by_path: list[int] = []
    ids: list[tuple[int, int]] = []
    for number, row in enumerate(rows):
        if not row.image_id:
            by_path.append(number)
            continue
        try:
            ids.append((number, read_id(row.image_id.strip().lower())))
        except InvalidDataError as error:
            result.problems.append(RowProblem(row.row, shown(row.image_id, 60), "BAD_IMAGE_ID", str(error)))
    positions = pool.positions(np.array([image_id for _, image_id in ids], dtype=np.uint64))
    for (number, image_id), position in zip(ids, positions.tolist()):
        if position >= 0:
            found[number] = image_id
        else:
            said = "The pool has no image with this id."
            result.problems.append(RowProblem(rows[number].row, show_id(image_id), "UNKNOWN_IMAGE", said))
    if by_path:
        paths = pool.column("path")
        wanted = [_normal(rows[number].path or "") for number in by_path]
        as_written = _index_in(wanted, paths)
        wanted = [
            without_guard(path) if place is None and rows[number].spreadsheet else path
            for number, path, place in zip(by_path, wanted, as_written)
        ]
        first = _index_in(wanted, paths)
        last = _index_in(wanted, paths.take(pa.array(np.arange(len(paths))[::-1])))
        for number, path, position, from_end in zip(by_path, wanted, first, last):
            row = rows[number].row
            if position is None:
                said = "The pool has no image with this path." if path else "This row names no image."
                result.problems.append(RowProblem(row, shown(path), "UNKNOWN_PATH", said))
            elif position != len(paths) - 1 - from_end:
                said = "The pool has several images with this path (from several imports). Name it by its image_id."
                result.problems.append(RowProblem(row, shown(path), "AMBIGUOUS_PATH", said))
            else:
                found[number] = int(pool.ids[position])
    return found


def _normal(path: str) -> str:
    return unicodedata.normalize("NFC", path).replace("\\", "/").removeprefix("./")


def _index_in(wanted: Sequence[str], paths: pa.Array) -> list[int | None]:
    return pc.index_in(pa.array(wanted, pa.string()), value_set=paths).to_pylist()


@dataclass
class _Known:
    """What the project knows before an import: class numbers, what holds, the settled class of each image.

    ``held`` is by image and annotator for first labels, by image and "" for reviews; ``seen`` are the rows so far.
    """

    numbers: Mapping[str, int]
    held: Mapping[tuple[int, str], Held]
    settled: Mapping[int, int]
    seen: dict[tuple[int, str], _Row] = field(default_factory=dict)

    @classmethod
    def read(cls, store: LabelStore, numbers: Mapping[str, int]) -> _Known:
        labels = store.labels()
        settled = dict(zip(labels.ids.tolist(), labels.class_ids.tolist()))
        rounds = (FIRST_ROUND, REVIEW_ROUND)
        return cls(numbers, {(one.image_id, one.holder): one for one in store.held() if one.round in rounds}, settled)


def _event_of(
    row: _Row,
    image_id: int | None,
    known: _Known,
    result: ImportResult,
    *,
    replace: bool,
    source: str,
) -> Event | None:
    """The event of a row; None when there is nothing to write, with the reason among the problems."""
    if image_id is None:
        return None
    name = _name_in(row, known.numbers)
    if name is not None and name not in known.numbers:
        said = (
            "This row has no label." if not name else "The project has no such class. Add it, or let the import add it."
        )
        result.problems.append(RowProblem(row.row, shown(row.label or ""), "UNKNOWN_CLASS", said))
        return None
    class_id = None if name is None else known.numbers[name]
    place = (image_id, row.annotator if row.suggested is None else "")
    if place in known.seen:
        if known.seen[place].label != row.label:
            said = f"Row {known.seen[place].row} gives the same image another label; that one was taken."
            result.problems.append(RowProblem(row.row, _value(row), "CONTRADICTS", said))
        else:
            result.n_unchanged += 1
        return None
    known.seen[place] = row
    now = known.held.get(place)
    action = "skip" if class_id is None else "label"
    if row.suggested is not None:
        source, before = "review", known.settled.get(image_id)
        is_there = before is not None and class_id in (None, before)  # a skip takes no label away
        if is_there or (before is None and not row.is_answer and row.label == row.suggested):
            result.n_unchanged += 1
            return None
        if before is not None and not replace:
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
            event_id=f"{result.group_id}-{row.row}-{len(known.seen)}",
            annotator=row.annotator,
            action=action,
            image_id=image_id,
            class_id=class_id,
            group_id=result.group_id,
            source=source,
            lead_time_ms=row.lead_time_ms,
            expected_version=now.version if now else "",
        )
    except InvalidDataError as error:
        result.problems.append(RowProblem(row.row, _value(row), error.code, str(error)))
        return None


def _already_labeled(row: _Row, annotator: str, now: Held | None, result: ImportResult) -> None:
    said = f"{shown(annotator, 40)} has decided this image otherwise"
    said += " meanwhile." if now is None or now.action is None else f" (event {now.version})."
    result.problems.append(
        RowProblem(row.row, _value(row), "ALREADY_LABELED", f"{said} Import with replace to change it.")
    )


def _value(row: _Row) -> str:
    return shown(f"{row.path or row.image_id}: {'skipped' if row.label is None else row.label}")


# --- giving away -----------------------------------------------------------------------------------------------------


def spreadsheet_safe(text: str) -> str:
    """A cell that no spreadsheet takes for a formula (OWASP's set of first characters).

    >>> spreadsheet_safe("=1+1"), spreadsheet_safe("cat")
    ("'=1+1", 'cat')
    """
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def without_guard(text: str) -> str:
    """A cell of :func:`spreadsheet_safe` as it was before."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA_STARTS) else text


def export_csv(
    store: LabelStore, pool: LabeledPool, path: str | Path, *, exact: bool = False, every_answer: bool = False
) -> int:
    """Write labels as CSV in the pool's order; returns the number of rows.

    One row per labeled image with its settled label, or with ``every_answer`` one per annotator and image.
    The default is safe to open in a spreadsheet; ``exact`` is byte for byte what is stored, for machines: only that
    one comes back unchanged into a project that does not know its classes yet.
    """
    keep = str if exact else spreadsheet_safe
    answers = _answers(store, every_answer=every_answer)
    positions = pool.positions(np.array([held.image_id for held, _ in answers], dtype=np.uint64))
    order = sorted((p, number) for number, p in enumerate(positions.tolist()) if p >= 0)
    paths = pool.column("path").take(pa.array([p for p, _ in order], pa.int64())).to_pylist()
    with open_atomic(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for (_, number), where in zip(order, paths):
            held, name = answers[number]
            writer.writerow([show_id(held.image_id), keep(where), keep(name), keep(held.annotator or "")])
    return len(order)


def _answers(store: LabelStore, *, every_answer: bool) -> list[tuple[Held, str]]:
    """What is exported: what holds, with the class's name; ordered by image, then annotator."""
    with store.database.read() as connection:
        sheet = store.classes.read(connection)
    names, into = {one.class_id: one.name for one in sheet}, resolve_merges(sheet)
    chosen = [held for held in store.held() if held.class_id is not None]
    if every_answer:
        chosen = [held for held in chosen if held.round == FIRST_ROUND]
    else:
        deciding = set(store.labels().seqs.tolist())
        chosen = [held for held in chosen if held.seq in deciding]
    chosen.sort(key=lambda held: (held.image_id, held.holder))
    return [(held, names[into.get(held.class_id or 0, held.class_id or 0)]) for held in chosen]


def label_studio_config(classes: Sequence[LabelClass | NewClass]) -> str:
    """The labeling interface that fits our tasks, for Label Studio's settings."""
    choices = "".join(
        f"<Choice value={quoteattr(one.name)}" + (f" hotkey={quoteattr(one.key)}" if one.key else "") + "/>"
        for one in classes
    )
    return (
        '<View><Image name="image" value="$image"/>'
        f'<Choices name="choice" toName="image" choice="single">{choices}</Choices></View>'
    )


def export_label_studio(store: LabelStore, pool: LabeledPool, path: str | Path, *, prefix: str = LOCAL_FILES) -> int:
    """Write every annotator's answers as Label Studio tasks in the pool's order; returns the number of tasks.

    ``data.image_id`` and ``data.annotators`` are ours: they let the file come back exactly.
    """
    with store.database.read() as connection:
        sheet = store.classes.read(connection)
    names, into = {one.class_id: one.name for one in sheet}, resolve_merges(sheet)
    leads = {row["event_id"]: row["lead_time_ms"] for row in store.events()}
    held = [one for one in store.held() if one.round == FIRST_ROUND and one.action is not None]
    held.sort(key=lambda one: (one.image_id, one.holder))
    by_image = [list(group) for _, group in itertools.groupby(held, key=lambda one: one.image_id)]
    positions = pool.positions(np.array([answers[0].image_id for answers in by_image], dtype=np.uint64)).tolist()
    tasks = [(position, answers) for position, answers in zip(positions, by_image) if position >= 0]
    tasks.sort(key=lambda task: task[0])
    paths = pool.column("path").take(pa.array([position for position, _ in tasks], pa.int64())).to_pylist()
    with open_atomic(path, "w", encoding="utf-8") as file:
        file.write("[")
        for number, ((_, answers), where) in enumerate(zip(tasks, paths)):
            data = {
                "image": prefix + quote(where),
                "image_id": show_id(answers[0].image_id),
                "annotators": [one.holder for one in answers],
            }
            annotations = []
            for one in answers:
                class_id = None if one.class_id is None else into.get(one.class_id, one.class_id)
                lead = leads.get(one.event_id)
                annotation: dict[str, Any] = {
                    "result": [] if class_id is None else [choice(names[class_id])],
                    "was_cancelled": class_id is None,
                    "ground_truth": False,
                }
                if lead is not None:
                    annotation["lead_time"] = lead / 1000
                annotations.append(annotation)
            file.write(",\n" if number else "\n")
            json.dump({"data": data, "annotations": annotations}, file, ensure_ascii=False)
        file.write("\n]\n")
    return len(tasks)


def choice(name: str) -> dict[str, Any]:
    """One answer as Label Studio writes it, for the interface of :func:`label_studio_config`."""
    return {"id": "r1", "from_name": "choice", "to_name": "image", "type": "choices", "value": {"choices": [name]}}
