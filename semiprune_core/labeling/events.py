"""Label events: what a person did, and what follows from it.

An event is one of

    label, skip        a decision about an image (round "label", or "review" when a suggestion was in view)
    settle             the answer to a disagreement (round "settle")
    flag, unflag       a mark beside the decision (round "flag")
    undo, redo         take back an earlier event of the same annotator, or bring it back; a ``target`` in a group
                       (a bulk action) stands for the whole group

What holds now on a *place* (image, round, holder) is its last event that is not undone. In the rounds "label" and
"flag" each annotator holds a place of their own; in "review" and "settle" there is one place for all.
The *version* of a place is the id of the last event that touched it, "" before the first: a browser knows the ids
of its own events, so it can name the version it has seen without waiting for an answer.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from semiprune_core.errors import InvalidDataError
from semiprune_core.labeling.messages import Choice, Flag, ImageId, Message, Text, Whole
from semiprune_core.paths import shown
from semiprune_core.project.pool import show_id

EventRow = Mapping[Any, Any]
"""A row of the table of events, by column."""
Place = tuple[int, str, str]
"""(signed image id, round, holder)"""

DECISIONS = ("label", "skip", "settle")
UNDOABLE = (*DECISIONS, "flag", "unflag")
ACTIONS = (*UNDOABLE, "undo", "redo")
REFERENCE = "reference"
"""The source of labels that came with the images, and the name under which they are kept."""
SOURCES = ("person", "review", "import", REFERENCE)
BY_HAND = ("person", "review")
"""Sources whose events a bare undo may take back; an import is taken back only by its name."""
FIRST_ROUND, REVIEW_ROUND, SETTLE_ROUND, FLAG_ROUND = "label", "review", "settle", "flag"

MAX_ID = 64
MAX_ANNOTATOR = 64
MAX_MS = 1 << 53
MAX_NUMBER = (1 << 31) - 1
"""The largest number of a class or a drawing."""

Status = Literal["saved", "already", "conflict", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One action of one annotator. ``event_id`` is given by whoever makes the event and makes the write idempotent."""

    event_id: str
    annotator: str
    action: str
    image_id: int | None = None
    """Unsigned 64-bit; None for undo and redo only."""
    class_id: int | None = None
    target: str | None = None
    """undo, redo: the event meant; None means the annotator's last one."""
    group_id: str | None = None
    source: str = "person"
    drawing_id: int | None = None
    lead_time_ms: int | None = None
    made_ms: int | None = None
    """When it was made by the browser's clock, milliseconds since 1970."""
    expected_version: str | None = None
    """The version of the place as the annotator saw it; None asks for no check."""
    force: bool = False
    """Replace whatever is there, after a conflict was shown."""
    actor: str | None = None
    """Who brought the event in, where it was imported: a file may speak for any annotator."""

    def __post_init__(self) -> None:
        _check_text("event id", self.event_id, MAX_ID)
        (check_person if self.source in BY_HAND else check_annotator)(self.annotator)
        if self.actor is not None:
            check_annotator(self.actor)
        if self.action not in ACTIONS:
            raise InvalidDataError(f"An action is one of {', '.join(ACTIONS)}; got {shown(str(self.action))!r}.")
        if self.source not in SOURCES:
            raise InvalidDataError(f"A source is one of {', '.join(SOURCES)}; got {shown(str(self.source))!r}.")
        if (self.image_id is None) != (self.action in ("undo", "redo")):
            wanted = "names no image, but its target" if self.image_id is not None else "needs an image id"
            raise InvalidDataError(f"The action '{self.action}' {wanted}.")
        if self.image_id is not None and not 0 <= self.image_id < 1 << 64:
            raise InvalidDataError("An image id is an unsigned 64-bit number.", code="BAD_IMAGE_ID")
        if (self.class_id is None) == (self.action in ("label", "settle")):
            word = "needs" if self.class_id is None else "has no"
            raise InvalidDataError(f"The action '{self.action}' {word} class.")
        for name in ("target", "group_id"):
            if getattr(self, name) is not None:
                _check_text(name, getattr(self, name), MAX_ID)
        if self.expected_version:
            _check_text("expected version", self.expected_version, MAX_ID)
        for name in ("lead_time_ms", "made_ms"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < MAX_MS:
                raise InvalidDataError(f"{name} must be a number of milliseconds, got {value}.")

    @property
    def round(self) -> str:
        if self.action in ("flag", "unflag"):
            return FLAG_ROUND
        if self.action == "settle":
            return SETTLE_ROUND
        return REVIEW_ROUND if self.source == "review" else FIRST_ROUND

    @property
    def holder(self) -> str:
        return self.annotator if self.round in (FIRST_ROUND, FLAG_ROUND) else ""


@dataclass(frozen=True, slots=True)
class Held:
    """What holds on a place now; ``action`` is None when everything there was taken back."""

    image_id: int
    round: str
    holder: str
    version: str
    event_id: str | None = None
    seq: int | None = None
    annotator: str | None = None
    action: str | None = None
    class_id: int | None = None
    source: str | None = None
    saved_ms: int | None = None

    def says(self, action: str, class_id: int | None) -> bool:
        return self.action == action and self.class_id == class_id

    def to_json(self) -> dict[str, Any]:
        return {
            "image_id": show_id(self.image_id),
            "version": self.version,
            "annotator": self.annotator,
            "action": self.action,
            "class_id": self.class_id,
            "source": self.source,
            "saved_ms": self.saved_ms,
        }


@dataclass(frozen=True, slots=True)
class Ack:
    """The answer to one event.

    ``saved``: committed now. ``already``: committed before, nothing changed. ``conflict``: somebody (or another tab)
    changed the place meanwhile, nothing was written, ``current`` says who, when and what. ``refused``: the event cannot
    be carried out and never will be; ``reason`` is a sentence. ``touched`` lists every place that changed.
    """

    event_id: str
    status: Status
    version: str = ""
    current: Held | None = None
    reason: str = ""
    touched: tuple[Held, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "event_id": self.event_id,
            "status": self.status,
            "version": self.version,
            "current": self.current.to_json() if self.current else None,
            "reason": self.reason,
            "touched": [held.to_json() for held in self.touched],
        }


def check_annotator(name: str) -> None:
    """An annotator's name: 1 to 64 printable characters, no white space at its ends."""
    _check_text("annotator's name", name, MAX_ANNOTATOR)
    if name != name.strip():
        raise InvalidDataError(f"An annotator's name must not begin or end with a space; got {name!r}.")


def check_person(name: str) -> None:
    """The name of a person who labels: any annotator's but the one that stands for reference labels."""
    check_annotator(name)
    if name == REFERENCE:
        raise InvalidDataError(
            f"The name '{REFERENCE}' stands for the labels that came with the images. Choose another.",
            code="NAME_TAKEN",
        )


def _check_text(what: str, text: object, limit: int) -> None:
    if not isinstance(text, str) or not 1 <= len(text) <= limit or not text.isprintable():
        raise InvalidDataError(f"The {what} must be 1 to {limit} printable characters, got {shown(str(text), 60)!r}.")


@dataclass(frozen=True)
class Annotator:
    """The rule for an annotator's name in a message; it is read in Unicode's composed form."""

    must: str = "the annotator's name"

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError
        name = unicodedata.normalize("NFC", value)
        check_person(name)
        return name


FROM_BROWSER = ("person", "review")


@dataclass(frozen=True, kw_only=True)
class EventMessage(Message):
    """An event as a browser sends it. Who made it is the server's knowledge, not the browser's."""

    title = "label event"

    event_id: Annotated[str, Text(MAX_ID)]
    action: Annotated[str, Choice(ACTIONS)]
    image_id: Annotated[int | None, ImageId()] = None
    class_id: Annotated[int | None, Whole(0, MAX_NUMBER)] = None
    target: Annotated[str | None, Text(MAX_ID)] = None
    group_id: Annotated[str | None, Text(MAX_ID)] = None
    source: Annotated[str | None, Choice(FROM_BROWSER)] = None
    drawing_id: Annotated[int | None, Whole(0, MAX_NUMBER)] = None
    lead_time_ms: Annotated[int | None, Whole(0, MAX_MS - 1)] = None
    made_ms: Annotated[int | None, Whole(0, MAX_MS - 1)] = None
    expected_version: Annotated[str | None, Text(MAX_ID, least=0)] = None
    force: Annotated[bool | None, Flag()] = None


def event_from_json(values: Any, *, annotator: str) -> Event:
    """The event in a browser's JSON. A decision must name the version it expects."""
    message = EventMessage.read(values)
    if message.action in DECISIONS and message.expected_version is None and not message.force:
        raise InvalidDataError("A decision names the version it expects (expected_version, '' for none).")
    given = {name: value for name, value in vars(message).items() if value is not None}
    return Event(annotator=unicodedata.normalize("NFC", annotator), **given)


@dataclass(slots=True)
class _Fold:
    """The events of one place, in order."""

    version: str
    rows: list[EventRow]


def held_of(place: Place, version: str, row: EventRow | None) -> Held:
    """What holds on ``place`` when ``row`` is its last event that is not undone (None: there is none)."""
    image_id = place[0] + (1 << 64) if place[0] < 0 else place[0]
    if row is None:
        return Held(image_id, place[1], place[2], version)
    return Held(
        image_id,
        place[1],
        place[2],
        version,
        row["event_id"],
        row["seq"],
        row["annotator"],
        row["action"],
        row["class_id"],
        row["source"],
        row["saved_ms"],
    )


def replay(rows: Iterable[EventRow]) -> tuple[dict[Place, Held], set[str]]:
    """What holds after these events (rows of ``label_events`` in the order of ``seq``), and which are undone."""
    places: dict[Place, _Fold] = {}
    by_id: dict[str, EventRow] = {}
    groups: dict[tuple[str, str], list[str]] = {}
    taken_back: set[str] = set()
    for row in rows:
        if row["action"] in ("undo", "redo"):
            target = by_id[row["target"]]
            group = target["group_id"]
            meant = groups[target["annotator"], group] if group else [target["event_id"]]
            for event_id in meant:
                if (event_id in taken_back) == (row["action"] == "redo"):
                    taken_back.symmetric_difference_update({event_id})
                    places[place_of(by_id[event_id])].version = row["event_id"]
            continue
        by_id[row["event_id"]] = row
        if row["group_id"]:
            groups.setdefault((row["annotator"], row["group_id"]), []).append(row["event_id"])
        fold = places.setdefault(place_of(row), _Fold("", []))
        fold.version = row["event_id"]
        fold.rows.append(row)
    held = {}
    for place, fold in places.items():
        last = next((row for row in reversed(fold.rows) if row["event_id"] not in taken_back), None)
        held[place] = held_of(place, fold.version, last)
    return held, taken_back


def place_of(row: EventRow) -> Place:
    return row["image_id"], row["round"], row["holder"]
