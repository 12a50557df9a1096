"""A job on disk, and what may be asked of it.

<project>/runs/<id>/
  job.json         kind, settings, title, device, pins, nproc, created; never changes
  status.json      where the job is; appears whole; written only by the one who holds the lease
  lease            locked (flock) as long as somebody works on the job; its content is the note of last resort
  stop             somebody asked for a stop
  progress.jsonl   one JSON object per line: time, attempt, done, total and facts
  log.txt          everything the process said; its older part moves to log.old.txt
  result.json      what the kind returned
  work/            the kind's own: checkpoints

The lease makes everything else simple. Who holds it may write status.json; nobody else does. A job whose status says
"running" while its lease is free is dead, whatever its pid says, so no ghost can appear even where nobody supervises.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from semiprune_core import files
from semiprune_core.errors import JobError, WorkspaceError
from semiprune_core.jobs import locks, processes
from semiprune_core.jobs.states import DONE, FAILED, LOST, OVER, QUEUED, RESUMABLE, RUNNING, STATES, STOPPED
from semiprune_core.paths import shown
from semiprune_core.project import rights
from semiprune_core.project.workspace import Project, Workspace

log = logging.getLogger(__name__)

JOB, STATUS, LEASE, STOP = "job.json", "status.json", "lease", "stop"
PROGRESS, LOG, OLD_LOG, RESULT, WORK = "progress.jsonl", "log.txt", "log.old.txt", "result.json", "work"
SCHEMA = 1
ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9]{6}-[a-z][a-z0-9_]{0,40}-[0-9a-f]{4}")
FIELDS = {
    "id": str,
    "kind": str,
    "title": str,
    "settings": dict,
    "device": str,
    "pins": dict,
    "nproc": int,
    "created": str,
}
STATUS_FIELDS = {"state": str, "done": int, "total": int, "facts": dict, "message": str, "attempt": int, "launch": str}
NOTE_BYTES = 4096
LEASE_SECONDS = 20.0
"""How long to wait for a worker that has ended its job and is about to be gone: seconds, on a busy machine."""
TAIL_BYTES = 256 * 1024

_told: dict[Path, str] = {}


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """Where a job is. Times are ISO 8601 in UTC; ``speed`` is in units per second; facts are the latest of each name.

    ``message`` is a sentence for a person, ``error_code`` a stable name for machines (None unless failed or lost).
    ``heartbeat`` is the last sign of life; ``attempt`` counts from 1 and grows with every resume.
    """

    state: str = QUEUED
    done: int = 0
    total: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""
    error_code: str | None = None
    pid: int | None = None
    started: str | None = None
    finished: str | None = None
    heartbeat: str | None = None
    speed: float | None = None
    seconds_left: float | None = None
    attempt: int = 1
    stop_requested: bool = False
    process_start: float | None = None
    boot: str | None = None
    launch: str = ""

    @property
    def is_over(self) -> bool:
        return self.state in OVER

    @property
    def is_resumable(self) -> bool:
        return self.state in RESUMABLE

    @property
    def fraction(self) -> float:
        """How much is done, in [0, 1]."""
        return min(max(self.done / self.total, 0.0), 1.0) if self.total > 0 else 0.0

    @property
    def seconds(self) -> float | None:
        """How long this attempt has been running, or ran; None before it began."""
        if self.started is None:
            return None
        end = datetime.fromisoformat(self.finished) if self.finished else datetime.now(UTC)
        return max(0.0, (end - datetime.fromisoformat(self.started)).total_seconds())

    @property
    def silent_seconds(self) -> float | None:
        """How long a running job has given no sign of life; None for others."""
        if self.state != RUNNING or self.heartbeat is None:
            return None
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(self.heartbeat)).total_seconds())

    def ended(self, state: str, message: str, error_code: str | None = None, *, at: str | None = None) -> JobStatus:
        """The same status after the job has come to an end."""
        return dataclasses.replace(
            self,
            state=state,
            message=message,
            error_code=error_code,
            finished=at or now(),
            speed=None,
            seconds_left=None,
        )

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **dataclasses.asdict(self)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> JobStatus:
        """Read what is known of ``values``; what a later version added is left out."""
        fields = {field.name for field in dataclasses.fields(cls)}
        status = cls(**{name: value for name, value in values.items() if name in fields})
        if status.state not in STATES:
            raise WorkspaceError(f"A job's state is one of {', '.join(STATES)}; got {status.state!r}.")
        for moment in (status.started, status.finished, status.heartbeat):
            datetime.fromisoformat(moment or now())
        return status


@dataclass(frozen=True, eq=False)
class Job:
    """A handle on one run folder. Cheap to make; asks the disk each time, so two processes see the same."""

    folder: Path
    spec: Mapping[str, Any]

    @classmethod
    def open(cls, folder: str | Path) -> Job:
        folder = Path(folder)
        if not (folder / JOB).is_file():
            raise JobError(f"There is no job in {folder}.", code="NO_JOB")
        spec = files.read_object(folder / JOB, FIELDS)
        if not files.seal_holds(spec):
            raise WorkspaceError(f"{folder / JOB} is damaged: it was changed after it was written.")
        if spec["id"] != folder.name:
            raise WorkspaceError(f"{folder / JOB} is damaged: it belongs to the job '{shown(spec['id'])}'.")
        return cls(folder, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and other.folder == self.folder

    def __hash__(self) -> int:
        return hash(self.folder)

    @property
    def id(self) -> str:
        return str(self.spec["id"])

    @property
    def kind(self) -> str:
        return str(self.spec["kind"])

    @property
    def title(self) -> str:
        return str(self.spec["title"])

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.spec["settings"]

    @property
    def pins(self) -> Mapping[str, str]:
        """What the job was started on, by content hash: the labels' snapshot, the pool."""
        return self.spec["pins"]

    @property
    def device(self) -> str:
        return str(self.spec["device"])

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices the job occupies; several are written with commas, as in "cuda:0,cuda:1"."""
        return tuple(sorted(set(self.device.split(","))))

    @property
    def nproc(self) -> int:
        return int(self.spec["nproc"])

    @property
    def created(self) -> str:
        return str(self.spec["created"])

    @property
    def project_name(self) -> str:
        return self.folder.parent.parent.name

    @property
    def project(self) -> Project:
        return self.workspace.project(self.project_name)

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.folder.parent.parent.parent)

    @property
    def work_folder(self) -> Path:
        return self.folder / WORK

    # Reading

    def status(self) -> JobStatus:
        """Where the job is, truthfully: one that says "running" but has no process is shown as what became of it."""
        status = self.stored_status()
        if status.state == RUNNING and self._lease_is_free():
            status = self.stored_status()  # it may have ended well between the two looks
            if status.state == RUNNING:
                status = self.epitaph(status)
        if not status.is_over and (self.folder / STOP).exists():
            status = dataclasses.replace(status, stop_requested=True)
        return status

    def stored_status(self) -> JobStatus:
        """What status.json says, whether or not that is still true."""
        try:
            values = files.read_object(self.folder / STATUS, STATUS_FIELDS)
            if not files.seal_holds(values):
                raise WorkspaceError(f"{STATUS} was changed after it was written.")
            return JobStatus.from_json(values)
        except FileNotFoundError:
            raise JobError(f"The job {self.id} is gone: its folder was deleted.", code="NO_JOB") from None
        except (WorkspaceError, TypeError, ValueError) as error:
            message = f"The job's status cannot be read: {error}"
            return JobStatus(state=FAILED, message=message, error_code="DAMAGED")

    def _lease_is_free(self) -> bool:
        try:
            return locks.is_free(self.folder / LEASE)
        except FileNotFoundError:
            return True

    def epitaph(self, status: JobStatus) -> JobStatus:
        """What became of a job whose process is gone: its last note if it left one, else "lost"."""
        note = read_note(self.folder)
        notes = [note] if note.get("launch") == status.launch else rank_failures(self.folder, status.launch)
        if notes:
            return status.ended(notes[0]["state"], notes[0]["message"], notes[0]["error_code"], at=notes[0]["finished"])
        for line in _parsed(_tail(self.folder / PROGRESS)[-2:]):  # told more often than the status; one may be torn
            if line.get("attempt") == status.attempt and {"done", "total"} <= line.keys():
                status = dataclasses.replace(status, done=line["done"], total=line["total"])
        where = f"at {status.done}/{status.total}" if status.total else "before its first step"
        return status.ended(
            LOST,
            f"Its process ended unexpectedly (killed, out of memory, or the machine went down), {where}. "
            "Resume it to continue from its last checkpoint.",
            "LOST",
            at=status.heartbeat or status.started,
        )

    def progress(self, after: int = 0) -> list[dict[str, Any]]:
        """The progress lines from number ``after`` on (pass the count you have, get what is new)."""
        try:
            text = (self.folder / PROGRESS).read_text("ascii", errors="replace")
        except FileNotFoundError:
            return []
        return _parsed(text.split("\n")[:-1][after:])  # what follows the last line's end is still being written

    def log_tail(self, n_lines: int = 50) -> str:
        """The last lines of the log, without loading more than a part of it."""
        lines: list[str] = []
        for name in (LOG, OLD_LOG):
            if len(lines) < n_lines:
                lines = _tail(self.folder / name) + lines
        return "\n".join(lines[-n_lines:] if n_lines > 0 else [])

    def result(self) -> dict[str, Any] | None:
        """What the kind returned; raises with the job's own message where it did not end well."""
        status = self.status()
        if status.state == DONE:
            path = self.folder / RESULT
            return files.read_json(path) if path.exists() else None
        if status.state in (FAILED, LOST):
            raise JobError(status.message, code=status.error_code)
        raise JobError(f"{self.title} ({self.id}) is {status.state}; it has no result yet.", code="JOB_NOT_DONE")

    # Changing

    @contextlib.contextmanager
    def lease(self, *, seconds: float = 0.0) -> Iterator[bool]:
        """Hold the job for the block; yields False where somebody else does."""
        if not self.folder.is_dir():
            raise JobError(f"The job {self.id} is gone: its folder was deleted.", code="NO_JOB")
        with files.named_disk_errors(self.folder), locks.held(self.folder / LEASE, seconds=seconds) as mine:
            yield mine

    def write_status(self, status: JobStatus) -> None:
        """For holders of the lease only."""
        files.write_json(self.folder / STATUS, files.sealed(status.to_json()))

    def stop(self) -> JobStatus:
        """Ask for a stop: a queued job is stopped at once, a running one between two batches, an ended one stays."""
        rights.check("run", self.project_name)
        if self.status().is_over:
            return self.status()
        with files.named_disk_errors(self.folder):
            (self.folder / STOP).touch()
        rights.record("stopped a job", self.project_name, self.id)
        with self.lease() as mine:  # not mine: a worker has it, or is just being started, and will see the request
            if mine:
                status = self.stored_status()
                if status.state == QUEUED:
                    self.write_status(status.ended(STOPPED, "Stopped before it began."))
        return self.status()

    def resume(self) -> JobStatus:
        """Put a stopped, failed or lost job back into the queue; it goes on from its last checkpoint."""
        rights.check("run", self.project_name)
        status = self.status()
        if status.state not in RESUMABLE:
            raise JobError(
                f"{self.title} ({self.id}) is {status.state} and cannot be resumed; "
                f"only {', '.join(sorted(RESUMABLE))} jobs can.",
                code="JOB_NOT_RESUMABLE",
            )
        with self.lease(seconds=LEASE_SECONDS) as mine:
            status = self.stored_status()
            if status.state == RUNNING and mine:
                processes.end_family(status.launch, self.folder)
                status = self.epitaph(status)
            if not mine or status.state not in RESUMABLE:
                raise JobError(
                    f"{self.title} ({self.id}) was taken up by somebody else meanwhile; look again.", code="JOB_BUSY"
                )
            (self.folder / STOP).unlink(missing_ok=True)
            self.write_status(
                JobStatus(
                    done=status.done, total=status.total, facts=status.facts, attempt=status.attempt + 1, message=""
                )
            )
        rights.record("resumed a job", self.project_name, self.id)
        return self.status()

    retry = resume

    def kill(self) -> JobStatus:
        """End a job that does not honour a stop. Only its own processes are touched; it becomes lost, resumable."""
        rights.check("run", self.project_name)
        status = self.stored_status()
        if status.state == RUNNING and status.launch:
            processes.end_family(status.launch, self.folder)
            with self.lease(seconds=LEASE_SECONDS) as mine:
                again = self.stored_status()
                if mine and again.state == RUNNING and again.launch == status.launch:
                    self.write_status(self.epitaph(again))
        return self.status()

    def delete(self) -> None:
        """Remove the run folder of a job that is not running."""
        rights.check("run", self.project_name)
        with self.lease(seconds=0.0 if self.status().state == RUNNING else LEASE_SECONDS) as mine:
            if not mine:
                raise JobError(f"{self.title} ({self.id}) is running. Stop it first.", code="JOB_RUNNING")
            processes.end_family(self.stored_status().launch, self.folder)
            aside = self.folder.with_name(f".{self.id}.deleted")
            os.replace(self.folder, aside)  # nobody sees half a job
        shutil.rmtree(aside)


def create(
    project: Project, spec: Mapping[str, Any], status: JobStatus, own: Mapping[str, bytes] | None = None
) -> tuple[Job, int]:
    """Make the folder of a new job; it appears whole, and its lease is already held through the returned descriptor.

    ``own`` files, by name, lie in its own folder from the beginning.
    """
    moment = datetime.now(UTC)
    job_id = f"{moment:%Y%m%d-%H%M%S-%f}-{spec['kind']}-{secrets.token_hex(2)}"
    if not ID.fullmatch(job_id):
        raise ValueError(f"A job kind is written in lower-case letters, digits and _; got {spec['kind']!r}.")
    folder = project.runs_folder / job_id
    aside = project.runs_folder / f".{job_id}.part"
    with files.named_disk_errors(folder):
        aside.mkdir(parents=True)
        lease = None
        try:
            (aside / WORK).mkdir()
            for name, data in (own or {}).items():
                files.write_bytes(aside / WORK / name, data)
            created = moment.isoformat(timespec="microseconds")
            spec = {"schema": SCHEMA, "id": job_id, **spec, "created": created}
            files.write_json(aside / JOB, files.sealed(spec))
            (aside / LEASE).write_bytes(b"{}".ljust(NOTE_BYTES))
            locks.check_locks_work(aside / LEASE)
            files.write_json(aside / STATUS, files.sealed(status.to_json()))
            lease = locks.try_lock(aside / LEASE)
            assert lease is not None  # nobody else knows this folder
            os.replace(aside, folder)
            files.sync_folder(folder.parent)
        except BaseException:
            if lease is not None:
                locks.release(lease)
            shutil.rmtree(aside, ignore_errors=True)
            raise
    return Job.open(folder), lease


def list_jobs(where: Project | Workspace, kind: str | None = None) -> list[Job]:
    """All jobs of a project or a workspace, newest first; those that are damaged are left out and logged."""
    opened = []
    for folder in _run_folders(where):
        if kind is None or f"-{kind}-" in folder.name:
            try:
                opened.append(Job.open(folder))
            except (WorkspaceError, JobError, OSError) as error:
                _tell_once(folder, error)
    return sorted((job for job in opened if kind in (None, job.kind)), key=lambda job: job.id, reverse=True)


def _tell_once(folder: Path, error: Exception) -> None:
    """Pages list jobs all the time; the log needs to know once."""
    if _told.get(folder) != str(error):
        _told[folder] = str(error)
        log.warning("A job was left out of the list: %s", error)


def damaged_jobs(where: Project | Workspace) -> dict[Path, str]:
    """The folders of the jobs that cannot be read, and why not."""
    reasons = {}
    for folder in _run_folders(where):
        try:
            Job.open(folder)
        except (WorkspaceError, JobError, OSError) as error:
            reasons[folder] = str(error)
    return reasons


def remove_damaged_job(folder: Path, *, archive: bool) -> None:
    """Take a job that cannot be read out of the list: moved aside under a hidden name, or deleted."""
    rights.check("run", folder.parents[1].name)
    with locks.held(folder / LEASE, seconds=0.0) as mine:
        if not mine:
            raise JobError(f"The job {folder.name} is running. Wait until it has ended.", code="JOB_RUNNING")
        aside = folder.with_name(f".{folder.name}.{'damaged' if archive else 'deleted'}")
        os.replace(folder, aside)
    if not archive:
        shutil.rmtree(aside)


def _run_folders(where: Project | Workspace) -> list[Path]:
    """The folders of all jobs that whoever acts may see; of an unfinished copy or an archived one the name begins
    with a dot."""
    root, pattern = (where.folder, "runs/*") if isinstance(where, Project) else (where.root, "*/runs/*")
    return [folder for folder in root.glob(f"{pattern}/") if ID.fullmatch(folder.name) and _is_shown(folder)]


def _is_shown(folder: Path) -> bool:
    return rights.allows("open", folder.parents[1].name)


def find_job(workspace: Workspace, job_id: str) -> Job:
    """The job with this id, in whichever project it is."""
    if ID.fullmatch(job_id):
        for path in workspace.root.glob(f"*/runs/{job_id}/{JOB}"):
            if _is_shown(path.parent):
                return Job.open(path.parent)
    raise JobError(f"There is no job '{shown(job_id)}'. `semiprune jobs list` shows those there are.", code="NO_JOB")


def write_note(handle: int, status: JobStatus) -> None:
    """Leave the end of a job in its lease file, in place: needs no free block and no writable folder."""
    note = {
        "launch": status.launch,
        "state": status.state,
        "message": status.message[:1500],
        "error_code": status.error_code,
        "finished": status.finished,
    }
    os.pwrite(handle, json.dumps(note, ensure_ascii=True).encode("ascii").ljust(NOTE_BYTES)[:NOTE_BYTES], 0)
    os.fsync(handle)


def read_note(folder: Path) -> dict[str, Any]:
    try:
        note = json.loads((folder / LEASE).read_text("ascii"))
    except (FileNotFoundError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def rank_failures(folder: Path, launch: str) -> list[dict[str, Any]]:
    """The ends of those processes of a distributed job that failed, beside rank 0."""
    ends = []
    for path in sorted(folder.glob("rank-*.json")):
        with contextlib.suppress(WorkspaceError):
            ends.append(files.read_object(path, {"launch": str, "state": str, "message": str}))
    return [end for end in ends if end["launch"] == launch]


def _parsed(lines: list[str]) -> list[dict[str, Any]]:
    """The progress lines that can be read; a power cut may leave one that cannot."""
    reports = []
    for line in lines:
        with contextlib.suppress(ValueError):
            report = json.loads(line)
            if isinstance(report, dict):
                reports.append(report)
    return reports


def _tail(path: Path) -> list[str]:
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            lines = file.read().decode("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    return lines[1:] if size > TAIL_BYTES else lines
