"""Label Studio's exports: JSON, JSON_MIN and CSV come down to the same answers.

What must survive the way there and back stands in a task's ``data``, which all three forms give back:

    image_id, path   which image it is
    pseudo_label     the model's answer that was in view
    human_label      the label people had given when the task went out, "" where there was none
    annotators, answers   in an export of labels: who had said what

An answer that only repeats what went out is what it was: a label by the person who gave it. Any other one was given in
Label Studio with the suggestion or the earlier label in view, and is a review. The JSON form names predictions by
numbers alone, so nothing can be learned from those.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import unquote

from semiprune_core.errors import InvalidDataError
from semiprune_core.importing import limited
from semiprune_core.labeling.exchange.rows import Problems, Row, RowProblem, decode_text
from semiprune_core.paths import shown

LOCAL_FILES = "/data/local-files/?d="
CHOICE, CSV_MARKS = "choice", {"annotation_id", "annotator", "created_at", "updated_at", "lead_time"}
"""A CSV of Label Studio's is known by its answers and two of the columns that it writes beside them."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """One annotation: where it stands in the file, what was chosen (None: skipped), by whom."""

    row: int
    chosen: Any
    annotator: str
    lead_time_ms: int | None


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
    for row in _json_rows(sys.stdin.buffer.read(), problems):
        yield asdict(row)
    yield from ({"problem": asdict(problem)} for problem in problems)
    yield {"n_unlisted": problems.n_unlisted}


def read_csv_items(items: Iterable[tuple[int, Mapping[str, str]]], annotator: str, problems: Problems) -> Iterator[Row]:
    """Rows of Label Studio's CSV from its lines and their numbers: lists are written as JSON in a cell."""
    for row in _min_rows(((line, _from_cells(item)) for line, item in items), problems):
        yield row if row.annotator else replace(row, annotator=annotator)


def _json_rows(data: bytes, problems: Problems) -> Iterator[Row]:
    text = decode_text(data)
    try:
        tasks = json.loads(text)
    except (ValueError, RecursionError) as error:  # a number of too many digits is a ValueError too
        raise InvalidDataError(f"The file is not JSON: {error}.", code="JSON_DAMAGED") from error
    if not isinstance(tasks, list):
        raise InvalidDataError("A Label Studio export is a list of tasks; this file is not.", code="JSON_SHAPE")
    flat: list[tuple[int, Mapping[str, Any]]] = []
    for number, task in enumerate(tasks, start=1):
        if not isinstance(task, Mapping):
            problems.append(RowProblem(number, shown(str(task), 60), "JSON_SHAPE", "This task is not a JSON object."))
        elif "annotations" not in task and "choice" in task:
            flat.append((number, task))
        else:
            yield from _whole_task(number, task, problems)
    yield from _min_rows(flat, problems)


def _whole_task(number: int, task: Mapping[str, Any], problems: Problems) -> Iterator[Row]:
    """A task of the JSON form, which holds all of its annotations."""
    facts = task.get("data", task)
    facts = facts if isinstance(facts, Mapping) else {}
    names, annotations = facts.get("annotators"), _list(task.get("annotations"))
    answers = []
    for place, annotation in enumerate(annotations):
        if not isinstance(annotation, Mapping):
            problems.append(RowProblem(number, "", "JSON_SHAPE", "An annotation is not a JSON object."))
            continue
        name = _who(annotation, names if "answers" not in facts else None, place)
        if annotation.get("was_cancelled") is True:
            answers.append(_Answer(number, None, name, _lead_ms(annotation)))
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
            answers.append(_Answer(number, [] if chosen is None else chosen, name, _lead_ms(annotation)))
    yield from _task_rows(number, facts, answers, _prediction(task), problems)


def _min_rows(items: Iterable[tuple[int, Mapping[str, Any]]], problems: Problems) -> Iterator[Row]:
    """JSON_MIN and CSV hold one annotation each beside the data of its task: they are put together by task."""
    tasks: dict[Any, tuple[int, Mapping[str, Any], list[_Answer]]] = {}
    for number, item in items:
        key = item["id"] if isinstance(item.get("id"), int | str) else f"item {number}"
        _, _, answers = tasks.setdefault(key, (number, item, []))
        chosen = item["choice"]
        if chosen != "":  # a task without an answer, in an export of all tasks
            answers.append(_Answer(number, [] if chosen is None else chosen, _who(item, None, 0), _lead_ms(item)))
    for number, facts, answers in tasks.values():
        yield from _task_rows(number, facts, answers, None, problems)


def _task_rows(
    number: int, facts: Mapping[str, Any], answers: list[_Answer], prediction: str | None, problems: Problems
) -> Iterator[Row]:
    """What the answers of one task mean; see the head of this file."""
    image_id = _text(facts, "image_id")
    path = None if image_id is None else _text(facts, "path")
    if path is None and (image := _text(facts, "image")) is not None:
        path = _local_path(image)
    if image_id is None and path is None:
        problems.append(RowProblem(number, "", "NO_IMAGE", "This task names no image."))
        return
    suggested, given = _text(facts, "pseudo_label") or prediction, _text(facts, "human_label") or None
    if suggested is None and any(key in facts for key in ("human_label", "label_source", "answers")):
        suggested = ""  # one of our tasks: whatever was in view, it was not a blind first label
    names = _list(facts.get("annotators"))
    went_out = [(said, name) for said, name in zip(_list(facts.get("answers")), names) if isinstance(name, str)]
    rows = []
    for answer in answers:
        label, is_one = _one_class(answer.chosen)
        if not is_one:
            text = shown(json.dumps(answer.chosen, ensure_ascii=False), 60)
            reason = "An image has one class here; this answer has not."
            problems.append(RowProblem(answer.row, text, "NOT_ONE_CLASS", reason))
            continue
        row = Row(answer.row, image_id, path, label, answer.annotator, answer.lead_time_ms)
        before = next((place for place, (said, _) in enumerate(went_out) if said == label), None)
        if before is not None:
            rows.append(replace(row, annotator=went_out.pop(before)[1]))
        else:
            rows.append(replace(row, suggested=suggested, given=given))
    changed = any(row.suggested is not None and row.label not in (None, given) for row in rows)
    yield from (row for row in rows if not (changed and given is not None and row.given == row.label))


def _one_class(chosen: Any) -> tuple[str | None, bool]:
    """The class of an answer (None: skipped), and whether it is one."""
    if chosen is None:
        return None, True
    if isinstance(chosen, Mapping):
        chosen = chosen.get("choices")
    if isinstance(chosen, list) and len(chosen) == 1:
        chosen = chosen[0]
    return (chosen, True) if isinstance(chosen, str) else (None, False)


def _from_cells(item: Mapping[str, str]) -> Mapping[str, Any]:
    """A line of the CSV as JSON_MIN would hold it."""
    values: dict[str, Any] = dict(item)
    for name in ("annotators", "answers", "choice"):
        cell = item.get(name) or ""
        if cell.startswith('{"choices":' if name == "choice" else "["):
            try:
                values[name] = json.loads(cell)
            except (ValueError, RecursionError):
                continue
    for name, kind in (("annotator", int), ("lead_time", float)):
        try:
            values[name] = kind(item.get(name) or "")
        except ValueError:
            continue
    return values


def _prediction(task: Mapping[str, Any]) -> str | None:
    """What a task of ours showed as the model's answer, in a file that has not been through Label Studio."""
    for prediction in _list(task.get("predictions")):
        for result in _list(prediction.get("result") if isinstance(prediction, Mapping) else None):
            value = result.get("value") if isinstance(result, Mapping) else None
            choices = _list(value.get("choices") if isinstance(value, Mapping) else None)
            if choices and isinstance(choices[0], str):
                return choices[0]
    return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(facts: Mapping[str, Any], name: str) -> str | None:
    value = facts.get(name)
    return value if isinstance(value, str) else None


def _local_path(text: str) -> str:
    return unquote(text[len(LOCAL_FILES) :]) if text.startswith(LOCAL_FILES) else text


def _lead_ms(annotation: Mapping[str, Any]) -> int | None:
    lead = annotation.get("lead_time")
    if isinstance(lead, bool) or not isinstance(lead, int | float):
        return None
    return int(lead * 1000) if 0 <= lead < 1e9 else None


def _who(annotation: Mapping[str, Any], names: Any, place: int) -> str:
    """Whose answer it is: our own list of names, an e-mail address, a number of Label Studio's, or "" for nobody."""
    if isinstance(names, list) and place < len(names) and isinstance(names[place], str):
        return names[place]
    who = annotation.get("completed_by", annotation.get("annotator"))
    if isinstance(who, Mapping):
        who = who.get("email") or who.get("id")
    if isinstance(who, bool) or not isinstance(who, int | str) or who == "":
        return ""
    return f"label-studio {who}" if isinstance(who, int) else who
