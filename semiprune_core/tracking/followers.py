"""Following a run: a thread for each tracker, which the run never waits for while it works."""

from __future__ import annotations

import atexit
import logging
import math
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from semiprune_core.paths import shown
from semiprune_core.project.artifacts import MANIFEST, Artifact
from semiprune_core.project.workspace import Project
from semiprune_core.tracking.base import TRACKERS, Point, TrackedRun, Tracker
from semiprune_core.tracking.choice import chosen_trackers

MOST_WAITING = 5000
"""Points that may wait for a slow tracker; further ones are left out."""
AT_ONCE = 200
END_SECONDS = 30.0
"""How long the end of a run waits for what its trackers have not taken yet."""

log = logging.getLogger(__name__)
_open: weakref.WeakSet[Follower] = weakref.WeakSet()


class Follower:
    """One tracker of one run."""

    def __init__(self, name: str, opener: Callable[[], Tracker], notes: logging.Logger) -> None:
        self.title, self._opener, self._notes = TRACKERS.title(name), opener, notes
        self._waiting: queue.Queue[Point | Path | str] = queue.Queue(MOST_WAITING)
        self._is_over = False
        self._thread = threading.Thread(target=self._work, name=f"tracker-{name}", daemon=True)
        self._thread.start()
        _open.add(self)

    def tell(self, item: Point | Path | str) -> None:
        """A point, a file, or as text the state in which the run ended."""
        if self._is_over:
            return
        try:
            self._waiting.put_nowait(item)
        except queue.Full:
            self._give_up("it is too slow")

    def wait(self, seconds: float) -> None:
        self._thread.join(max(seconds, 0))
        if self._thread.is_alive() and not self._is_over:
            self._give_up(f"it did not take everything within {END_SECONDS:g} seconds of the run's end")

    def _give_up(self, reason: str) -> None:
        self._is_over = True
        self._notes.warning("%s does not follow this any more: %s. Everything else goes on.", self.title, reason)

    def _work(self) -> None:
        try:
            tracker = self._opener()
            while not self._is_over and _hand_over(tracker, self._next()):
                pass
        except BaseException as error:  # noqa: BLE001 - whatever a tracker raises is its own affair
            if not self._is_over:
                self._give_up(f"{type(error).__name__}, {shown(' '.join(str(error).split()), 200).rstrip('.')}")
        self._is_over = True

    def _next(self) -> list[Point | Path | str]:
        """What waits, at least one item, up to a file or the end."""
        items = [self._waiting.get()]
        while isinstance(items[-1], Point) and len(items) < AT_ONCE and not self._waiting.empty():
            items.append(self._waiting.get())
        return items


def _hand_over(tracker: Tracker, items: list[Point | Path | str]) -> bool:
    """Whether more is to come."""
    points = [item for item in items if isinstance(item, Point)]
    if points:
        tracker.points(points)
    last = items[-1]
    if isinstance(last, Path):
        tracker.file(last)
    if isinstance(last, str):
        tracker.end(last)
    return not isinstance(last, str)


class Followers:
    """All trackers of one run; none by default."""

    def __init__(self, followers: Iterable[Follower] = ()) -> None:
        self._followers = tuple(followers)

    def __bool__(self) -> bool:
        return bool(self._followers)

    def tell(self, step: int, facts: Mapping[str, Any]) -> None:
        """The numbers among ``facts``."""
        values = {name: float(value) for name, value in facts.items() if _is_number(value)}
        if values:
            self._tell(Point(step, time.time(), values))

    def file(self, path: Path) -> None:
        self._tell(path)

    def end(self, state: str) -> None:
        self._tell(state)

    def wait(self) -> None:
        """Wait for what they have not taken yet, all together no longer than END_SECONDS."""
        _wait(self._followers)

    def _tell(self, item: Point | Path | str) -> None:
        for follower in self._followers:
            follower.tell(item)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _wait(followers: Iterable[Follower]) -> None:
    end = time.monotonic() + END_SECONDS
    for follower in followers:
        follower.wait(end - time.monotonic())


@atexit.register
def _wait_for_all() -> None:
    _wait(tuple(_open))


def follow(project: Project, run: TrackedRun, notes: logging.Logger = log) -> Followers:
    """The chosen trackers of the workspace, opened for ``run`` in the background; whatever fails is a note."""
    try:
        chosen = chosen_trackers(project.workspace)
        return Followers(
            Follower(name, lambda opened=TRACKERS[name], at=address: opened(run, at), notes)  # type: ignore[misc]
            for name, address in chosen.items()
        )
    except Exception as error:  # noqa: BLE001 - no run fails because nobody can follow it
        notes.warning("No tracker follows this: %s", shown(str(error), 300))
        return Followers()


def follow_artifact(project: Project, artifact: Artifact, title: str) -> Followers:
    """Tell the trackers of something that was made at once: its settings, its numbers and its manifest."""
    settings = {**artifact.settings, "seed": artifact.manifest["seed"]}
    run = TrackedRun(project.name, project.folder, artifact.id, title, artifact.kind, settings)
    followers = follow(project, run)
    followers.tell(0, artifact.facts)
    followers.file(artifact.path(MANIFEST))
    followers.end("done")
    return followers
