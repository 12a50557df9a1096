"""Correcting a label where it is seen. A correction is a review: it trains, but never estimates."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from semiprune_core.errors import ConflictError
from semiprune_core.labeling.events import REVIEW_ROUND, Ack, Event
from semiprune_core.labeling.store import open_store

if TYPE_CHECKING:
    from semiprune_core.project.workspace import Project


def correct_label(project: Project, image_id: int, class_name: str, *, annotator: str) -> Ack:
    """Give an image the class ``class_name`` by review, whatever its label was; saved when this returns."""
    store = open_store(project)
    store.classes.add([class_name], annotator=annotator)  # one that is there already stays as it is
    class_id = next(entry.class_id for entry in store.classes.all() if entry.name == class_name)
    now = next((held for held in store.held([image_id]) if held.round == REVIEW_ROUND), None)
    event = Event(
        event_id=f"review-{secrets.token_hex(12)}",
        annotator=annotator,
        action="label",
        image_id=image_id,
        class_id=class_id,
        source="review",
        expected_version=now.version if now else "",
    )
    (ack,) = store.append([event])
    if ack.status != "saved":
        raise ConflictError(ack.reason or "Somebody else has changed this label. Look again.")
    return ack
