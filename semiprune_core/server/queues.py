"""What the labeling deck shows next: the drawn images, skipped or flagged ones, disagreements, or a given list.

A queue is a function ``(store, pool, annotator, n) -> Cards``; a new one registers under its name in QUEUES. One about
something (registered with the fact ``of``) is asked as ``name:which`` and gets ``which`` as its last argument. One that
leases (``by_tab``) is told the browser's ``tab``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from semiprune_core.errors import UnknownNameError
from semiprune_core.labeling import Held, LabelStore
from semiprune_core.labeling.agreement import disagreements
from semiprune_core.labeling.drawing import ranks
from semiprune_core.labeling.events import FIRST_ROUND, FLAG_ROUND, SETTLE_ROUND
from semiprune_core.labeling.progress_report import progress
from semiprune_core.project.pool import Pool, show_id
from semiprune_core.registry import Registry

PRACTICE = "practice"
PRACTICED = 20
"""Images of a practice."""


@dataclass(frozen=True)
class Cards:
    """Images in the order to show them. ``round`` is where decisions go: "label", "review" or "settle".

    ``suggestions`` are (class number, confidence) by image id, ``votes`` who said which class, ``answers`` the class
    that counts: for practice alone, where nothing is saved.
    """

    ids: np.ndarray
    round: str = FIRST_ROUND
    suggestions: Mapping[int, tuple[int, float]] = field(default_factory=dict)
    votes: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    answers: Mapping[int, int] = field(default_factory=dict)


Queue = Callable[..., Cards]
QUEUES: Registry[Queue] = Registry("queue")


def next_cards(name: str, store: LabelStore, pool: Pool, annotator: str, n: int, *, tab: str = "") -> Cards:
    """The next ``n`` cards of the queue ``name``, such as ``drawn`` or ``coreset:coreset-0003``."""
    queue, mark, which = name.partition(":")
    asked_for = QUEUES.facts(queue).get("of")
    if bool(mark) != bool(asked_for):
        complaint = f"needs {asked_for}, as in {queue}:..." if asked_for else "stands alone, without a colon"
        raise UnknownNameError(f"The queue '{queue}' {complaint}.")
    of_tab = {"tab": tab} if QUEUES.facts(queue).get("by_tab") else {}
    return QUEUES[queue](store, pool, annotator, n, *([which] if mark else []), **of_tab)


@QUEUES.register("drawn", title="Drawn images", by_tab=True)
def drawn(store: LabelStore, pool: Pool, annotator: str, n: int, *, tab: str = "") -> Cards:
    """The next images of the open drawings, leased to this annotator. No suggestions: these labels are blind."""
    return Cards(store.leases.lease(annotator, n, tab=tab))


@QUEUES.register("skipped", title="Skipped images")
def skipped(store: LabelStore, pool: Pool, annotator: str, n: int) -> Cards:
    """Drawn images that were skipped, and nobody labeled."""
    return Cards(progress(store).skipped_ids[:n])


@QUEUES.register("flagged", title="Flagged images")
def flagged(store: LabelStore, pool: Pool, annotator: str, n: int) -> Cards:
    """Images somebody flagged."""
    return Cards(store.flagged_ids()[:n])


@QUEUES.register("disputed", title="Disagreements")
def disputed(store: LabelStore, pool: Pool, annotator: str, n: int) -> Cards:
    """Images whose annotators disagree, to be settled."""
    disputes = disagreements(store)[:n]
    votes = {dispute.image_id: dispute.votes for dispute in disputes}
    return Cards(np.array([dispute.image_id for dispute in disputes], dtype=np.uint64), SETTLE_ROUND, votes=votes)


@QUEUES.register("practice", title="Practice")
def practice(store: LabelStore, pool: Pool, annotator: str, n: int) -> Cards:
    """Some labeled images as if they were not, always the same ones, with their labels as answers."""
    labels = store.labels()
    order = np.argsort(ranks(labels.ids, 0, PRACTICE), kind="stable")[: min(n, PRACTICED)]
    answers = dict(zip(labels.ids[order].tolist(), labels.class_ids[order].tolist(), strict=True))
    return Cards(labels.ids[order], PRACTICE, answers=answers)


def card_rows(store: LabelStore, pool: Pool, annotator: str, cards: Cards) -> list[dict[str, Any]]:
    """The cards as the browser reads them: image, what this annotator said before, suggestion, votes."""
    positions = pool.positions(cards.ids)
    in_pool = positions >= 0  # an image may have left the pool since it was drawn
    ids, positions = cards.ids[in_pool], positions[in_pool]
    facts = pool.facts(positions, ["path", "width", "height"])
    decided, marked = states(store.held(ids.tolist(), annotator=annotator), annotator, cards.round)
    rows = []
    for image_id, fact in zip(ids.tolist(), facts, strict=True):
        now, mark = decided.get(image_id), marked.get(image_id)
        suggestion = cards.suggestions.get(image_id)
        rows.append(
            {
                "id": show_id(image_id),
                **fact,
                "action": now.action if now else None,
                "class_id": now.class_id if now else None,
                "version": now.version if now else "",
                "event_id": now.event_id if now else None,
                "saved_ms": now.saved_ms if now else None,
                "flagged": mark is not None and mark.action == "flag",
                "suggestion": None if suggestion is None else {"class_id": suggestion[0], "confidence": suggestion[1]},
                "answer": cards.answers.get(image_id),
                "votes": [{"annotator": name, "class_id": c} for name, c in cards.votes.get(image_id, {}).items()],
            }
        )
    return rows


def states(held: Iterable[Held], annotator: str, round_: str) -> tuple[dict[int, Held], dict[int, Held]]:
    """By image: what holds in this round, and the annotator's flag."""
    decided: dict[int, Held] = {}
    marked: dict[int, Held] = {}
    for state in held:
        if state.round == FLAG_ROUND and state.holder == annotator:
            marked[state.image_id] = state
        elif state.round == round_ and state.holder in (annotator, ""):
            decided[state.image_id] = state
    return decided, marked
