"""Label events and what the deck needs beside them, all below ``/studio/projects/<project>/labels``.

POST labels            {annotator, events}               save events; one answer per event, sent after the commit
POST labels/queue      {annotator, queue, n} or {ids}    the next images, leased, and the ten latest decisions
POST labels/leases     {annotator, renew} or {release}   hold these images longer, or give them (or all: true) back
POST labels/classes    {annotator, name}                 add a class while labeling
POST labels/similar    {image_id, ids}                   these images, the most similar ones first
GET  labels/classes, labels/progress?annotator=          what there is, how far it is
GET  labels/export/<format>                              a file: csv, answers, exact, label-studio
"""

from __future__ import annotations

import functools
import json
import tempfile
import unicodedata
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response

from semiprune_core.errors import InvalidDataError, MissingStepError, UnknownNameError
from semiprune_core.labeling import LabelStore, open_store
from semiprune_core.labeling.classes import LabelClass
from semiprune_core.labeling.events import FIRST_ROUND, SETTLE_ROUND, Ack, check_annotator
from semiprune_core.labeling.export_labels import export_csv, export_label_studio
from semiprune_core.labeling.progress_report import progress
from semiprune_core.paths import shown
from semiprune_core.project.pool import Pool, read_id, show_id
from semiprune_core.project.workspace import Workspace
from semiprune_core.server.access import check_write
from semiprune_core.server.queues import Cards, card_rows, next_cards
from semiprune_core.trust.similarity import similarity_features

MAX_BODY = 4 << 20
MAX_EVENTS = 500
MAX_CARDS = 500
LATEST = 10
Body = Mapping[str, Any]
Work = Callable[[Request, Workspace, Body], Any]


def _posted(work: Work) -> Callable[[Request, Workspace], Awaitable[Response]]:
    """A handler for a JSON object posted by our own page; ``work`` runs in a thread."""

    @functools.wraps(work)
    async def handler(request: Request, workspace: Workspace) -> Response:
        check_write(request, workspace)
        body = _parsed(await _read_body(request))
        return _answer(await run_in_threadpool(work, request, workspace, body))

    return handler


async def _read_body(request: Request) -> bytes:
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > MAX_BODY:
                raise InvalidDataError(f"At most {MAX_BODY >> 20} MB can be sent at once.", code="TOO_LARGE")
            parts.append(part)
    except ClientDisconnect:
        raise InvalidDataError("The connection broke before everything had arrived.", code="CUT_SHORT") from None
    return b"".join(parts)


def _parsed(data: bytes) -> Body:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise InvalidDataError("The request is not JSON.", code="BAD_JSON") from None
    if not isinstance(body, dict):
        raise InvalidDataError("The request is not a JSON object.", code="BAD_JSON")
    return body


def _answer(value: Any) -> Response:
    # ASCII only: a lone surrogate in what we quote back has no UTF-8
    return Response(json.dumps(value), media_type="application/json", headers={"Cache-Control": "no-store"})


def _annotator(name: Any) -> str:
    if not isinstance(name, str):
        raise InvalidDataError("The annotator's name is missing. Type one on the Label page.", code="NO_ANNOTATOR")
    name = unicodedata.normalize("NFC", name)
    check_annotator(name)
    return name


def _whole(body: Body, name: str, *, default: int, low: int, high: int) -> int:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidDataError(f"{name} is a whole number from {low} to {high}, got {shown(repr(value), 40)}.")
    return value


def _image_ids(value: Any, name: str = "ids") -> np.ndarray:
    if not isinstance(value, list) or len(value) > MAX_CARDS or not all(isinstance(one, str) for one in value):
        raise InvalidDataError(f"{name} is a list of at most {MAX_CARDS} image ids.")
    return np.array([read_id(one) for one in value], dtype=np.uint64)


def _opened(request: Request, workspace: Workspace) -> tuple[LabelStore, Pool]:
    project = workspace.project(request.path_params["project"])
    return open_store(project), project.everything()


def _classes(store: LabelStore) -> list[dict[str, Any]]:
    return [one.to_json() for one in store.classes.all()]


# --- writing ---------------------------------------------------------------------------------------------------------


def _save(request: Request, workspace: Workspace, body: Body) -> dict[str, Any]:
    annotator, items = _annotator(body.get("annotator")), body.get("events")
    if not isinstance(items, list) or len(items) > MAX_EVENTS:
        raise InvalidDataError(f"events is a list of at most {MAX_EVENTS} label events.")
    store, pool = _opened(request, workspace)
    strangers = _not_in_pool(items, pool)
    known = [item for place, item in enumerate(items) if place not in strangers]
    saved = iter(store.append_json(known, annotator=annotator))
    return {"acks": [strangers[place] if place in strangers else next(saved) for place in range(len(items))]}


def _not_in_pool(items: list[Any], pool: Pool) -> dict[int, dict[str, Any]]:
    """Refusals, by place, of the events about images this project does not have."""
    places, ids = [], []
    for place, item in enumerate(items):
        image_id = item.get("image_id") if isinstance(item, dict) else None
        if isinstance(image_id, str):
            try:
                ids.append(read_id(image_id))
            except InvalidDataError:
                continue  # the store refuses it with its reason
            places.append(place)
    missing = np.flatnonzero(pool.positions(np.array(ids, dtype=np.uint64)) < 0)
    reason = "This project has no such image. Reload the page."
    refused = {}
    for number in missing.tolist():
        place = places[number]
        refused[place] = Ack(str(items[place].get("event_id"))[:64], "refused", reason=reason).to_json()
    return refused


def _queue(request: Request, workspace: Workspace, body: Body) -> dict[str, Any]:
    annotator = _annotator(body.get("annotator"))
    store, pool = _opened(request, workspace)
    latest: list[dict[str, Any]] = []
    if "ids" in body:
        round_ = body.get("round", FIRST_ROUND)
        if round_ not in (FIRST_ROUND, SETTLE_ROUND, "review"):
            raise InvalidDataError("round is label, review or settle.")
        cards = Cards(_image_ids(body["ids"]), round_)
    else:
        name = body.get("queue", "drawn")
        if not isinstance(name, str) or len(name) > 40:
            raise UnknownNameError("The queue's name is missing.")
        n = _whole(body, "n", default=20, low=1, high=MAX_CARDS)
        cards = next_cards(name, store, pool, annotator, n)
        if body.get("latest") is True and name == "drawn":
            recent = np.array([held.image_id for held in store.recent(annotator, LATEST)], dtype=np.uint64)
            latest = card_rows(store, pool, annotator, Cards(recent))
    return {
        "items": card_rows(store, pool, annotator, cards),
        "latest": latest,
        "round": cards.round,
        "classes": _classes(store),
    }


def _leases(request: Request, workspace: Workspace, body: Body) -> dict[str, Any]:
    annotator = _annotator(body.get("annotator"))
    store, _ = _opened(request, workspace)
    if "release" in body:
        given_back = body["release"]
        store.leases.release(annotator, None if given_back is True else _image_ids(given_back, "release").tolist())
        return {"held": []}
    held = store.leases.renew(annotator, _image_ids(body.get("renew"), "renew").tolist())
    return {"held": [show_id(image_id) for image_id in held]}


def _add_class(request: Request, workspace: Workspace, body: Body) -> dict[str, Any]:
    annotator, name = _annotator(body.get("annotator")), body.get("name")
    if not isinstance(name, str):
        raise InvalidDataError("A class needs a name. Type one.", code="CLASS_NAME")
    store, _ = _opened(request, workspace)
    added = store.classes.add([name], annotator=annotator)
    sheet: list[LabelClass] = store.classes.all()
    wanted = added.classes[0].name if added.classes else added.existing[0]
    chosen = next(one for one in sheet if one.name == wanted)
    return {
        "class": chosen.to_json(),
        "classes": [one.to_json() for one in sheet],
        "warnings": list(added.warnings) if added.classes else [],
    }


def _similar(request: Request, workspace: Workspace, body: Body) -> dict[str, Any]:
    _, pool = _opened(request, workspace)
    wanted, ids = _image_ids([body.get("image_id")], "image_id"), _image_ids(body.get("ids"))
    everyone = np.concatenate([wanted, ids])
    if (pool.positions(everyone) < 0).any():
        raise InvalidDataError("This project has no such image. Reload the page.", code="NO_IMAGE")
    seen = similarity_features(workspace.project(request.path_params["project"]), pool, everyone)
    distance = np.sqrt(((seen[1:] - seen[0]) ** 2).mean(axis=1))
    order = np.argsort(distance, kind="stable")
    return {
        "ids": [show_id(ids[place]) for place in order],
        "distances": [round(float(distance[place]), 4) for place in order],
    }


save = _posted(_save)
queue = _posted(_queue)
leases = _posted(_leases)
add_class = _posted(_add_class)
similar = _posted(_similar)


# --- reading ---------------------------------------------------------------------------------------------------------


def classes(request: Request, workspace: Workspace) -> Response:
    return _answer({"classes": _classes(_opened(request, workspace)[0])})


def how_far(request: Request, workspace: Workspace) -> Response:
    """Progress of the open drawings; the pace is the annotator's where one is named."""
    store, _ = _opened(request, workspace)
    name = request.query_params.get("annotator")
    found = progress(store, annotator=_annotator(name) if name else None)
    return _answer(
        {
            "n_drawn": found.n_drawn,
            "labeled": found.labeled,
            "skipped": found.skipped,
            "disputed": found.disputed,
            "left": found.left,
            "overlap_left": found.overlap_left,
            "flagged": found.flagged,
            "per_minute": found.per_minute,
            "minutes_left": found.minutes_left,
            "complete": found.complete,
            "per_class": {one.class_id: found.per_class.get(one.name, 0) for one in store.classes.all()},
        }
    )


FORMATS: dict[str, tuple[str, str, Callable[[LabelStore, Pool, Path], int]]] = {
    "csv": ("labels.csv", "text/csv; charset=utf-8", export_csv),
    "answers": ("answers.csv", "text/csv; charset=utf-8", functools.partial(export_csv, every_answer=True)),
    "exact": ("labels-exact.csv", "text/csv; charset=utf-8", functools.partial(export_csv, exact=True)),
    "label-studio": ("label-studio.json", "application/json", export_label_studio),
}


def export(request: Request, workspace: Workspace) -> Response:
    """The labels as a file, made now; the name carries the number of the last event."""
    name = request.path_params["format"]
    if name not in FORMATS:
        raise UnknownNameError(f"Labels are exported as {', '.join(FORMATS)}; got {shown(name, 40)!r}.")
    store, pool = _opened(request, workspace)
    ending, kind, write = FORMATS[name]
    seq = store.last_seq
    if not seq:
        raise MissingStepError("There are no labels yet.")
    folder = tempfile.TemporaryDirectory(prefix="semiprune-labels-")
    path = Path(folder.name) / ending
    write(store, pool, path)
    return FileResponse(
        path,
        filename=f"{store.project}-{seq}-{ending}",
        media_type=kind,
        headers={"Cache-Control": "no-store"},
        background=BackgroundTask(folder.cleanup),
    )
