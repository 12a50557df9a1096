"""What our page may post, field by field (see ``labeling.messages``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from semiprune_core.labeling.events import FIRST_ROUND, REVIEW_ROUND, SETTLE_ROUND, Annotator
from semiprune_core.labeling.messages import AnyText, Anything, Choice, Flag, ImageId, ListOf, Message, Text, Whole

MAX_EVENTS = 500
MAX_CARDS = 500
TAB = Text(64, least=0)
IMAGE_IDS = ListOf(ImageId(), MAX_CARDS, "image ids")


@dataclass(frozen=True)
class AllOr:
    """``true`` for all of them, or a list."""

    listed: ListOf

    @property
    def must(self) -> str:
        return f"true, or {self.listed.must}"

    def read(self, value: Any) -> Any:
        return True if value is True else self.listed.read(value)


@dataclass(frozen=True, kw_only=True)
class SaveEvents(Message):
    """Each event is checked alone, so that a bad one stops no other."""

    annotator: Annotated[str, Annotator()]
    events: Annotated[tuple[Any, ...], ListOf(Anything(), MAX_EVENTS, "label events")]


@dataclass(frozen=True, kw_only=True)
class NextCards(Message):
    """The next ``n`` images of a queue, or the images ``ids``. ``tab`` is a name the browser's tab has given itself."""

    annotator: Annotated[str, Annotator()]
    tab: Annotated[str, TAB] = ""
    queue: Annotated[str, Text(40)] = "drawn"
    n: Annotated[int, Whole(1, MAX_CARDS)] = 20
    latest: Annotated[bool, Flag()] = False
    ids: Annotated[tuple[int, ...] | None, IMAGE_IDS] = None
    round: Annotated[str, Choice((FIRST_ROUND, REVIEW_ROUND, SETTLE_ROUND))] = FIRST_ROUND


@dataclass(frozen=True, kw_only=True)
class ChangeLeases(Message):
    """Images to hold longer, or images (or all) to give back; or ``take`` what other tabs of the person have."""

    annotator: Annotated[str, Annotator()]
    tab: Annotated[str, TAB] = ""
    take: Annotated[bool, Flag()] = False
    renew: Annotated[tuple[int, ...] | None, IMAGE_IDS] = None
    release: Annotated[tuple[int, ...] | bool | None, AllOr(IMAGE_IDS)] = None


@dataclass(frozen=True, kw_only=True)
class AddClass(Message):
    annotator: Annotated[str, Annotator()]
    name: Annotated[str, AnyText()]


@dataclass(frozen=True, kw_only=True)
class FindSimilar(Message):
    annotator: Annotated[str | None, Annotator()] = None
    image_id: Annotated[int, ImageId()]
    ids: Annotated[tuple[int, ...], IMAGE_IDS]


@dataclass(frozen=True, kw_only=True)
class WatchLabels(Message):
    """Somebody labels: how good are the labels so far?"""

    annotator: Annotated[str | None, Annotator()] = None
