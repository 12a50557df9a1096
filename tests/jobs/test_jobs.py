"""The life of a job as its user sees it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest

from semiprune_core import files
from semiprune_core.errors import InvalidSettingError, JobError, UnknownNameError
from semiprune_core.jobs import (
    DONE,
    FAILED,
    LOST,
    QUEUED,
    RUNNING,
    STOPPED,
    Job,
    damaged_jobs,
    find_job,
    list_jobs,
    remove_damaged_job,
    submit,
    supervise,
    wait,
)
from semiprune_core.project.workspace import Workspace
from tests.jobs.helpers import ROOT
from tests.support.waiting import PATIENCE, wait_until


def running(job: Job, at_least: int = 1) -> bool:
    supervise(job.workspace)
    status = job.status()
    return status.state == RUNNING and status.done >= at_least


def test_a_job_runs_in_a_process_of_its_own(project):
    job = submit(project, "count", {"n": 20}, title="Count to twenty", pins={"labels": "abc"})
    assert job.status().state == QUEUED
    status = wait(job, 30)
    assert (status.state, status.done, status.total, status.attempt) == (DONE, 20, 20, 1), job.log_tail()
    assert status.pid != os.getpid()
    assert status.facts["square"] == 400
    assert status.seconds >= 0
    assert (status.speed, status.seconds_left) == (None, None)
    assert job.result() == {"counted": 20, "from": 0, "attempt": 1}
    assert (job.title, job.kind, job.device, job.project_name) == ("Count to twenty", "count", "cpu", project.name)
    assert job.pins == {"labels": "abc"}


def test_an_immediate_job_leaves_the_same_files_in_this_process(project):
    here = submit(project, "count", {"n": 20}, immediate=True)
    there = submit(project, "count", {"n": 20})
    wait(there, 30)
    assert here.status().pid == os.getpid()
    assert here.result() == there.result()
    names = {path.name for path in there.folder.iterdir()}
    assert {path.name for path in here.folder.iterdir()} == names
    assert here.progress()[-1]["done"] == there.progress()[-1]["done"] == 20


def test_an_immediate_job_keeps_its_log_and_its_failure(project):
    job = submit(project, "fail", {"how": "data"}, immediate=True)
    assert (job.status().state, job.status().error_code) == (FAILED, "NO_LABELS")
    assert "InvalidDataError" in job.log_tail()
    with pytest.raises(JobError, match="Class 7 has no label") as caught:
        job.result()
    assert caught.value.code == "NO_LABELS"


def test_the_result_of_a_job_that_returns_nothing_is_none(project):
    job = submit(project, "nothing", {}, immediate=True)
    assert job.result() is None
    assert "hello from the job" in job.log_tail()


def test_a_stop_is_honoured_and_a_resume_goes_on_from_the_checkpoint(project):
    job = submit(project, "count", {"n": 400, "seconds": 0.01})
    wait_until(lambda: running(job, at_least=3))
    assert job.stop().stop_requested
    status = wait(job, 30)
    assert (status.state, status.error_code, status.is_resumable) == (STOPPED, None, True)
    assert 3 <= status.done < 400
    with pytest.raises(JobError, match="no result yet"):
        job.result()
    again = job.resume()
    assert (again.state, again.attempt, again.stop_requested) == (QUEUED, 2, False)
    wait_until(lambda: running(job, at_least=status.done + 1))
    assert job.stop() and wait(job, 30).done > status.done
    done = [line["done"] for line in job.progress()]
    assert done == sorted(done)
    assert {line["attempt"] for line in job.progress()} == {1, 2}


def test_a_copy_of_the_workspace_leaves_the_running_job_alone(project, tmp_path):
    job = submit(project, "count", {"n": 1000, "seconds": 0.01})
    wait_until(lambda: running(job))
    copied = Workspace.open(shutil.copytree(project.workspace.root, tmp_path / "copy"))
    supervise(copied)
    (twin,) = list_jobs(copied.project(project.name))
    assert twin.status().state == LOST and twin.status().is_resumable
    before = job.status().done
    wait_until(lambda: running(job, at_least=before + 1))
    assert job.stop() and wait(job, 30).state == STOPPED


def test_sigterm_is_a_stop_request(project):
    job = submit(project, "count", {"n": 1000, "seconds": 0.01})
    wait_until(lambda: running(job))
    os.kill(job.status().pid, signal.SIGTERM)
    assert wait(job, 30).state == STOPPED


def test_the_children_of_a_job_can_be_ended_by_sigterm(project):
    job = submit(project, "pool", {})
    assert wait(job, 30).state == DONE, job.log_tail()
    assert job.result() == {"ended_by": signal.SIGTERM}


def test_an_interrupt_stops_an_immediate_job_and_frees_everything(project):
    with pytest.raises(KeyboardInterrupt):
        submit(project, "fail", {"how": "interrupt"}, immediate=True)
    (job,) = list_jobs(project)
    assert (job.status().state, job.status().is_resumable) == (STOPPED, True)
    assert submit(project, "nothing", {}, immediate=True).status().state == DONE


def test_a_resume_right_after_the_end_is_seen(project):
    """Ended jobs are remembered by their files, which may change twice within a tick of the clock."""
    job = submit(project, "nothing", {})
    for attempt in range(1, 3):
        assert wait(job, 30).attempt == attempt
        job.write_status(job.stored_status().ended(STOPPED, ""))
        supervise(project.workspace)
        job.resume()
    assert wait(job, 30).state == DONE


def test_a_queued_job_is_stopped_at_once_and_never_starts(project):
    job = submit(project, "count", {"n": 5})
    assert job.stop().state == STOPPED
    supervise(project.workspace)
    assert job.status().state == STOPPED
    assert not job.progress()
    job.resume()
    assert wait(job, 30).state == DONE


def test_a_stop_that_comes_while_the_job_is_started_is_not_forgotten(project):
    job = submit(project, "count", {"n": 5})
    (job.folder / "stop").touch()
    assert wait(job, 30).state == STOPPED
    assert not job.progress()


def test_a_stop_of_an_ended_job_changes_nothing(project):
    job = submit(project, "nothing", {}, immediate=True)
    assert job.stop().state == DONE
    with pytest.raises(JobError, match="is done and cannot be resumed"):
        job.resume()


def test_a_job_that_does_not_listen_says_so_and_can_be_killed(project):
    job = submit(project, "stubborn", {"n": 10_000, "seconds": 0.01})
    wait_until(lambda: running(job))
    job.stop()
    wait_until(lambda: job.status().done >= 5)
    assert job.status().state == RUNNING
    assert job.status().stop_requested
    with pytest.raises(JobError, match="is running"):
        job.delete()
    status = job.kill()
    assert (status.state, status.error_code) == ("lost", "LOST")
    assert f", at {status.done}/10000" in status.message


def test_a_job_that_listens_late_is_stopped_late(project):
    job = submit(project, "stubborn", {"n": 30, "seconds": 0.1})
    wait_until(lambda: running(job))
    job.stop()
    status = wait(job, 30)
    assert (status.state, status.done) == (STOPPED, 30)


def test_a_failed_job_can_be_retried(project):
    job = submit(project, "fail", {"how": "data"})
    assert wait(job, 30).error_code == "NO_LABELS"
    status = job.retry()
    assert (status.state, status.attempt, status.error_code, status.message) == (QUEUED, 2, None, "")
    assert wait(job, 30).attempt == 2


def test_jobs_are_listed_newest_first_and_found_by_id(workspace, project):
    first = submit(project, "nothing", {})
    second = submit(workspace.create("Other"), "count", {"n": 1})
    assert list_jobs(workspace) == [second, first]
    assert list_jobs(project) == [first]
    assert list_jobs(workspace, "count") == [second]
    assert find_job(workspace, first.id) == first


@pytest.mark.parametrize("job_id", ["", "../../etc", "20260101-000000-000000-count-abcd", "*"])
def test_an_unknown_id_is_refused(workspace, project, job_id):
    with pytest.raises(JobError, match="There is no job") as caught:
        find_job(workspace, job_id)
    assert caught.value.code == "NO_JOB"


def test_a_deleted_job_is_gone(project):
    job = submit(project, "count", {"n": 5})
    job.delete()
    supervise(project.workspace)
    assert list_jobs(project) == []
    assert list(project.runs_folder.iterdir()) == []
    with pytest.raises(JobError, match="is gone"):
        job.status()


@pytest.mark.parametrize("content", ["{}", "[]", "null", '{"id": 7}', "[" * 100_000])
def test_a_damaged_job_stops_no_other_projects_jobs(workspace, project, content):
    damaged = submit(project, "nothing", {})
    (damaged.folder / "job.json").write_text(content)
    good = submit(workspace.create("Other"), "nothing", {})
    assert wait(good, PATIENCE).state == DONE
    assert list(damaged_jobs(workspace)) == [damaged.folder]
    remove_damaged_job(damaged.folder, archive=True)
    assert not damaged_jobs(workspace) and (project.runs_folder / f".{damaged.id}.damaged" / "job.json").exists()


def test_a_job_whose_settings_were_changed_on_the_disk_is_damaged(project):
    job = submit(project, "nothing", {"n": 5})
    path = job.folder / "job.json"
    path.write_text(path.read_text().replace('"n": 5', '"n": 7'))
    assert "changed after it was written" in damaged_jobs(project)[job.folder]


@pytest.mark.parametrize(
    "changes",
    [{"state": 3}, {"done": "many"}, {"facts": []}, {"started": "yesterday", "state": "done"}, {"launch": None}],
)
def test_a_damaged_status_is_told_and_stops_nothing(project, changes):
    job = submit(project, "nothing", {})
    files.write_json(job.folder / "status.json", {**job.stored_status().to_json(), **changes})
    assert job.status().error_code == "DAMAGED"
    assert wait(submit(project, "nothing", {}), PATIENCE).state == DONE


def test_a_damaged_job_does_not_hide_the_others(project):
    damaged, status_damaged, good = (submit(project, "nothing", {}) for _ in range(3))
    (damaged.folder / "job.json").write_text("{")
    (status_damaged.folder / "status.json").write_text('{"state": "asleep"}')
    assert wait(good, 30).state == DONE
    assert damaged not in list_jobs(project)
    assert status_damaged.status().error_code == "DAMAGED"


def test_misspelt_and_illegal_requests_are_refused(project):
    with pytest.raises(UnknownNameError, match="Did you mean 'import'"):
        submit(project, "imprt", {})
    with pytest.raises(InvalidSettingError, match="device must be"):
        submit(project, "nothing", {}, device="../../x")
    with pytest.raises(InvalidSettingError, match="nproc must be at least 1"):
        submit(project, "nothing", {}, nproc=0)
    with pytest.raises(InvalidSettingError, match="nproc must be 1"):
        submit(project, "nothing", {}, nproc=2, immediate=True)
    with pytest.raises(InvalidSettingError, match="plain JSON"):
        submit(project, "nothing", {"a": object()})
    assert list_jobs(project) == []


def test_a_worker_that_nobody_started_leaves_the_job_alone(project):
    job = submit(project, "count", {"n": 5})
    ended = subprocess.run(
        [sys.executable, "-m", "tests.jobs.worker", job.folder], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "was not started by the supervisor" in ended.stderr
    assert job.status().state == QUEUED


def test_importing_jobs_imports_neither_torch_nor_streamlit():
    code = "import sys, semiprune_core.jobs.worker as w; sys.exit(bool({'torch', 'streamlit'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
