"""What a job's function is given, and how its run is written down from the first line to the last."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import errno
import json
import logging
import math
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from semiprune_core import files, streams
from semiprune_core.errors import ConflictError, OutOfMemoryError, SemiPruneError
from semiprune_core.jobs import job as jobs
from semiprune_core.jobs import processes
from semiprune_core.jobs.job import Job, JobStatus
from semiprune_core.jobs.kinds import JOB_KINDS, load_kind
from semiprune_core.jobs.states import DONE, FAILED, RUNNING, STOPPED
from semiprune_core.progress import Stopped
from semiprune_core.project.artifacts import MANIFEST, Artifact
from semiprune_core.project.workspace import Project
from semiprune_core.tracking import Followers, TrackedRun, follow

LINE_SECONDS = 0.2  # at most five progress lines a second ...
LINES_PER_PACE = 2000  # ... and half as many after each so many, so that a run of days stays a few megabytes
LINE_BYTES = 1 << 20  # longer than any line
STATUS_SECONDS = 0.5
HEARTBEAT_SECONDS = 5.0
SPEED_SECONDS = 30.0  # speed is measured over the last so many seconds
LOG_BYTES = 4 << 20
LOG_TAIL_BYTES = 1 << 20
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
STREAMS = "streams.json"
"""In a job's own folder: the rule for random numbers under which it was filled."""
OTHER_STREAMS = (
    "This job was begun by an older version, which drew random numbers by another rule. It begins anew, so that one "
    "result does not stand on both."
)
STAMP = frozenset(("time", "attempt", "done", "total"))
"""What every progress line says beside its facts."""
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)


class Speed:
    """Units per second over the last ``SPEED_SECONDS``, and at least the last few reports where they are rarer."""

    def __init__(self) -> None:
        self._points: collections.deque[tuple[float, int]] = collections.deque()
        self._total: int | None = None

    def add(self, seconds: float, done: int, total: int) -> None:
        if total != self._total or (self._points and done < self._points[-1][1]):  # a new phase counts afresh
            self._points.clear()
            self._total = total
        if len(self._points) >= 2 and seconds - self._points[-2][0] < LINE_SECONDS:
            self._points[-1] = (seconds, done)
        else:
            self._points.append((seconds, done))
        while len(self._points) > 3 and seconds - self._points[0][0] > SPEED_SECONDS:
            self._points.popleft()

    def read(self) -> tuple[float | None, float | None]:
        """(units per second, seconds left); None where nothing is known yet."""
        if len(self._points) < 2 or self._total is None:
            return None, None
        (first, begun), (last, done) = self._points[0], self._points[-1]
        if last <= first or done <= begun:
            return None, None
        speed = (done - begun) / (last - first)
        return speed, max(0.0, (self._total - done) / speed)


class JobContext:
    """A job from the inside. It is a :class:`semiprune_core.progress.Progress`.

    ``folder`` is the kind's own place, kept over a stop and a resume. With several processes every rank has a context:
    rank 0 writes, the others only listen. Ranks see a stop request at different batches, so a distributed loop
    must agree on :meth:`should_stop` (rank 0's answer broadcast) before it acts on it.
    """

    def __init__(
        self,
        job: Job,
        *,
        launch: str = "",
        rank: int = 0,
        world_size: int = 1,
        stop: Callable[[], bool] = lambda: False,
        watch: Callable[[JobStatus], None] | None = None,
    ) -> None:
        self.job = job
        self.settings: Mapping[str, Any] = job.settings
        self.pins: Mapping[str, str] = job.pins
        self.device = job.device
        self.folder: Path = job.work_folder
        self.rank = rank
        self.world_size = world_size
        self.log = logging.getLogger(f"semiprune_core.job.{job.kind}")
        name = processes.this_process()
        self._status = dataclasses.replace(
            job.stored_status(), launch=launch, pid=name.pid, process_start=name.start, boot=name.boot
        )
        self._note = os.open(job.folder / jobs.LEASE, os.O_RDWR | os.O_CLOEXEC)
        self._stop = stop
        self._watch = watch
        self._followers = Followers()
        self._stop_file = os.fspath(job.folder / jobs.STOP)
        self._speed = Speed()
        self._pending: dict[str, Any] | None = None
        self._n_lines = 0
        self._next_line = self._next_status = 0.0

    @cached_property
    def project(self) -> Project:
        return self.job.project

    @property
    def attempt(self) -> int:
        return self._status.attempt

    def finished(self, kind: str, *, seed: int | None = None) -> Artifact | None:
        """The artifact of ``kind`` (and ``seed``) that an earlier attempt of this job completed, where one did."""
        for artifact in self.project.artifacts(kind):
            is_mine = job_behind(artifact) == self.job.id
            is_whole = not artifact.facts.get("stopped") and not artifact.facts.get("provisional")
            if is_mine and is_whole and (seed is None or artifact.manifest["seed"] == seed):
                return artifact
        return None

    def drop_older_streams(self, *, keep: Collection[str] = ()) -> bool:
        """Whether ``folder`` was filled under another rule for random numbers; it is emptied then, but for ``keep``.

        A kind that draws calls this before it reads what an earlier attempt left: half of a result drawn by one rule
        and half by another would be neither.
        """
        if self.rank:
            return False  # processes meet after the first one was here
        path = self.folder / STREAMS
        is_same = path.is_file() and files.read_json(path) == {"rule": streams.RULE}
        older = [] if is_same else [entry for entry in self.folder.iterdir() if entry.name not in {*keep, STREAMS}]
        for entry in older:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        files.write_json(path, {"rule": streams.RULE})
        if older:
            self.log.warning(OTHER_STREAMS)
        return bool(older)

    def check_pin(self, role: str, artifact: Artifact) -> None:
        """Refuse an input that is not the one this job was queued with."""
        if artifact.hash != self.pins[role]:
            raise ConflictError(
                f"{artifact.id} has changed since this job was queued. Start a new one.", code="PINS_CHANGED"
            )

    def report(self, done: int, total: int, /, **facts: Any) -> None:
        """``done`` of ``total`` units are finished. Cheap; a full disk or a read-only folder is raised from here."""
        if self.rank:
            return
        moment = time.monotonic()
        done, total = int(done), int(total)
        facts = {name: plain(value) for name, value in facts.items()}
        self._speed.add(moment, done, total)
        self._status = dataclasses.replace(self._status, done=done, total=total, facts={**self._status.facts, **facts})
        earlier = self._pending or {}  # a fact that was told between two lines goes into the next one
        stamp = {"time": round(time.time(), 3), "attempt": self.attempt, "done": done, "total": total}
        self._pending = {**earlier, **facts, **stamp}
        if moment >= self._next_line:
            self._write_line(moment)
        if moment >= self._next_status:
            self._write_status(moment)
        if self._watch is not None:
            self._watch(self._status)

    def should_stop(self) -> bool:
        """Whether somebody asked for a stop: by the page, the command line or SIGTERM."""
        if not self.rank and time.monotonic() >= self._next_status + HEARTBEAT_SECONDS:
            self._write_status(time.monotonic())
        return self._stop() or os.path.exists(self._stop_file)

    def check_stop(self) -> None:
        """Raise :class:`Stopped` where a stop was asked for: for work that has nothing to save."""
        if self.should_stop():
            raise Stopped

    def follow(self) -> None:
        """Let the trackers of the workspace follow from now on, where this kind of job is worth it."""
        if not self.rank and JOB_KINDS.facts(self.job.kind).get("tracked"):
            job = self.job
            run = TrackedRun(job.project_name, self.project.folder, job.id, job.title, job.kind, job.settings)
            self._followers = follow(self.project, run, self.log)

    def let_go(self, status: JobStatus) -> None:
        """Tell the trackers how the run ended and what it made, and wait a little until they have taken it."""
        if not self._followers:
            return
        with contextlib.suppress(OSError, SemiPruneError):  # what cannot be read any more, nobody is told
            self._followers.tell(status.done, numbers_of(self.job.result() or {}))
            for artifact in self.project.artifacts() if status.state == DONE else ():
                if job_behind(artifact) == self.job.id:
                    self._followers.file(artifact.path(MANIFEST))
        self._followers.end(status.state)
        self._followers.wait()

    def _tell_followers(self, line: Mapping[str, Any]) -> None:
        self._followers.tell(line.get("done", 0), {name: line[name] for name in line.keys() - STAMP})

    def _write_line(self, moment: float) -> None:
        self._tell_followers(self._pending or {})
        line = json.dumps(self._pending) + "\n"  # ASCII: no character of a fact can end the line
        path = self.job.folder / jobs.PROGRESS
        with files.named_disk_errors(path), open(path, "ab") as file:
            if not self._n_lines:
                _drop_torn_line(path)  # the last attempt may have been killed in the middle of one
            file.write(line.encode("ascii"))
        self._pending = None
        self._n_lines += 1
        self._next_line = moment + LINE_SECONDS * 2 ** (self._n_lines // LINES_PER_PACE)

    def _write_status(self, moment: float) -> None:
        speed, seconds_left = self._speed.read()
        self._status = dataclasses.replace(self._status, heartbeat=jobs.now(), speed=speed, seconds_left=seconds_left)
        self.job.write_status(self._status)
        self._next_status = moment + STATUS_SECONDS
        shorten_log(self.job.folder)

    def begin(self) -> None:
        """Say that the work is under way."""
        if not self.rank:
            self._status = dataclasses.replace(
                self._status, state=RUNNING, message="", error_code=None, started=jobs.now(), finished=None
            )
            self._write_status(time.monotonic())
            self._next_status = 0.0  # the first report is shown at once

    def finish(self, result: Mapping[str, Any] | None) -> None:
        if not self.rank and result is not None:
            files.write_json(self.job.folder / jobs.RESULT, plain(dict(result)))

    def end(self, state: str, message: str = "", error_code: str | None = None) -> JobStatus:
        """Write the last line and the last status; where the disk refuses, leave a note in the lease."""
        status = dataclasses.replace(self._status, heartbeat=jobs.now()).ended(state, message, error_code)
        try:
            if self.rank:
                if state == FAILED:
                    files.write_json(self.job.folder / f"rank-{self.rank}.json", status.to_json())
                return status
            if self._pending:
                with contextlib.suppress(OSError, SemiPruneError):  # a point of a curve is not worth the job's end
                    self._write_line(time.monotonic())
            if state != DONE and (failures := jobs.rank_failures(self.job.folder, status.launch)):
                status = status.ended(FAILED, failures[0]["message"], failures[0]["error_code"])
            try:
                self.job.write_status(status)
            except (OSError, SemiPruneError) as error:
                self.log.error("The last status could not be written: %s", error)
                jobs.write_note(self._note, status)
            return status
        finally:
            os.close(self._note)


def job_behind(artifact: Artifact) -> str | None:
    """The id of the job that made an artifact, where one did."""
    return artifact.facts.get("job") or artifact.facts.get("run")


def numbers_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """What of a job's result is a number, or an estimate with its ``value``.

    >>> numbers_of({"n_images": 60, "accuracy": {"value": 0.9, "low": 0.8}, "start": "frozen"})
    {'n_images': 60, 'accuracy': 0.9}
    """
    values = {name: item.get("value") if isinstance(item, Mapping) else item for name, item in result.items()}
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


def run_job(context: JobContext) -> JobStatus:
    """Run a job's function to its end, whatever that is, and write it down. Returns the last status."""
    status = _run(context)
    context.let_go(status)
    return status


def _run(context: JobContext) -> JobStatus:
    try:
        context.begin()
        context.check_stop()
        function = load_kind(context.job.kind)
        context.follow()
        context.finish(function(context))
    except Stopped:
        context.log.info("Stopped on request.")
        return context.end(STOPPED, "Stopped on request. Resume it to continue.")
    except KeyboardInterrupt:
        context.end(STOPPED, "Interrupted from the keyboard. Resume it to continue from its last checkpoint.")
        raise
    except BaseException as error:  # noqa: BLE001 - a job ends with a named cause, whatever was raised
        named = name_error(error, context.job.folder)
        context.log.error("The job failed.", exc_info=error)
        return context.end(FAILED, str(named), named.code)
    return context.end(DONE)


def name_error(error: BaseException, folder: Path) -> SemiPruneError:
    """The sentence and the code under which an error is shown."""
    if isinstance(error, SemiPruneError):
        return error
    text = str(error)
    is_torch_oom = type(error).__name__ == "OutOfMemoryError" or (
        isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text)
    )
    if isinstance(error, MemoryError) or is_torch_oom or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return OutOfMemoryError(
            "The job ran out of memory. Choose a smaller batch, smaller images or a smaller network, "
            "or close other programs, then retry it."
        )
    if isinstance(error, OSError) and error.errno in DISK_ERRORS:
        try:
            with files.named_disk_errors(Path(os.fsdecode(error.filename)) if error.filename else folder):
                raise error
        except SemiPruneError as named:
            return named
    return SemiPruneError(f"An unexpected {type(error).__name__} ended the job; see its log.", code="UNEXPECTED")


def plain(value: Any) -> Any:
    """``value`` as strict JSON can hold it: numpy scalars and arrays unwrapped, NaN and infinity as null."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return os.fspath(value) if isinstance(value, Path) else value


def shorten_log(folder: Path) -> None:
    """Keep log.txt small while others write to it: its end moves to log.old.txt, itself is emptied in place."""
    path = folder / jobs.LOG
    with contextlib.suppress(FileNotFoundError):
        size = path.stat().st_size
        if size > LOG_BYTES:
            with open(path, "r+b") as file:
                file.seek(size - LOG_TAIL_BYTES)
                files.write_bytes(folder / jobs.OLD_LOG, file.read())
                file.truncate(0)


def _drop_torn_line(path: Path) -> None:
    """Cut a file of lines after its last line's end."""
    with open(path, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        start = max(0, size - LINE_BYTES)
        file.seek(start)
        end = file.read().rfind(b"\n") + 1
        if start + end < size:
            file.truncate(start + end)


@contextlib.contextmanager
def log_to_folder(folder: Path) -> Iterator[None]:
    """Send what the core says into the job's log for the block (for a job that runs inside another process)."""
    core = logging.getLogger("semiprune_core")
    handler = logging.FileHandler(folder / jobs.LOG, encoding="utf-8")
    handler.setFormatter(logging.Formatter(LOG_FORMAT))
    level = core.level
    core.addHandler(handler)
    if not core.isEnabledFor(logging.INFO):
        core.setLevel(logging.INFO)
    try:
        yield
    finally:
        core.setLevel(level)
        core.removeHandler(handler)
        handler.close()
