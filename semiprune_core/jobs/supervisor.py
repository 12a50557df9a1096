"""The queue: who is dead, who may start, one at a time on each device.

There is no server and no process that must live: any process may supervise at any time, several at once. The locks
decide. A device is a lock file in ``<workspace>/.locks`` that the running job holds beside its lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from semiprune_core import files
from semiprune_core.checks import check_range
from semiprune_core.errors import InvalidSettingError, JobError
from semiprune_core.jobs import job as jobs
from semiprune_core.jobs import launch, locks, processes
from semiprune_core.jobs.context import JobContext, log_to_folder, plain, run_job
from semiprune_core.jobs.job import Job, JobStatus
from semiprune_core.jobs.kinds import home_of
from semiprune_core.jobs.states import DONE, FAILED, QUEUED, RUNNING, STOPPED
from semiprune_core.paths import shown
from semiprune_core.progress import Progress, Stopped
from semiprune_core.project import rights
from semiprune_core.project.workspace import Project, Workspace

log = logging.getLogger(__name__)

LOCKS = ".locks"
DEVICE = re.compile(r"[a-z][a-z0-9_-]*(:[0-9]+)?(,[a-z][a-z0-9_-]*(:[0-9]+)?)*")
WAIT_SECONDS = 0.05

_complaints: dict[Path, str] = {}
_over: dict[Path, tuple[int, int, int]] = {}  # the status files of ended jobs, as they were when last read


def submit(
    project: Project,
    kind: str,
    settings: Mapping[str, Any],
    *,
    title: str | None = None,
    device: str | None = None,
    pins: Mapping[str, str] | None = None,
    nproc: int = 1,
    immediate: bool = False,
    own: Mapping[str, bytes] | None = None,
) -> Job:
    """Put a job into the queue; the next :func:`supervise` starts it when its device is free.

    ``immediate`` runs it here and now, in this process, with the same files; how it ended is in its status.
    Several devices are written with commas ("cuda:0,cuda:1") and are all taken at once. ``own`` files, by name, are put
    into the job's own folder.
    """
    rights.check("run", project.name)
    home = home_of(kind)
    device = device or home.device
    if not DEVICE.fullmatch(device):
        raise InvalidSettingError(f"device must be a name such as cpu, io or cuda:0; got '{shown(device)}'.")
    check_range("nproc", nproc, low=1)
    if immediate and nproc > 1:
        raise InvalidSettingError(f"An immediate job runs in this one process; nproc must be 1, got {nproc}.")
    spec = {
        "kind": kind,
        "title": title or home.title,
        "settings": _json_settings(settings),
        "device": device,
        "pins": dict(pins or {}),
        "nproc": nproc,
    }
    if immediate:
        return _run_here(project, spec, own)
    job, lease = jobs.create(project, spec, JobStatus(state=QUEUED), own)
    locks.release(lease)
    rights.record("started a job", project.name, f"{kind}: {job.title} ({job.id})")
    return job


def _json_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return json.loads(json.dumps(plain(settings), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidSettingError(f"A job's settings must be plain JSON values: {error}.") from error


def _run_here(project: Project, spec: Mapping[str, Any], own: Mapping[str, bytes] | None) -> Job:
    recognise_dead(project.workspace)
    with contextlib.ExitStack() as stack:
        devices = tuple(sorted(set(spec["device"].split(","))))
        handles = _take_devices(project.workspace, devices)
        if handles is None:
            raise JobError(
                f"The device {spec['device']} is busy with another job. Wait for it, stop it, or queue this one.",
                code="DEVICE_BUSY",
            )
        for handle in handles:
            stack.callback(locks.release, handle)
        status = JobStatus(state=RUNNING, started=jobs.now(), heartbeat=jobs.now())
        job, lease = jobs.create(project, spec, status, own)
        stack.callback(locks.release, lease)
        with log_to_folder(job.folder):
            run_job(JobContext(job))
    return job


@rights.acted_by_the_app()
def supervise(workspace: Workspace) -> None:
    """One pass: recognise dead jobs, then start what is queued, in order of creation, one running job per device.

    Safe to call from many processes at once; a job is started by whoever gets its device's lock first.
    """
    launch.reap()
    queued = recognise_dead(workspace)
    taken: set[str] = set()
    for job in sorted(queued, key=lambda job: job.id):
        if taken.isdisjoint(job.devices):
            with _logged(job):
                start_if_free(workspace, job)
        taken.update(job.devices)  # whoever comes later waits behind this one


@rights.acted_by_the_app()
def recognise_dead(workspace: Workspace) -> list[Job]:
    """Write down what became of jobs whose process is gone, end what they left running; returns the queued ones."""
    queued = []
    for job in unfinished(workspace):
        with _logged(job):
            if job.stored_status().state == QUEUED:
                queued.append(job)
            else:
                _bury_if_dead(job)
    return queued


def unfinished(workspace: Workspace) -> Iterator[Job]:
    """The jobs that are not over. Of an old one only its file's date and inode are looked at: thousands are cheap."""
    for path in workspace.root.glob(f"*/runs/*/{jobs.STATUS}"):
        try:
            stat = path.stat()
            mark = (stat.st_mtime_ns, stat.st_ino, stat.st_size)  # a clock tick alone is too coarse
            if not jobs.ID.fullmatch(path.parent.name) or _over.get(path) == mark:
                continue
            job = Job.open(path.parent)
            if job.stored_status().is_over:
                _over[path] = mark
            else:
                yield job
        except Exception as error:  # noqa: BLE001 - told in the log; a damaged job is its own trouble, not the others'
            _complain(path.parent, error)


def _bury_if_dead(job: Job) -> None:
    with job.lease() as mine:
        status = job.stored_status()
        if not mine or status.state != RUNNING:
            return  # somebody works on it
        n_left = processes.end_family(status.launch, job.folder)  # data loaders and ranks that outlived their parent
        if n_left:
            log.warning("Ended %d processes that the dead job %s had left behind.", n_left, job.id)
        job.write_status(job.epitaph(status))


def start_if_free(workspace: Workspace, job: Job) -> None:
    """Start a queued job if all its devices are free; one that is no longer queued is left alone."""
    handles = _take_devices(workspace, job.devices)
    if handles is None:
        return
    with contextlib.ExitStack() as stack:
        for handle in handles:
            stack.callback(locks.release, handle)  # only our copies: the worker keeps its own
        word = secrets.token_hex(16)
        lease = _begin(job, word, stack)
        if lease is None:
            return
        try:
            launch.start(job, word, (lease, *handles))
        except OSError as error:
            failed = job.stored_status().ended(FAILED, f"Its process could not be started: {error}.", "NOT_STARTED")
            job.write_status(failed)


def _begin(job: Job, word: str, stack: contextlib.ExitStack) -> int | None:
    """The lease of a queued job that now counts as running, held until ``stack`` ends; None where it is not queued."""
    lease = locks.try_lock(job.folder / jobs.LEASE)
    if lease is None:
        return None
    stack.callback(locks.release, lease)
    status = job.stored_status()
    if status.state != QUEUED:
        return None  # started, and perhaps ended, since the list was made
    if (job.folder / jobs.STOP).exists():
        job.write_status(status.ended(STOPPED, "Stopped before it began."))
        return None
    moment = jobs.now()
    status = dataclasses.replace(
        status, state=RUNNING, message="Starting.", started=moment, heartbeat=moment, launch=word
    )
    job.write_status(status)  # before the start: a worker that dies at birth is lost, not started for ever
    return lease


def follow_here(job: Job, progress: Progress, *, tell: Callable[[JobStatus], None]) -> JobStatus:
    """As :func:`follow`, but a queued job whose devices are free runs in this process: what is loaded stays loaded.

    If this process dies the job is lost, like any other, and can be resumed.
    """
    with contextlib.ExitStack() as stack:
        handles = _take_devices(job.workspace, job.devices) if job.nproc == 1 else None
        for handle in handles or ():
            stack.callback(locks.release, handle)
        if handles is not None and _begin(job, "", stack) is not None:
            stack.enter_context(log_to_folder(job.folder))
            run_job(JobContext(job, stop=progress.should_stop, watch=tell))
    return follow(job, progress, tell=tell)


def _take_devices(workspace: Workspace, devices: tuple[str, ...]) -> tuple[int, ...] | None:
    """Locks on all ``devices``, or None (and none held) where one of them is taken."""
    folder = workspace.root / LOCKS
    handles: list[int] = []
    with files.named_disk_errors(folder), contextlib.ExitStack() as stack:
        folder.mkdir(exist_ok=True)
        for device in devices:
            handle = locks.try_lock(folder / f"{device}.lock")
            if handle is None:
                return None
            stack.callback(locks.release, handle)
            handles.append(handle)
        stack.pop_all()  # all are ours: keep them
    return tuple(handles)


@contextlib.contextmanager
def _logged(job: Job) -> Iterator[None]:
    """One job that cannot be looked after must not keep the others waiting; the same complaint is made once."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - as above
        _complain(job.folder, error)


def _complain(folder: Path, error: Exception) -> None:
    if folder.exists() and _complaints.get(folder) != str(error):
        _complaints[folder] = str(error)
        log.warning("The job %s could not be looked after: %s", folder.name, error)


def wait(
    job: Job,
    timeout: float | None = None,
    *,
    watch: Callable[[JobStatus], None] | None = None,
    every: float = WAIT_SECONDS,
) -> JobStatus:
    """Wait until the job is over, supervising meanwhile; returns its status, which is not over after ``timeout``.

    ``watch`` is told the status ``every`` so many seconds.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        supervise(job.workspace)
        status = job.status()
        if watch is not None:
            watch(status)
        if status.is_over or (deadline is not None and time.monotonic() >= deadline):
            return status
        time.sleep(every)


def follow(
    job: Job, progress: Progress, *, tell: Callable[[JobStatus], None] | None = None, every: float = WAIT_SECONDS
) -> JobStatus:
    """Wait for a job, handing its progress on and a stop inward. One that was stopped raises :class:`Stopped`, one that
    failed its own error. ``tell`` says in other words where the job is."""
    asked = False

    def watch(status: JobStatus) -> None:
        nonlocal asked
        if tell is not None:
            tell(status)
        elif status.total:
            progress.report(status.done, status.total, **status.facts)
        if progress.should_stop() and not asked:
            asked = True
            job.stop()

    status = wait(job, watch=watch, every=every)
    if status.state == STOPPED:
        raise Stopped
    if status.state != DONE:
        raise JobError(status.message, code=status.error_code)
    return status


async def supervise_forever(workspace: Workspace, interval: float = 1.0) -> None:
    """Supervise until cancelled, for the app's lifespan. An error is logged once, not raised, and tried again."""
    last = ""
    while True:
        try:
            await asyncio.to_thread(supervise, workspace)
            last = ""
        except Exception as error:  # noqa: BLE001 - logged below; the app must go on
            if repr(error) != last:
                log.error("Supervising the jobs failed; it is tried again.", exc_info=error)
            last = repr(error)
        await asyncio.sleep(interval)
