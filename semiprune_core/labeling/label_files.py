"""Label files of other tools: the rows of a CSV or of Label Studio's JSON.

A file that cannot be read is refused as a whole; a task that cannot is listed with its reason.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import unquote

from semiprune_core.errors import InvalidDataError
from semiprune_core.importing import limited
from semiprune_core.paths import shown

LOCAL_FILES = "/data/local-files/?d="
MOST_ROWS = 1_000_000
MOST_LISTED = 100_000
"""Problems that are listed with their row; more of them are counted."""


@dataclass(frozen=True, slots=True)
class RowProblem:
    """A row that was not taken over. ``row`` counts from 1 and includes a CSV's header, as a spreadsheet shows it."""

    row: int
    value: str
    code: str
    message: str


class Problems(list[RowProblem]):
    """The rows that were not taken over; those beyond the first :data:`MOST_LISTED` are only counted."""

    n_unlisted = 0

    def append(self, problem: RowProblem) -> None:
        if len(self) < MOST_LISTED:
            super().append(problem)
        else:
            self.n_unlisted += 1

    @property
    def n_rows(self) -> int:
        return len(self) + self.n_unlisted


@dataclass(frozen=True, slots=True)
class Row:
    """One label to take over: an image by id or by path, a class by name (None for skipped).

    ``spreadsheet`` cells may carry the apostrophe of :func:`semiprune_core.project.spreadsheet.safe_cell`.
    ``suggested`` is the model's answer that was in view; a row that is not an ``is_answer`` only repeats it where it
    was not changed.
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


def decode_text(data: bytes) -> str:
    """UTF-8 (with or without a mark) or UTF-16 with its mark; anything else is refused with its line."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError as error:
            raise InvalidDataError(
                "The file looks like UTF-16 but is damaged. Save it as UTF-8.", code="ENCODING"
            ) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidDataError(
            f"The file is not UTF-8: line {line} holds the byte 0x{data[error.start]:02x}. Save it as UTF-8.",
            code="CSV_ENCODING",
        ) from error


def read_csv_rows(data: bytes, annotator: str) -> Iterator[Row]:
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
            there = ", ".join(shown(name, 40) for name in columns if name) or "none"
            raise InvalidDataError(
                f"The CSV needs the columns path or image_id, and label; it has: {there}.", code="CSV_NO_PATH_COLUMN"
            )

        is_coreset = {"label_source", "pseudo_label"} <= set(columns)

        def cell(row: Mapping[str, str | None], name: str) -> str:
            return row.get(columns[name]) or "" if name in columns else ""

        for number, row in enumerate(rows, start=2):
            image_id, path, label = cell(row, "image_id"), cell(row, "path"), cell(row, "label")
            yield Row(
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


def read_label_studio_rows(data: bytes, annotator: str, problems: Problems) -> Iterator[Row]:
    """Rows of a Label Studio export, JSON or JSON_MIN; tasks without an answer are passed over.

    The JSON is unpacked in a process that may not grow.
    """
    for item in limited.stream(read_given_tasks, name="The label file", data=data):
        if "problem" in item:
            problems.append(RowProblem(**item["problem"]))
        elif "n_unlisted" in item:
            problems.n_unlisted += item["n_unlisted"]
        else:
            yield Row(**{**item, "annotator": item["annotator"] or annotator})


def read_given_tasks() -> Iterator[dict[str, Any]]:
    """The rows and problems of the export on standard input. Only for a limited process."""
    problems = Problems()
    for row in _label_studio_rows(sys.stdin.buffer.read(), "", problems):
        yield asdict(row)
    yield from ({"problem": asdict(problem)} for problem in problems)
    yield {"n_unlisted": problems.n_unlisted}


def _label_studio_rows(data: bytes, annotator: str, problems: Problems) -> Iterator[Row]:
    text = decode_text(data)
    try:
        tasks = json.loads(text)
    except (ValueError, RecursionError) as error:  # a number of too many digits is a ValueError too
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
                yield Row(number, image_id, path, None, name, _lead_ms(annotation), suggested=suggested)
                continue
            choices = [
                result["value"].get("choices")
                for result in _list(annotation.get("result"))
                if isinstance(result, Mapping)
                and result.get("type") == "choices"
                and isinstance(result.get("value"), Mapping)
            ]
            if choices:
                chosen = choices[0] if len(choices) == 1 else [choice for part in choices for choice in _list(part)]
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
    problems: Problems,
    suggested: str | None = None,
) -> Iterator[Row]:
    if isinstance(chosen, Mapping):
        chosen = chosen.get("choices")
    if isinstance(chosen, str):
        chosen = [chosen]
    if not isinstance(chosen, list) or len(chosen) != 1 or not isinstance(chosen[0], str):
        answer = shown(json.dumps(chosen, ensure_ascii=False), 60)
        problems.append(
            RowProblem(number, answer, "NOT_ONE_CLASS", "An image has one class here; this answer has not.")
        )
        return
    yield Row(number, image_id, path, chosen[0], annotator, _lead_ms(annotation), suggested=suggested)


def _local_path(text: str) -> str:
    return unquote(text[len(LOCAL_FILES) :]) if text.startswith(LOCAL_FILES) else text


def _lead_ms(annotation: Mapping[str, Any]) -> int | None:
    lead = annotation.get("lead_time")
    if isinstance(lead, bool) or not isinstance(lead, int | float):
        return None
    return int(lead * 1000) if 0 <= lead < 1e9 else None


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
