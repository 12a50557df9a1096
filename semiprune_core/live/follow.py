"""The process that follows a project's labels, who starts it, and what it left to be shown.

    <project>/live/lock         held by the process while it lives: one for each project
    <project>/live/watched      touched by whoever looks; the process ends when nobody has looked for a while
    <project>/live/report.json  the latest report, whole at any time
    <project>/live/guess.npz    the head's answers for all images

It is started by the request that asks what to show, so whatever ends it (a kill, a restart of the machine) costs one
report at most: the next request starts it again, and it reads everything anew from the label store.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from semiprune_core import files, jobs
from semiprune_core.errors import MissingStepError, SemiPruneError
from semiprune_core.importing.follow_up import features_are_on
from semiprune_core.jobs import locks
from semiprune_core.jobs.launch import own_modules
from semiprune_core.labeling import LabelStore, open_store, schema
from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.learning.quality import FEWEST
from semiprune_core.live.report import Guess, few_words, measure
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import PROJECT, Project, Workspace
from semiprune_core.results.features import FeatureRun, latest_features
from semiprune_core.results.pseudo import FROZEN
from semiprune_core.training.heads import PreparedFeatures, prepare_features
from semiprune_core.training.settings import TrainSettings

FOLDER, LOCK, WATCHED, REPORT, GUESS, LOG = "live", "lock", "watched", "report.json", "guess.npz", "log.txt"
LOOK_EVERY = 0.1
"""Seconds between two looks at the labels."""
IDLE = 90.0
"""Seconds after which nobody looks any more."""
PAUSE = 2.0
"""Seconds without a further label after which even one new label is worth a fit."""
RESTART_EVERY = 2.0
"""Seconds between two starts for one project, so that a process that dies at birth is not started all the time."""
FOLLOWED = ("few", "waiting", "ready", "trouble")
"""States of :func:`standing` in which there are features, so that there is something to follow."""

log = logging.getLogger(__name__)
_started: dict[Path, tuple[float, subprocess.Popen[bytes]]] = {}


# --- what to show ----------------------------------------------------------------------------------------------------


def standing(project: Project, store: LabelStore) -> dict[str, Any]:
    """What to show now: the latest report, or the reason why there is none.

    ``behind`` says that a newer report is on its way.
    """
    try:
        run = followed_features(project)
    except MissingStepError:
        return _without_features(project)
    n_labels, seq = n_labels_now(store), store.last_seq
    report = read_report(project)
    if n_labels < FEWEST:
        return {"state": "few", "line": few_words(n_labels), "n_labels": n_labels, "behind": False}
    if report is None or report.get("features") != run.artifact.hash:
        return {"state": "waiting", "line": "Estimating the accuracy …", "n_labels": n_labels, "behind": True}
    return {**report, "behind": report["seq"] < seq}


def followed_features(project: Project) -> FeatureRun:
    """The features that a training run would begin from by default, else the newest of the pool as it is now."""
    try:
        return latest_features(project, TrainSettings(start=FROZEN).encoder)
    except MissingStepError:
        return latest_features(project)


def _without_features(project: Project) -> dict[str, Any]:
    newest = next(iter(jobs.list_jobs(project, "features")), None)
    status = newest.status() if newest else None
    advice = f"To compute them, run: semiprune embed {project.name}"
    if status is not None and not status.is_over:
        line = "Accuracy appears here once the features of all images are computed."
        if status.total:
            line = f"Computing features: {status.done:,} of {status.total:,} images. Accuracy appears here after that."
        return {"state": "features", "line": line, "behind": True}
    reason = "not all images have them"
    if not features_are_on(project):
        reason = "they are switched off here"
    elif status is not None and status.state != jobs.DONE:
        reason = "computing them was not finished"
    return {"state": "off", "line": f"The accuracy of your labels needs features: {reason}. {advice}", "behind": False}


def report_now(project: Project, store: LabelStore) -> dict[str, Any]:
    """A report on the labels as they are, made here unless the latest one is; or the reason why there can be none."""
    shown_now = standing(project, store)
    if shown_now["state"] not in FOLLOWED or not shown_now["behind"]:
        return shown_now
    run = followed_features(project)
    prepared = prepare_features(run, TrainSettings(start=FROZEN).head)
    return {**measure(prepared, project.pool(), store.snapshot(), encoder=run.encoder)[0], "behind": False}


def n_labels_now(store: LabelStore) -> int:
    """Images with a label of any kind, by one cheap query."""
    table = schema.current
    query = sa.select(sa.func.count(table.c.image_id.distinct())).where(
        table.c.project == store.project, table.c.class_id.is_not(None)
    )
    with store.database.read() as connection:
        return int(connection.execute(query).scalar() or 0)


def read_report(project: Project) -> dict[str, Any] | None:
    with contextlib.suppress(OSError, SemiPruneError):
        return dict(files.read_json(project.folder / FOLDER / REPORT))
    return None


def guesses(project: Project) -> Guess | None:
    """The latest head's answers for the pool as it is now; None where there are none."""
    try:
        run = followed_features(project)
        with np.load(project.folder / FOLDER / GUESS, allow_pickle=False) as arrays:
            if str(arrays["features"]) != run.artifact.hash:
                return None
            return Guess(arrays["class_ids"], arrays["confidence"])
    except (OSError, ValueError, KeyError, MissingStepError):
        return None


# --- starting --------------------------------------------------------------------------------------------------------


def watch(project: Project) -> None:
    """Say that somebody looks, and start the process that follows the labels unless it lives already."""
    folder = project.folder / FOLDER
    with files.named_disk_errors(folder):
        folder.mkdir(exist_ok=True)
        (folder / WATCHED).touch()
        (folder / LOCK).touch()
    began, child = _started.get(folder, (0.0, None))
    if child is not None and child.poll() is None:
        return
    if time.monotonic() - began < RESTART_EVERY and child is not None:
        return
    if locks.is_free(folder / LOCK):
        _started[folder] = (time.monotonic(), _start(project, folder))


def _start(project: Project, folder: Path) -> subprocess.Popen[bytes]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with open(folder / LOG, "wb") as log_file:
        return subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.worker", os.fspath(project.folder)],
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=log_file,
            env={**os.environ, **threads, **own_modules()},
            start_new_session=True,
        )


# --- following -------------------------------------------------------------------------------------------------------


class Follower:
    """Looks at the labels of one project and reports on them; one step at a time, so that it can be tested."""

    def __init__(self, project: Project, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.project, self.clock = project, clock
        self.store = open_store(project)
        self.prepared: PreparedFeatures | None = None
        self.run: FeatureRun | None = None
        self.seen_seq, self.seen_at = -1, clock()
        self.reported_seq, self.reported_labels = -1, 0
        self.rest_until = clock()

    def step(self) -> bool:
        """Look once; True where a new report was written."""
        if not self._has_features():
            return False
        seq, now = self.store.last_seq, self.clock()
        if seq != self.seen_seq:
            self.seen_seq, self.seen_at = seq, now
        if seq == self.reported_seq or now < self.rest_until or not self._is_due(now):
            return False
        self._report(seq)
        self.rest_until = self.clock() + (self.clock() - now)  # at most half of one core
        return True

    def _is_due(self, now: float) -> bool:
        """A report after every few labels, and after the last one as soon as people pause."""
        n = n_labels_now(self.store)
        few = max(5, n // 20)
        return (
            self.reported_seq < 0
            or (self.reported_labels < FEWEST <= n)
            or abs(n - self.reported_labels) >= few
            or now - self.seen_at >= PAUSE
        )

    def _has_features(self) -> bool:
        try:
            run = followed_features(self.project)
        except MissingStepError:
            return False
        if self.run is None or run.artifact.hash != self.run.artifact.hash:
            self.prepared = prepare_features(run, TrainSettings(start=FROZEN).head)
            self.run, self.reported_seq = run, -1
        return True

    def _report(self, seq: int) -> None:
        assert self.run is not None and self.prepared is not None
        began = time.perf_counter()
        pool, snapshot = self.project.pool(), self.store.snapshot()
        n_labels = n_labels_now(self.store)
        report, guess = self._measured(self.prepared, pool, snapshot, self.run.encoder)
        folder = self.project.folder / FOLDER
        if guess is not None:
            with files.open_atomic(folder / GUESS) as file:
                np.savez(
                    file,
                    class_ids=guess.class_ids.astype(np.int32),
                    confidence=guess.confidence.astype(np.float32),
                    features=np.array(self.run.artifact.hash),
                )
        seconds = round(time.perf_counter() - began, 3)
        files.write_json(
            folder / REPORT, {**report, "seq": seq, "features": self.run.artifact.hash, "seconds": seconds}
        )
        self.reported_seq, self.reported_labels = seq, n_labels

    def _measured(
        self, prepared: PreparedFeatures, pool: Pool, snapshot: LabelsSnapshot, encoder: str
    ) -> tuple[dict[str, Any], Guess | None]:
        """The report; a failure becomes one too, so that the same labels are not tried again and again."""
        try:
            return measure(prepared, pool, snapshot, encoder=encoder)
        except SemiPruneError as error:
            line = f"Accuracy cannot be estimated: {error}"
        except Exception:
            log.exception("The labels could not be measured.")
            line = f"Accuracy could not be estimated. The reason is in {FOLDER}/{LOG} of the project's folder."
        return {"state": "trouble", "line": line, "n_labels": len(snapshot)}, None


def follow(folder: Path) -> int:
    """Follow the labels of the project in ``folder`` until nobody looks any more; the whole life of the process."""
    with locks.held(folder / FOLDER / LOCK) as mine:
        if not mine:
            return 0  # another one follows already
        home = os.stat(folder).st_ino
        follower = Follower(Workspace(folder.parent).project(folder.name))
        while _is_watched(folder, home):
            follower.step()
            time.sleep(LOOK_EVERY)
    return 0


def _is_watched(folder: Path, home: int) -> bool:
    """Whether somebody has looked lately, and the project is still the same one."""
    try:
        looked = (folder / FOLDER / WATCHED).stat().st_mtime
        return (folder / PROJECT).is_file() and os.stat(folder).st_ino == home and time.time() - looked < IDLE
    except FileNotFoundError:
        return False
