"""Trackers that people have: TensorBoard, MLflow and what packages add follow the runs of a workspace. Off by default.

What a tracker does happens in a thread of its own. One that is missing, raises or does not answer costs a note in the
run's log and nothing else.
"""

from semiprune_core.registry import import_installed, import_siblings
from semiprune_core.tracking.base import TRACKERS, Point, TrackedRun, Tracker
from semiprune_core.tracking.choice import (
    VARIABLE,
    check_trackers,
    chosen_trackers,
    keep_trackers,
    lacking,
    parse_trackers,
    set_outside,
)
from semiprune_core.tracking.followers import Followers, follow, follow_artifact

import_siblings(__name__, __path__)
import_installed("semiprune.trackers", TRACKERS)

__all__ = [
    "TRACKERS",
    "VARIABLE",
    "Followers",
    "Point",
    "TrackedRun",
    "Tracker",
    "check_trackers",
    "chosen_trackers",
    "follow",
    "follow_artifact",
    "keep_trackers",
    "lacking",
    "parse_trackers",
    "set_outside",
]
