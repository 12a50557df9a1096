"""Where labeling stands: how much is done, how fast it goes, which classes are thin, and what comes next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from semiprune_core.labeling import schema
from semiprune_core.labeling.classes import resolve_merges
from semiprune_core.labeling.drawing import FEW_LABELS, together
from semiprune_core.labeling.events import BY_HAND, DECISIONS, FIRST_ROUND
from semiprune_core.labeling.schema import unsigned_array
from semiprune_core.paths import shown
from semiprune_core.records import IntArray

if TYPE_CHECKING:
    from semiprune_core.labeling.store import LabelStore

RECENT = 100
LONGEST_GAP_S = 60.0
FEW_TIMED = 10
"""Fewer timed labels say nothing about a speed."""


@dataclass(frozen=True)
class LabelProgress:
    """Counts over one drawing, or over all open ones; ``per_class`` over all labels of the project, zero included.

    ``overlap_left`` images still wait for a second annotator; ``per_minute`` and ``minutes_left`` are None until
    there are two recent decisions; ``skipped_ids`` may be offered again.
    """

    n_drawn: int
    labeled: int
    skipped: int
    disputed: int
    left: int
    overlap_left: int
    flagged: int
    per_minute: float | None
    minutes_left: float | None
    per_class: dict[str, int]
    thin_classes: tuple[str, ...]
    skipped_ids: np.ndarray
    complete: bool
    note: str


def labels_per_minute(times_ms: IntArray, *, longest_gap_s: float = LONGEST_GAP_S) -> float | None:
    """The pace of decisions at these times (K,), breaks longer than ``longest_gap_s`` left out.

    None when no two of them lie close enough together to tell.
    """
    gaps: np.ndarray = np.diff(np.sort(times_ms)) / 1000
    gaps = gaps[gaps <= longest_gap_s]
    if not len(gaps):
        return None
    return 60 * len(gaps) / max(float(gaps.sum()), 1e-3)


@dataclass(frozen=True)
class LabelingTime:
    """How long people took for ``n`` decisions, in seconds all together, as the browser measured it."""

    n: int
    seconds: float

    @property
    def seconds_per_label(self) -> float | None:
        """None until there are enough to say."""
        return self.seconds / self.n if self.n >= FEW_TIMED else None


def labeling_time(store: LabelStore) -> LabelingTime:
    """The time of all decisions that were timed; a longer break counts as LONGEST_GAP_S."""
    lead = schema.events.c.lead_time_ms
    longest = int(1000 * LONGEST_GAP_S)
    query = sa.select(sa.func.count(), sa.func.sum(sa.case((lead > longest, longest), else_=lead))).where(
        schema.events.c.project == store.project, lead > 0
    )
    with store.database.read() as connection:
        n, milliseconds = connection.execute(query).one()
    return LabelingTime(int(n), float(milliseconds or 0) / 1000)


def n_labeled_classes(store: LabelStore) -> int:
    """How many classes have a label, disputed ones included; merged classes count as one. One cheap query."""
    table = schema.current
    query = sa.select(table.c.class_id).where(table.c.project == store.project, table.c.class_id.is_not(None))
    with store.database.read() as connection:
        into = resolve_merges(store.classes.read(connection))
        class_ids = connection.execute(query.distinct()).scalars().all()
    return len({into.get(class_id, class_id) for class_id in class_ids})


def further_ids(store: LabelStore) -> np.ndarray:
    """Undecided images of drawings that are not uniform, in order; none while a random drawing is still open.

    Only these may be shown with a suggestion: labels of a random drawing measure, so they are given blind.
    """
    table = schema.current
    decided = sa.select(table.c.image_id).where(
        table.c.project == store.project, table.c.action.in_(("label", "skip", "settle"))
    )
    with store.database.read() as connection:
        drawings = store.drawings.read_open(connection)
        done = unsigned_array(connection.execute(decided.distinct()).scalars().all())
    uniform, _ = together([drawing for drawing in drawings if drawing.uniform])
    further, _ = together([drawing for drawing in drawings if not drawing.uniform])
    if not np.isin(uniform, done).all():
        return further[:0]
    return further[~np.isin(further, done) & ~np.isin(further, uniform)]


def progress(store: LabelStore, *, drawing_id: int | None = None, annotator: str | None = None) -> LabelProgress:
    """Progress on a drawing (where None, all open ones); the pace is the annotator's (where None, everybody's)."""
    with store.database.read() as connection:
        sheet = store.classes.read(connection)
        drawings = store.drawings.read_open(connection) if drawing_id is None else []
        labels = store.labels_in(connection)
        table = schema.current
        decided = connection.execute(
            sa.select(table.c.image_id, sa.func.count())
            .where(table.c.project == store.project, table.c.round == FIRST_ROUND, table.c.action.is_not(None))
            .group_by(table.c.image_id)
        ).fetchall()
        events = schema.events
        recent = sa.select(sa.func.coalesce(events.c.made_ms, events.c.saved_ms)).where(
            events.c.project == store.project, events.c.action.in_(DECISIONS), events.c.source.in_(BY_HAND)
        )
        if annotator is not None:
            recent = recent.where(events.c.annotator == annotator)
        times = connection.execute(recent.order_by(events.c.seq.desc()).limit(RECENT)).scalars().all()
    drawn, needs = together(drawings if drawing_id is None else [store.drawings.get(drawing_id)])
    order = np.argsort(drawn)
    n_decided = np.zeros(len(drawn), dtype=np.int64)
    if decided and len(drawn):
        ids = unsigned_array([row[0] for row in decided])
        place = np.minimum(np.searchsorted(drawn, ids, sorter=order), len(drawn) - 1)
        hit = drawn[order[place]] == ids
        n_decided[order[place[hit]]] = np.array([row[1] for row in decided])[hit]
    is_labeled, is_disputed = np.isin(drawn, labels.ids), np.isin(drawn, labels.disputed_ids)
    is_skipped = (n_decided > 0) & ~is_labeled & ~is_disputed
    left = int((~is_labeled & ~is_disputed & ~is_skipped).sum())
    overlap_left = int(((n_decided > 0) & (n_decided < needs)).sum())
    shown_classes = [entry for entry in sheet if entry.merged_into is None]
    counts = np.bincount(labels.class_ids, minlength=max((entry.class_id for entry in sheet), default=0) + 1)
    per_class = {entry.name: int(counts[entry.class_id]) for entry in shown_classes}
    thin = tuple(name for name, count in per_class.items() if count < FEW_LABELS)
    pace = labels_per_minute(np.array(times, dtype=np.int64))
    complete = bool(len(drawn)) and left == 0 and int(is_disputed.sum()) == 0
    return LabelProgress(
        n_drawn=len(drawn),
        labeled=int(is_labeled.sum()),
        skipped=int(is_skipped.sum()),
        disputed=int(is_disputed.sum()),
        left=left,
        overlap_left=overlap_left,
        flagged=len(store.flagged_ids()),
        per_minute=pace,
        minutes_left=None if pace is None else (left + overlap_left) / pace,
        per_class=per_class,
        thin_classes=thin,
        skipped_ids=drawn[is_skipped],
        complete=complete,
        note=_note(len(drawn), left, int(is_disputed.sum()), int(is_skipped.sum()), overlap_left, thin),
    )


def _note(n_drawn: int, left: int, disputed: int, skipped: int, overlap_left: int, thin: tuple[str, ...]) -> str:
    """One or two sentences: where we are and what to do next."""
    if not n_drawn:
        return "No images were drawn yet. Draw the subset to label first."
    if left:
        return f"{left:,} of {n_drawn:,} images are still to be labeled."
    if disputed:
        return f"Every image has an answer, but the annotators disagree on {disputed:,}. Settle them next."
    parts = [f"The subset is complete: {n_drawn - skipped:,} images labeled. The next step, training, is ready."]
    if overlap_left:
        parts.append(f"{overlap_left:,} images still wait for a second annotator.")
    if skipped:
        parts.append(f"{skipped:,} were skipped.")
    if thin:
        names = ", ".join(shown(name, 40) for name in thin[:5]) + (" and others" if len(thin) > 5 else "")
        parts.append(f"Fewer than {FEW_LABELS} labels: {names}. Label more of them, or merge them.")
    return " ".join(parts)
