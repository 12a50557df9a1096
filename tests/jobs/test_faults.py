"""Kills, restarts, races, forged files, full and read-only disks: no ghost, no double run, no wrong kill.

Counts are reduced; SEMIPRUNE_FULL=1 runs them in full.
"""

from __future__ import annotations

import dataclasses
import os
import random
import shutil
import signal
import subprocess
import sys

import psutil
import pytest

from semiprune_core import files
from semiprune_core.errors import DiskFullError
from semiprune_core.jobs import (
    DONE,
    FAILED,
    LOST,
    QUEUED,
    RUNNING,
    Job,
    JobContext,
    list_jobs,
    locks,
    processes,
    submit,
    supervise,
    supervisor,
    wait,
)
from semiprune_core.project.workspace import Workspace
from tests.jobs.helpers import fresh_supervisor, spans
from tests.support.effort import FULL
from tests.support.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.fault


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_kill_9_at_random_points_leaves_no_ghost_and_every_resume_goes_on(project):
    n, n_kills = (600, 20) if FULL else (200, 5)
    points = sorted(random.Random(4).sample(range(1, n - 10), n_kills))
    job = submit(project, "count", {"n": n, "seconds": 0.004})
    for attempt, point in enumerate(points, start=1):
        wait_until(lambda point=point: supervise(project.workspace) or checkpoint(job) >= point)
        running = job.stored_status()
        assert (running.state, running.attempt) == (RUNNING, attempt)
        os.kill(running.pid, signal.SIGKILL)
        wait_until(lambda: job.status().state == LOST)  # even before anybody supervises
        supervise(project.workspace)
        lost = job.stored_status()
        assert (lost.state, lost.error_code) == (LOST, "LOST")
        assert f", at {lost.done}/{n}" in lost.message or not job.progress()
        before = checkpoint(job)
        job.resume()
        assert checkpoint(job) == before
    status = wait(job, 60)
    assert (status.state, status.done, status.attempt) == (DONE, n, n_kills + 1), job.log_tail()
    assert job.result()["from"] >= points[-1]
    assert len(spans(project.folder)[job.id]) == 1  # ended once


def checkpoint(job: Job) -> int:
    path = job.work_folder / "count.json"
    return files.read_json(path)["done"] if path.exists() else 0


def test_app_restarts_while_a_job_runs_neither_end_it_nor_run_it_twice(project):
    n_restarts = 20 if FULL else 5
    job = submit(project, "count", {"n": 100_000, "seconds": 0.005})
    pids = set()
    for _ in range(n_restarts):
        app = fresh_supervisor(project.workspace.root, seconds=60)
        app.stdout.readline()  # it has made a pass
        wait_until(lambda: job.status().pid is not None and checkpoint(job) > 0)
        app.send_signal(signal.SIGKILL)
        app.wait()
        app.stdout.close()
        assert job.status().state == RUNNING
        pids.add(job.status().pid)
    assert len(pids) == 1
    before = checkpoint(job)
    wait_until(lambda: checkpoint(job) > before)
    job.stop()
    assert wait(job, 30).state == "stopped"
    starts = (project.runs_folder / "starts.txt").read_text().splitlines()
    assert len(starts) == 1


def test_racing_supervisors_start_every_job_once_and_one_at_a_time_per_device(project):
    devices = ["cpu", "cuda:0"]
    made = [submit(project, "count", {"n": 3}, device=devices[i % 2]) for i in range(12 if FULL else 6)]
    apps = [fresh_supervisor(project.workspace.root, seconds=60) for _ in range(3)]
    for app in apps:
        app.communicate(timeout=PATIENCE)
    assert [job.status().state for job in made] == [DONE] * len(made), [job.log_tail() for job in made]
    runs = spans(project.folder)
    assert all(len(runs[job.id]) == 1 for job in made)
    for device in devices:
        ordered = [runs[job.id][0] for job in made if job.device == device]
        assert all(earlier[1] <= later[0] for earlier, later in zip(ordered, ordered[1:]))


def test_a_supervisor_with_an_old_list_does_not_start_a_job_again(project):
    job = submit(project, "count", {"n": 3})
    (listed,) = supervisor.recognise_dead(project.workspace)
    assert wait(job, 30).state == DONE
    wait_until(lambda: locks.is_free(job.folder / "lease"))
    supervisor.start_if_free(project.workspace, listed)
    assert job.stored_status().state == DONE
    assert len(spans(project.folder)[job.id]) == 1


def test_a_status_is_written_only_under_the_lease(project):
    job = submit(project, "count", {"n": 5})
    with job.lease() as mine:
        assert mine
        supervise(project.workspace)  # cannot take it
        assert job.stored_status().state == QUEUED
        job.stop()  # leaves a request, does not write
        assert job.stored_status().state == QUEUED
    assert wait(job, 30).state == "stopped"


@pytest.fixture
def bystander():
    """A process that has nothing to do with any job."""
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("start_matches", [False, True])
def test_a_pid_that_was_given_again_fools_nobody_and_is_not_killed(project, bystander, start_matches):
    job = submit(project, "count", {"n": 5})
    start = processes.start_of(bystander.pid)
    forged = dataclasses.replace(
        job.stored_status(),
        state=RUNNING,
        pid=bystander.pid,
        process_start=start if start_matches else start - 1,
        boot=processes.boot_id(),
        launch="0" * 32,
        done=12,
        total=30,
    )
    job.write_status(forged)
    assert job.status().state == LOST
    supervise(project.workspace)
    assert ", at 12/30" in job.stored_status().message
    job.write_status(forged)
    assert job.kill().state == LOST
    job.resume()
    assert wait(job, 30).state == DONE
    assert bystander.poll() is None


def test_a_process_is_known_by_more_than_its_pid(bystander):
    name = processes.this_process()
    assert processes.is_alive(name)
    assert not processes.is_alive(name._replace(start=name.start - 1))
    assert not processes.is_alive(name._replace(boot="another"))
    bystander.kill()
    bystander.wait()
    assert not processes.is_alive(name._replace(pid=bystander.pid))


def test_children_of_a_killed_worker_hold_nothing_and_are_ended(project):
    job = submit(project, "family", {})
    status = wait(job, 30)
    assert status.state == LOST
    assert is_gone(files.read_json(job.work_folder / "child.json"))
    assert job.resume().state == QUEUED


def test_a_lock_goes_with_its_holder_not_with_the_holders_children(tmp_path):
    path = tmp_path / "lock"
    handle = locks.try_lock(path)
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        assert not locks.is_free(path)
        locks.release(handle)
        wait_until(lambda: locks.is_free(path))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_file_system_without_locks_is_refused(project, monkeypatch):
    monkeypatch.setattr(locks.fcntl, "flock", lambda handle, how: None)
    with pytest.raises(Exception, match="no working file locks") as caught:
        submit(project, "count", {"n": 1})
    assert caught.value.code == "NO_FILE_LOCKS"
    assert list(project.runs_folder.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of one megabyte."""
    place = tmp_path / "small"
    place.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run(
            [mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("FULL DISK NOT TESTED: a small tmpfs can only be mounted by root")
    yield place
    for job in list_jobs(Workspace(place)):
        job.kill()
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.parametrize("raises", [True, False], ids=["a checkpoint fails", "a status fails"])
def test_a_full_disk_fails_the_job_with_its_name(small_disk, raises):
    project = Workspace.open(small_disk).create("Full")
    job = submit(project, "fill_disk", {"raises": raises})
    status = wait(job, 30)
    assert (status.state, status.error_code) == (FAILED, "DISK_FULL"), job.log_tail()
    assert "The disk is full" in status.message
    assert list(small_disk.rglob("*.part")) == []
    with pytest.raises(DiskFullError):
        submit(project, "count", {"n": 1})
    assert list_jobs(project) == [job]
    (job.work_folder / "filler").unlink()
    supervise(project.workspace)
    assert job.stored_status().error_code == "DISK_FULL"
    assert job.retry().state == QUEUED


def test_a_folder_that_becomes_read_only_fails_the_job_with_its_name(project):
    job = submit(project, "lock_folder", {})
    try:
        status = wait(job, 30)
        assert (status.state, status.error_code) == (FAILED, "NOT_WRITABLE"), job.log_tail()
        assert "Make its folder writable" in status.message
    finally:
        job.folder.chmod(0o755)


def test_a_read_only_disk_shows_a_dead_job_as_lost(small_disk):
    workspace = Workspace.open(small_disk)
    job = submit(workspace.create("Still"), "count", {"n": 5})
    job.write_status(dataclasses.replace(job.stored_status(), state=RUNNING, launch="0" * 32))
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    try:
        supervise(workspace)
        assert job.status().state == LOST
        with pytest.raises(Exception, match="cannot be written") as caught:
            job.resume()
        assert caught.value.code == "NOT_WRITABLE"
    finally:
        subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)


def test_the_note_of_last_resort_survives_a_status_that_cannot_be_written(project, monkeypatch):
    job = submit(project, "count", {"n": 5})
    job.write_status(dataclasses.replace(job.stored_status(), state=RUNNING, launch="w"))
    inside = JobContext(job, launch="w")

    def full(self, status):
        raise DiskFullError("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(Job, "write_status", full)
        inside.end(FAILED, "The disk is full: ä" + "x" * 5000, "DISK_FULL")
    assert job.stored_status().state == RUNNING
    assert job.status().message.startswith("The disk is full: ä")
    supervise(project.workspace)
    assert (job.stored_status().state, job.stored_status().error_code) == (FAILED, "DISK_FULL")
    job.resume()
    job.write_status(dataclasses.replace(job.stored_status(), state=RUNNING, launch="later"))
    assert job.status().state == LOST  # an old note says nothing about a later attempt
