"""Label events and what the deck needs beside them, all below ``/studio/projects/<project>/labels``.

POST labels            {annotator, events}               save events; one answer per event, sent after the commit
POST labels/queue      {annotator, queue, n} or {ids}    the next images, leased, and the ten latest decisions
POST labels/leases     {annotator, renew} or {release}   hold these images longer, or give them (or all: true) back
                       or {take: true}                   take over what the person's other tabs have
POST labels/classes    {annotator, name}                 add a class while labeling
POST labels/similar    {image_id, ids}                   these images, the most similar ones first
POST labels/live       {}                                how good the labels so far are; keeps that up to date
GET  labels/classes, labels/progress?annotator=          what there is, how far it is
GET  labels/export/<format>                              a file: csv, answers, exact, label-studio, drawn, drawn-tasks
"""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response

from semiprune_core import live
from semiprune_core.errors import ForbiddenError, InvalidDataError, MissingStepError, UnknownNameError
from semiprune_core.labeling import LabelStore, open_store
from semiprune_core.labeling.classes import LabelClass
from semiprune_core.labeling.events import FIRST_ROUND, REVIEW_ROUND, Ack, Annotator
from semiprune_core.labeling.exchange.drawn_list import export_drawn_csv, export_drawn_tasks
from semiprune_core.labeling.exchange.pictures import export_answers
from semiprune_core.labeling.export_labels import export_csv
from semiprune_core.labeling.messages import Message, read_field
from semiprune_core.labeling.permits import purposeful_ids
from semiprune_core.labeling.progress_report import progress
from semiprune_core.paths import shown
from semiprune_core.project import rights
from semiprune_core.project.pool import Pool, read_id, show_id
from semiprune_core.project.workspace import Workspace
from semiprune_core.server.access import check_write
from semiprune_core.server.queues import Cards, card_rows, next_cards
from semiprune_core.server.requests import AddClass, ChangeLeases, FindSimilar, NextCards, SaveEvents, WatchLabels
from semiprune_core.server.threads import beside_pictures
from semiprune_core.trust.similarity import similarity_features

MAX_BODY = 4 << 20
LATEST = 10
LABELERS_QUEUES = ("drawn", "further", "skipped")
M = TypeVar("M", bound=Message)
Handler = Callable[[Request, Workspace], Awaitable[Response]]


def _posted(message: type[M], work: Callable[[Request, Workspace, M], Any]) -> Handler:
    """A handler for a ``message`` posted by our own page; ``work`` runs in a thread."""

    @functools.wraps(work)
    async def handler(request: Request, workspace: Workspace) -> Response:
        check_write(request, workspace)
        asked = message.read(_parsed(await _read_body(request)))
        if (name := getattr(asked, "annotator", None)) is not None:
            await beside_pictures(functools.partial(rights.check_own, name))
        return _answer(await beside_pictures(functools.partial(work, request, workspace, asked)))

    return handler


def _asked(work: Callable[[Request, Workspace], Any]) -> Handler:
    """A handler that reads from the label store; ``work`` runs in a thread."""

    @functools.wraps(work)
    async def handler(request: Request, workspace: Workspace) -> Response:
        return _answer(await beside_pictures(functools.partial(work, request, workspace)))

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
        raise InvalidDataError("The connection was lost before everything arrived.", code="CUT_SHORT") from None
    return b"".join(parts)


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise InvalidDataError("The request is not JSON.", code="BAD_JSON") from None


def _answer(value: Any) -> Response:
    # ASCII only: a lone surrogate in what we quote back has no UTF-8
    return Response(json.dumps(value), media_type="application/json", headers={"Cache-Control": "no-store"})


def _opened(request: Request, workspace: Workspace) -> tuple[LabelStore, Pool]:
    project = workspace.project(request.path_params["project"])
    return open_store(project), project.everything()


def _classes(store: LabelStore) -> list[dict[str, Any]]:
    return [entry.to_json() for entry in store.classes.all()]


# --- writing ---------------------------------------------------------------------------------------------------------


def _save(request: Request, workspace: Workspace, asked: SaveEvents) -> dict[str, Any]:
    store, pool = _opened(request, workspace)
    refused = _not_in_pool(asked.events, pool)
    in_pool = [item for place, item in enumerate(asked.events) if place not in refused]
    saved = iter(store.append_json(in_pool, annotator=asked.annotator))
    return {"acks": [refused[place] if place in refused else next(saved) for place in range(len(asked.events))]}


def _not_in_pool(items: Sequence[Any], pool: Pool) -> dict[int, dict[str, Any]]:
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


def _queue(request: Request, workspace: Workspace, asked: NextCards) -> dict[str, Any]:
    annotator = asked.annotator
    store, pool = _opened(request, workspace)
    sees_all = rights.allows("review", store.project)
    if not sees_all:
        _check_cards(store, asked)
    latest: list[dict[str, Any]] = []
    if asked.ids is not None:
        cards = Cards(np.array(asked.ids, dtype=np.uint64), asked.round)
    else:
        cards = next_cards(asked.queue, store, pool, annotator, asked.n, tab=asked.tab)
        if asked.latest and asked.queue == "drawn":
            recent = np.array([held.image_id for held in store.recent(annotator, LATEST)], dtype=np.uint64)
            latest = card_rows(store, pool, annotator, Cards(recent))
    items = card_rows(store, pool, annotator, cards)
    for row in () if sees_all else (*items, *latest):
        row["path"] = row["id"]  # a folder's name may be the answer
    return {
        "items": items,
        "latest": latest,
        "round": cards.round,
        "elsewhere": store.leases.n_elsewhere(annotator, asked.tab) if asked.tab else 0,
        "classes": _classes(store),
    }


def _check_cards(store: LabelStore, asked: NextCards) -> None:
    """Whoever only labels sees what is theirs to label, and nobody else's answers."""
    wanted = np.array(asked.ids or (), dtype=np.uint64)
    if asked.ids is None:
        is_theirs = asked.queue in LABELERS_QUEUES
    elif asked.round == REVIEW_ROUND:
        is_theirs = bool(np.isin(wanted, purposeful_ids(store)).all())
    else:
        is_theirs = asked.round == FIRST_ROUND
    if not is_theirs:
        raise ForbiddenError("These images are for engineers of the project. Labelers get the images that were drawn.")


def _leases(request: Request, workspace: Workspace, asked: ChangeLeases) -> dict[str, Any]:
    store, _ = _opened(request, workspace)
    if asked.take:
        store.leases.take_over(asked.annotator, tab=asked.tab)
        return {"held": []}
    if asked.release is not None:
        listed = list(asked.release) if isinstance(asked.release, tuple) else None
        store.leases.release(asked.annotator, listed, tab=asked.tab)
        return {"held": []}
    if asked.renew is None:
        raise InvalidDataError("Name the images to renew or to release.")
    held = store.leases.renew(asked.annotator, list(asked.renew), tab=asked.tab)
    return {"held": [show_id(image_id) for image_id in held]}


def _add_class(request: Request, workspace: Workspace, asked: AddClass) -> dict[str, Any]:
    store, _ = _opened(request, workspace)
    added = store.classes.add([asked.name], annotator=asked.annotator)
    sheet: list[LabelClass] = store.classes.all()
    name = added.classes[0].name if added.classes else added.existing[0]
    chosen = next(entry for entry in sheet if entry.name == name)
    return {
        "class": chosen.to_json(),
        "classes": [entry.to_json() for entry in sheet],
        "warnings": list(added.warnings) if added.classes else [],
    }


def _similar(request: Request, workspace: Workspace, asked: FindSimilar) -> dict[str, Any]:
    _, pool = _opened(request, workspace)
    ids = asked.ids
    everyone = np.array([asked.image_id, *ids], dtype=np.uint64)
    if (pool.positions(everyone) < 0).any():
        raise InvalidDataError("This project has no such image. Reload the page.", code="NO_IMAGE")
    seen = similarity_features(workspace.project(request.path_params["project"]), pool, everyone)
    distance = np.sqrt(((seen[1:] - seen[0]) ** 2).mean(axis=1))
    order = np.argsort(distance, kind="stable")
    return {
        "ids": [show_id(ids[place]) for place in order],
        "distances": [round(float(distance[place]), 4) for place in order],
    }


def _live(request: Request, workspace: Workspace, asked: WatchLabels) -> dict[str, Any]:
    project = workspace.project(request.path_params["project"])
    shown_now = live.standing(project, open_store(project))
    if shown_now["state"] in live.FOLLOWED:
        live.watch(project)
    return shown_now


save = _posted(SaveEvents, _save)
queue = _posted(NextCards, _queue)
leases = _posted(ChangeLeases, _leases)
add_class = _posted(AddClass, _add_class)
similar = _posted(FindSimilar, _similar)
how_good = _posted(WatchLabels, _live)


# --- reading ---------------------------------------------------------------------------------------------------------


@_asked
def classes(request: Request, workspace: Workspace) -> dict[str, Any]:
    return {"classes": _classes(_opened(request, workspace)[0])}


@_asked
def how_far(request: Request, workspace: Workspace) -> dict[str, Any]:
    """Progress of the open drawings; the pace is the annotator's where one is named."""
    store, _ = _opened(request, workspace)
    name = request.query_params.get("annotator")
    annotator = read_field("annotator", Annotator(), name) if name else None
    if annotator is not None:
        rights.check_own(annotator)
    report = progress(store, annotator=annotator)
    return {
        "n_drawn": report.n_drawn,
        "labeled": report.labeled,
        "skipped": report.skipped,
        "disputed": report.disputed,
        "left": report.left,
        "overlap_left": report.overlap_left,
        "flagged": report.flagged,
        "per_minute": report.per_minute,
        "minutes_left": report.minutes_left,
        "complete": report.complete,
        "per_class": {entry.class_id: report.per_class.get(entry.name, 0) for entry in store.classes.all()},
    }


FORMATS: dict[str, tuple[str, str, Callable[[LabelStore, Pool, Path], int]]] = {
    "csv": ("labels.csv", "text/csv; charset=utf-8", export_csv),
    "answers": ("answers.csv", "text/csv; charset=utf-8", functools.partial(export_csv, every_answer=True)),
    "exact": ("labels-exact.csv", "text/csv; charset=utf-8", functools.partial(export_csv, exact=True)),
    "label-studio": ("label-studio.json", "application/json", export_answers),
    "drawn": ("drawn.csv", "text/csv; charset=utf-8", export_drawn_csv),
    "drawn-tasks": ("drawn-label-studio.zip", "application/zip", export_drawn_tasks),
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
    rights.record("downloaded labels", store.project, f"{name}, {seq:,} events")
    return FileResponse(
        path,
        filename=f"{store.project}-{seq}-{ending}",
        media_type=kind,
        headers={"Cache-Control": "no-store"},
        background=BackgroundTask(folder.cleanup),
    )
