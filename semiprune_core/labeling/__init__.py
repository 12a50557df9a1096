"""Labeling: drawing the subset, the append-only label store, classes, leases, agreement, progress, files."""

from semiprune_core.labeling.events import Ack, Event, Held
from semiprune_core.labeling.store import (
    LabelStore,
    class_book,
    copies_note,
    copy_labels,
    damaged_copies,
    forget_project,
    has_store,
    label_damage,
    look_after_labels,
    open_store,
    put_back_labels,
    restore_labels,
    take_out_labels,
)

__all__ = [
    "Ack",
    "Event",
    "Held",
    "LabelStore",
    "class_book",
    "copies_note",
    "copy_labels",
    "damaged_copies",
    "forget_project",
    "has_store",
    "label_damage",
    "look_after_labels",
    "open_store",
    "restore_labels",
    "put_back_labels",
    "take_out_labels",
]
